/* SPDX-License-Identifier: Apache-2.0 */
/* test_cut_text.c - text in a buffer that may be too small for it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "demangle/demangle.h"

static void pieces(void **state)
{
	char out[64];
	struct cut_text t = cut_text_on(out, sizeof(out));

	assert_string_equal(out, "");
	cut_text_puts(&t, "a");
	cut_text_putc(&t, ':');
	cut_text_put(&t, "bcd", 2);
	cut_text_put_number(&t, UINT64_MAX);
	assert_string_equal(out, "a:bc18446744073709551615");
	assert_int_equal(t.len, strlen(out));
	assert_false(t.is_full);
	cut_text_clear(&t);
	cut_text_put_number(&t, 0);
	assert_string_equal(out, "0");
}

static void code_points(void **state)
{
	char out[64];
	struct cut_text t = cut_text_on(out, sizeof(out));

	cut_text_put_code_point(&t, 'A');
	cut_text_put_code_point(&t, 0x7f);
	cut_text_put_code_point(&t, 0x80);
	cut_text_put_code_point(&t, 0x7ff);
	cut_text_put_code_point(&t, 0x800);
	cut_text_put_code_point(&t, 0xffff);
	cut_text_put_code_point(&t, 0x10000);
	cut_text_put_code_point(&t, 0x10ffff);
	assert_string_equal(out,
		"A\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f"
		"\xbf\xbf");
}

static void what_does_not_fit_is_marked(void **state)
{
	char out[9];
	struct cut_text t = cut_text_on(out, sizeof(out));

	cut_text_puts(&t, "12345678");
	assert_string_equal(out, "12345678");
	assert_false(t.is_full);
	cut_text_puts(&t, "");
	assert_false(t.is_full);
	cut_text_putc(&t, '9');
	assert_string_equal(out, "12345…");
	assert_true(t.is_full);
	cut_text_puts(&t, "more");
	assert_string_equal(out, "12345…");
	cut_text_clear(&t);
	/* no half character before the mark: € has three bytes */
	cut_text_puts(&t, "123€€€");
	assert_string_equal(out, "123…");
	cut_text_clear(&t);
	cut_text_puts(&t, "12€€€");
	assert_string_equal(out, "12€…");
	cut_text_clear(&t);
	cut_text_put(&t, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 10);
	assert_string_equal(out, "…");
}

static void tiny_buffers(void **state)
{
	for (size_t size = 1; size < 8; size++) {
		char out[8];
		struct cut_text t = cut_text_on(out, size);

		memset(out + size, 0x55, sizeof(out) - size);
		cut_text_puts(&t, "abcdefgh");
		assert_true(t.is_full && t.len == strlen(out) && t.len < size);
		assert_int_equal(out[size], 0x55);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces),
		cmocka_unit_test(code_points),
		cmocka_unit_test(what_does_not_fit_is_marked),
		cmocka_unit_test(tiny_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
