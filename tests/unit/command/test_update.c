/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "command/update.h"

static void versions_are_compared_by_their_numbers(void **state)
{
	static const struct {
		const char *a, *b;
		bool newer;
	} rows[] = {
		{"0.2.0", "0.1.9", true}, {"0.10.0", "0.9.0", true}, {"v1.0", "0.99.99", true},
		{"1.0.0", "1.0.0", false}, {"v1.0.0", "1.0", false}, {"0.1.9", "0.2.0", false},
		{"1.0.0", "1.0.0-rc1", true}, {"1.0.0-rc1", "1.0.0", false},
		{"1.0.0-rc1", "1.0.0-rc2", false}, /* not told apart */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (update_is_newer(rows[i].a, rows[i].b) != rows[i].newer)
			fail_msg("%s against %s", rows[i].a, rows[i].b);
}

static void answers_are_read(void **state)
{
	static const struct {
		const char *text, *version;
	} rows[] = {
		{"0.2.0\n", "0.2.0"},
		{"  v0.2.0 and more\n", "v0.2.0"},
		{"{\"url\": {\"version\": \"9\"}, \"tag_name\": \"v1.2.3\", \"x\": 1}", "v1.2.3"},
		{"{\"version\": \"1.2.3-rc1\"}", "1.2.3-rc1"},
		{"{\"version\": 3}", NULL},
		{"{\"tag_name\": \"v1.2.3", NULL},
		{"{\"tag_name\": \"\\u001b[2J1\"}", NULL},
		{"<html>", NULL},
		{"", NULL},
		{"v", NULL},
		{"1.0\x1b[2J", NULL},
		{"11111111111111111111111111111111111111111111111111111111111111111111", NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[UPDATE_VERSION_MAX] = "untouched";
		int r = update_parse(rows[i].text, out);

		if (r != (rows[i].version ? 0 : -EBADMSG))
			fail_msg("%s: %d", rows[i].text, r);
		assert_string_equal(out, rows[i].version ? rows[i].version : "untouched");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_compared_by_their_numbers),
		cmocka_unit_test(answers_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
