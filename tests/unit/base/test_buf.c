/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c - growth, the ceiling, the sticking error and the hand-over of buf.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"

static void test_empty_reads_as_empty_string(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(10);

	assert_string_equal(buf_str(&b), "");
	assert_null(buf_take(&b));
	assert_int_equal(b.err, 0);
}

static void test_appends_in_order(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);

	buf_puts(&b, "one");
	buf_putc(&b, ' ');
	buf_append(&b, "two!", 3);
	buf_printf(&b, " %d", 3);
	assert_string_equal(buf_str(&b), "one two 3");
	assert_int_equal(b.len, strlen("one two 3"));
	assert_int_equal(b.err, 0);
}

static void test_keeps_nul_bytes(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);

	buf_append(&b, "a\0b", 3);
	buf_putc(&b, 'c');
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, "a\0bc", 5);
}

static void test_appending_nothing_is_no_error(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4);

	buf_append(&b, NULL, 0);
	buf_puts(&b, "");
	buf_printf(&b, "%s", "");
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(b.err, 0);
}

static void test_grows_past_its_first_allocation(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100000);

	for (int i = 0; i < 99991; i++) {
		buf_putc(&b, (char)('a' + i % 26));
		assert_true(b.cap > b.len && b.cap <= b.max + 1);
	}
	assert_int_equal(b.len, 99991);
	for (int i = 0; i < 99991; i++)
		assert_int_equal(b.data[i], 'a' + i % 26);
	assert_int_equal(b.data[99991], 0);
}

static void test_ceiling_is_exact(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(5);

	buf_puts(&b, "12345");
	assert_int_equal(b.err, 0);
	buf_putc(&b, '6');
	assert_int_equal(b.err, -ENOBUFS);
	assert_string_equal(buf_str(&b), "12345");
}

static void test_huge_length_does_not_wrap(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);

	buf_puts(&b, "abc");
	buf_append(&b, "x", SIZE_MAX);
	assert_int_equal(b.err, -ENOBUFS);
	assert_string_equal(buf_str(&b), "abc");
}

static void test_error_sticks(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4);

	buf_puts(&b, "12");
	buf_printf(&b, "%s", "3456");
	assert_int_equal(b.err, -ENOBUFS);
	buf_putc(&b, '3'); /* would fit, but a hole must not go unnoticed */
	assert_string_equal(buf_str(&b), "12");
	assert_int_equal(b.err, -ENOBUFS);
	assert_null(buf_take(&b));
}

static void test_clear_forgets_content_and_error(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4);

	buf_puts(&b, "12345");
	assert_int_equal(b.err, -ENOBUFS);
	buf_clear(&b);
	assert_string_equal(buf_str(&b), "");
	buf_puts(&b, "1234");
	assert_int_equal(b.err, 0);
	assert_string_equal(buf_str(&b), "1234");
	buf_clear(&b);
	assert_string_equal(buf_str(&b), "");
}

static void test_take_moves_ownership(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(10);
	_cleanup_free_ char *text = NULL;

	buf_puts(&b, "mine");
	text = buf_take(&b);
	assert_string_equal(text, "mine");
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	buf_puts(&b, "again"); /* the ceiling outlives the hand-over */
	assert_string_equal(buf_str(&b), "again");
	buf_puts(&b, "123456");
	assert_int_equal(b.err, -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_reads_as_empty_string),
		cmocka_unit_test(test_appends_in_order),
		cmocka_unit_test(test_keeps_nul_bytes),
		cmocka_unit_test(test_appending_nothing_is_no_error),
		cmocka_unit_test(test_grows_past_its_first_allocation),
		cmocka_unit_test(test_ceiling_is_exact),
		cmocka_unit_test(test_huge_length_does_not_wrap),
		cmocka_unit_test(test_error_sticks),
		cmocka_unit_test(test_clear_forgets_content_and_error),
		cmocka_unit_test(test_take_moves_ownership),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
