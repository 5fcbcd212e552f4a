/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "cli/support_bundle.h"

static void secrets_do_not_show(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"", ""}, {"fleet:\n  nodes: [a:8080]\n", "fleet:\n  nodes: [a:8080]\n"},
		{"token: s3cret", "token: ***\n"}, {"  API_Key: 's3cret'\n", "  API_Key: ***\n"},
		{"- password : s3cret\n", "- password : ***\n"},
		{"token: |\n  s3cret\n  s3cret\nnode: a\n", "token: ***\n  ***\n  ***\nnode: a\n"},
		{"headers:\n  - s3cret\n\n  - s3cret\nx: 1\n",
			"headers: ***\n  - ***\n\n  - ***\nx: 1\n"},
		{"token_file: /etc/t\nbearer_env: T\nca_cert: c\n",
			"token_file: /etc/t\nbearer_env: T\nca_cert: c\n"},
		{"url: https://u:s3cret@h/p?token=s3cret\n", "url: https://***@h/p?***\n"},
		{"url: https://h/p?s3cret # s3cret\n", "url: https://h/p?***\n"},
		{"# s3cret\nnode: a # s3cret\n", "\nnode: a \n"}, {"node: a#b\n", "node: a#b\n"},
		{"token\n: s3cret\n", NULL}, /* no YAML that we read; must not crash */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(4096);

		mask_yaml(&b, rows[i].in);
		if (rows[i].out)
			assert_string_equal(buf_str(&b), rows[i].out);
		if (rows[i].out)
			assert_null(strstr(buf_str(&b), "s3cret"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(secrets_do_not_show)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
