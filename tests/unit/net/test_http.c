/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/http.h"

static void test_head_get(void **state)
{
	struct http_head h = {
		.count = 3, .field = {{"host", "a"}, {"accept", "b"}, {"accept", "c"}}};

	assert_string_equal(http_head_get(&h, "host"), "a");
	assert_string_equal(http_head_get(&h, "accept"), "b");
	assert_null(http_head_get(&h, "hos"));
	assert_null(http_head_get(&h, "origin"));
}

static void test_query(void **state)
{
	static const struct {
		const char *query, *name, *value; /* NULL: not there */
		int r;
	} rows[] = {
		{"a=1", "a", "1", 0},
		{"a=1&b=2", "b", "2", 0},
		{"a=1&a=2", "a", "1", 0},
		{"a", "a", "", 0},
		{"a&b=2", "a", "", 0},
		{"a=", "a", "", 0},
		{"a=x%20y+z%26%3d", "a", "x y z&=", 0},
		{"%61=1", "a", "1", 0},
		{"a=b=c", "a", "b=c", 0},
		{"&&a=1&", "a", "1", 0},
		{"", "a", NULL, 0},
		{"aa=1", "a", NULL, 0},
		{"b=a", "a", NULL, 0},
		{"%zz=1&a=2", "a", "2", 0},
		{"a=%", "a", NULL, -EINVAL},
		{"a=%2", "a", NULL, -EINVAL},
		{"a=%00", "a", NULL, -EINVAL},
		{"a=%2&b=1", "a", NULL, -EINVAL}, /* an escape does not reach into the next */
		{"a=1234567", "a", "1234567", 0},
		{"a=12345678", "a", NULL, -ENOBUFS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char out[8] = "before";
		bool found = false;
		int r = http_query_get(rows[i].query, rows[i].name, out, sizeof(out), &found);

		if (r != rows[i].r || found != (rows[i].value != NULL))
			print_error("%s\n", rows[i].query);
		assert_int_equal(r, rows[i].r);
		assert_int_equal(found, rows[i].value != NULL);
		if (rows[i].value)
			assert_string_equal(out, rows[i].value);
	}
}

static void test_escape(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	char all[256], back[256];

	http_escape(&b, "a-b_c.d~e f/g?h&i=j%+\xc3\xa4\n");
	assert_string_equal(buf_str(&b), "a-b_c.d~e%20f%2Fg%3Fh%26i%3Dj%25%2B%C3%A4%0A");
	for (int i = 1; i < 256; i++)
		all[i - 1] = (char)i;
	all[255] = 0;
	buf_clear(&b);
	http_escape(&b, all);
	assert_int_equal(http_unescape(b.data, b.len, true, back, sizeof(back)), 255);
	assert_string_equal(all, back);
	assert_int_equal(http_unescape("a+b", 3, false, back, sizeof(back)), 3);
	assert_string_equal(back, "a+b");
	assert_int_equal(http_unescape("", 0, false, back, 0), -ENOBUFS);
}

static void test_status(void **state)
{
	assert_string_equal(http_status_text(200), "OK");
	assert_string_equal(http_status_text(431), "Request Header Fields Too Large");
	assert_string_equal(http_status_text(299), "Unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head_get),
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
