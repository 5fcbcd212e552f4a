/* SPDX-License-Identifier: Apache-2.0 */
/* test_python_text.c - Python's characters of 1, 2 and 4 bytes as UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "record/python/python.h"

static void gives(const void *data, size_t bytes, unsigned kind, const char *expected)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);

	assert_int_equal(python_text(data, bytes, kind, &b), 0);
	assert_string_equal(buf_str(&b), expected);
}

static void test_latin_1(void **state)
{
	gives("", 0, 1, "");
	gives("train_step", 10, 1, "train_step");
	gives("gr\xf6\xdf"
	      "e\x80\xff",
		7, 1, "größe\xc2\x80ÿ");
}

static void test_two_bytes(void **state)
{
	const uint16_t text[] = {'a', 0x7f, 0x80, 0x7ff, 0x800, 0x65e5, 0xffff};

	gives(text, sizeof(text), 2, "a\x7f\xc2\x80\u07ff\u0800日\xef\xbf\xbf");
}

static void test_four_bytes(void **state)
{
	const uint32_t text[] = {'a', 0xdf, 0x65e5, 0x10000, 0x20000, 0x10ffff};

	gives(text, sizeof(text), 4, "aß日\U00010000\U00020000\U0010ffff");
}

static void test_what_is_no_character(void **state)
{
	const uint16_t halves[] = {0xd7ff, 0xd800, 0xdcff, 0xdfff, 0xe000};
	const uint32_t beyond[] = {0x110000, 0xffffffff, 'b'};

	gives(halves, sizeof(halves), 2, "\xed\x9f\xbf\ufffd\ufffd\ufffd\xee\x80\x80");
	gives(beyond, sizeof(beyond), 4, "\ufffd\ufffdb");
}

static void test_a_cut_character_is_left_out(void **state)
{
	gives("a\0b", 3, 2, "a");
	gives("a\0\0\0b\0\0", 7, 4, "a");
}

static void test_an_unknown_kind(void **state)
{
	gives("abc", 3, 0, "\ufffd");
	gives("abc", 3, 3, "\ufffd");
}

static void test_the_ceiling(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(2);

	assert_int_equal(python_text((const uint8_t *)"abc", 3, 1, &b), -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_latin_1),
		cmocka_unit_test(test_two_bytes),
		cmocka_unit_test(test_four_bytes),
		cmocka_unit_test(test_what_is_no_character),
		cmocka_unit_test(test_a_cut_character_is_left_out),
		cmocka_unit_test(test_an_unknown_kind),
		cmocka_unit_test(test_the_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
