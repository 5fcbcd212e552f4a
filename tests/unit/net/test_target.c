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

#include "base/macros.h"
#include "net/http.h"

static void test_targets(void **state)
{
	static const struct {
		const char *text, *path, *query, *authority; /* path NULL: refused */
	} rows[] = {
		{"/", "/", "", NULL},
		{"/a/b", "/a/b", "", NULL},
		{"/a?b=c&d", "/a", "b=c&d", NULL},
		{"/a?b?c", "/a", "b?c", NULL},
		{"/a%20b%2Fc", "/a b/c", "", NULL},
		{"/%e2%82%ac", "/\xe2\x82\xac", "", NULL},
		{"/a+b", "/a+b", "", NULL},
		{"/a?x=%zz", "/a", "x=%zz", NULL}, /* whoever reads the query looks at it */
		{"/.well-known/x", "/.well-known/x", "", NULL},
		{"/...", "/...", "", NULL},
		{"//a", "//a", "", NULL},
		{"*", "*", "", NULL},
		{"http://gpu1:80/a?b", "/a", "b", "gpu1:80"},
		{"HTTPS://gpu1", "/", "", "gpu1"},
		{"http://gpu1?q", "/", "q", "gpu1"},
		{"", NULL, NULL, NULL},
		{"a", NULL, NULL, NULL},
		{"?a", NULL, NULL, NULL},
		{"**", NULL, NULL, NULL},
		{"http://", NULL, NULL, NULL},
		{"http:///a", NULL, NULL, NULL},
		{"ftp://a/b", NULL, NULL, NULL},
		{"/%", NULL, NULL, NULL},
		{"/%1", NULL, NULL, NULL},
		{"/%g1", NULL, NULL, NULL},
		{"/%00", NULL, NULL, NULL},
		{"/%1f", NULL, NULL, NULL},
		{"/%7F", NULL, NULL, NULL},
		{"/a#b", NULL, NULL, NULL},
		{"/a?b#c", NULL, NULL, NULL},
		{"/..", NULL, NULL, NULL},
		{"/./a", NULL, NULL, NULL},
		{"/a/../b", NULL, NULL, NULL},
		{"/a/%2e%2E/b", NULL, NULL, NULL},
		{"/a%2f..%2fb", NULL, NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		/* of exactly its size, so that a sanitizer sees a byte too far */
		_cleanup_free_ char *text = strdup(rows[i].text);
		struct http_target t;
		int r = http_target_parse(text, &t);

		if ((r == 0) != (rows[i].path != NULL))
			print_error("%s\n", rows[i].text);
		assert_int_equal(r, rows[i].path ? 0 : -EINVAL);
		if (r < 0)
			continue;
		assert_string_equal(t.path, rows[i].path);
		assert_string_equal(t.query, rows[i].query);
		if (rows[i].authority)
			assert_string_equal(t.authority, rows[i].authority);
		else
			assert_null(t.authority);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
