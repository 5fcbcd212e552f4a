/* SPDX-License-Identifier: Apache-2.0 */
/* test_param.c - parameters that are described once: schemas for lists and for the check, aliases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "mcp/registry.h"

enum { SCOPE = 1, SQL = 2, SIZE = 4, MODE = 8, PIDS = 16 };

static const struct param table[] = {
	{SCOPE, "since", NULL, PARAM_TEXT, 0, 8, NULL, "from when on", false},
	{SCOPE, "until", NULL, PARAM_TEXT, 0, 8, NULL, "until when", true},
	{SQL, "sql", "query", PARAM_TEXT, 1, 100, NULL, "one SELECT", false},
	{SIZE, "limit", NULL, PARAM_INTEGER, 1, 9, NULL, "how many", false},
	{MODE, "mode", NULL, PARAM_TEXT, 0, 0, "fast slow", "how", false},
	{PIDS, "pid", "pids", PARAM_INTEGERS, 1, 99, NULL, "whose", false},
	{.name = NULL},
};

static json_t *schema(unsigned takes, unsigned needs, bool listed)
{
	json_t *o = param_schema(table, takes, needs, listed);

	assert_non_null(o);
	return o;
}

/* Whether @arguments are accepted, and what is said if not. */
static bool takes(unsigned bits, unsigned needs, const char *arguments, char why[256])
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	json_t *given = json_loads(arguments, 0, NULL), *s = schema(bits, needs, false);
	json_t *named = param_arguments(table, bits, given);
	bool ok = schema_check(s, named, &b) == 0;

	snprintf(why, 256, "%s", buf_str(&b));
	json_decref(given);
	json_decref(named);
	json_decref(s);
	return ok;
}

static void test_lists_are_short(void **state _unused_)
{
	json_t *listed = schema(SCOPE | SIZE, 0, true), *all = schema(SCOPE | SIZE, 0, false);
	json_t *p = json_object_get(listed, "properties");

	assert_int_equal(json_object_size(p), 2);
	assert_null(json_object_get(p, "until"));
	assert_null(json_object_get(json_object_get(p, "limit"), "maximum"));
	p = json_object_get(all, "properties");
	assert_int_equal(json_object_size(p), 3);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(p, "limit"), "maximum")), 9);
	assert_true(json_is_false(json_object_get(listed, "additionalProperties")));
	json_decref(listed);
	json_decref(all);
}

static void test_both_names_are_taken(void **state _unused_)
{
	char why[256];

	assert_true(takes(SQL, SQL, "{\"sql\":\"SELECT 1\"}", why));
	assert_true(takes(SQL, SQL, "{\"query\":\"SELECT 1\"}", why));
	assert_true(takes(PIDS, 0, "{\"pid\":7}", why));
	assert_true(takes(PIDS, 0, "{\"pids\":[7,8]}", why));
	assert_false(takes(SQL, SQL, "{}", why));
	assert_non_null(strstr(why, "\"sql\" is required"));
	/* an alias of what is not taken is a name like any other */
	assert_false(takes(SIZE, 0, "{\"query\":\"SELECT 1\"}", why));
	assert_non_null(strstr(why, "query"));
	/* both at once: which one? */
	assert_false(takes(SQL, 0, "{\"sql\":\"a\",\"query\":\"b\"}", why));
}

static void test_errors_name_the_parameter(void **state _unused_)
{
	static const struct {
		const char *arguments, *why;
	} rows[] = {
		{"{\"limit\":10}", "limit must be at least 1 and at most 9, not 10"},
		{"{\"limit\":\"x\"}", "limit must be of type integer"},
		{"{\"since\":\"123456789\"}", "since"},
		{"{\"mode\":\"odd\"}", "mode must be one of: fast, slow"},
		{"{\"pid\":0}", "pid must be at least 1"},
		{"{\"pid\":[1,0]}", "pid[1] must be at least 1"},
		{"{\"sinc\":\"1\"}", "unknown name \"sinc\""},
	};
	char why[256];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_false(takes(~0U, 0, rows[i].arguments, why));
		if (!strstr(why, rows[i].why))
			fail_msg("%s: %s", rows[i].arguments, why);
	}
	assert_true(takes(~0U, 0, "{\"limit\":9,\"mode\":\"fast\",\"since\":\"1h\"}", why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_are_short),
		cmocka_unit_test(test_both_names_are_taken),
		cmocka_unit_test(test_errors_name_the_parameter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
