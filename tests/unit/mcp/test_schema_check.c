/* SPDX-License-Identifier: Apache-2.0 */
/* test_schema_check.c - values against schemas: what fits, and the sentence about what does not. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "mcp/registry.h"

static const char schema[] =
	"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"n\"],\"properties\":{"
	"\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10},"
	"\"s\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":3},"
	"\"e\":{\"enum\":[\"a\",\"b\"]},\"b\":{\"type\":\"boolean\"},"
	"\"o\":{\"type\":[\"string\",\"null\"]},\"any\":{},"
	"\"l\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"type\":\"integer\"}},"
	"\"in\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"number\"}}}}}";

static int fits(const char *value, char why[SCHEMA_CHECK_SENTENCE])
{
	_cleanup_buf_ struct buf b = BUF_INIT(SCHEMA_CHECK_SENTENCE);
	json_t *s = json_loads(schema, 0, NULL), *v = json_loads(value, JSON_DECODE_ANY, NULL);
	int r;

	assert_non_null(s);
	assert_non_null(v);
	r = schema_check(s, v, &b);
	snprintf(why, SCHEMA_CHECK_SENTENCE, "%s", buf_str(&b));
	json_decref(s);
	json_decref(v);
	return r;
}

static void what_fits(void **state)
{
	static const char *const good[] = {"{\"n\":1}", "{\"n\":10}", "{\"n\":10.0}",
		"{\"n\":2,\"s\":\"abc\",\"e\":\"b\",\"b\":false,\"l\":[1,2],\"in\":{\"x\":1,\"y\":"
		"2}}",
		"{\"n\":2,\"o\":null,\"any\":[{}]}", "{\"n\":2,\"o\":\"x\"}"};
	char why[SCHEMA_CHECK_SENTENCE];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (fits(good[i], why) < 0)
			fail_msg("%s: %s", good[i], why);
}

static void what_does_not(void **state)
{
	static const struct {
		const char *value, *says;
	} bad[] = {
		{"{}", "\"n\" is required"},
		{"[]", "the arguments must be of type object, not array"},
		{"{\"n\":\"1\"}", "n must be of type integer, not string"},
		{"{\"n\":1.5}", "n must be of type integer, not number"},
		{"{\"n\":0}", "n must be at least 1 and at most 10, not 0"},
		{"{\"n\":11}", "not 11"},
		{"{\"n\":null}", "not null"},
		{"{\"n\":1,\"s\":\"\"}", "s must not be empty"},
		{"{\"n\":1,\"s\":\"abcd\"}", "s is longer than 3"},
		{"{\"n\":1,\"e\":\"c\"}", "e must be one of: a, b"},
		{"{\"n\":1,\"b\":1}", "b must be of type boolean"},
		{"{\"n\":1,\"o\":1}", "o: type integer"},
		{"{\"n\":1,\"l\":[1,2,3]}", "l has more than 2"},
		{"{\"n\":1,\"l\":[1,\"x\"]}", "l[1] must be of type integer"},
		{"{\"n\":1,\"in\":{\"x\":\"\"}}", "in.x must be of type number"},
		{"{\"n\":1,\"typo\":1}", "unknown name \"typo\"; valid names: n, s"},
	};
	char why[SCHEMA_CHECK_SENTENCE];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (fits(bad[i].value, why) == 0 || !strstr(why, bad[i].says))
			fail_msg("%s: %s", bad[i].value, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits),
		cmocka_unit_test(what_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
