/* SPDX-License-Identifier: Apache-2.0 */
/* test_registry.c - looking up rows, templates with a part, pages of lists. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "mcp_fixture.h"

static void templates_match_one_part(void **state)
{
	static const struct {
		const char *uri, *variable; /* NULL: no match */
	} cases[] = {{"test://x/17/y", "17"}, {"test://x/a%20b/y", "a%20b"}, {"test://x//y", NULL},
		{"test://x/1/2/y", NULL}, {"test://x/1/yy", NULL}, {"test://x/1", NULL},
		{"test://one", ""}, {"test://one/", NULL}, {"", NULL}};
	char variable[REGISTRY_VALUE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct registry_resource *r =
			registry_resource_find(&fixture_offer, cases[i].uri, variable);

		assert_int_equal(r != NULL, cases[i].variable != NULL);
		if (r)
			assert_string_equal(variable, cases[i].variable);
	}
}

static void a_part_has_a_ceiling(void **state)
{
	char uri[REGISTRY_VALUE_MAX + 64], variable[REGISTRY_VALUE_MAX];

	snprintf(uri, sizeof(uri), "test://x/%0*d/y", REGISTRY_VALUE_MAX - 1, 1);
	assert_non_null(registry_resource_find(&fixture_offer, uri, variable));
	snprintf(uri, sizeof(uri), "test://x/%0*d/y", REGISTRY_VALUE_MAX, 1);
	assert_null(registry_resource_find(&fixture_offer, uri, variable));
}

static void lists_come_in_pages(void **state)
{
	struct rpc_error e = {0};
	json_t *first = registry_list_tools(&fixture_offer, NULL, &e), *second;
	json_t *cursor = json_object_get(first, "nextCursor");

	assert_int_equal(json_array_size(json_object_get(first, "tools")), 2);
	assert_non_null(cursor);
	second = registry_list_tools(&fixture_offer, cursor, &e);
	assert_int_equal(json_array_size(json_object_get(second, "tools")), 1);
	assert_null(json_object_get(second, "nextCursor"));
	json_decref(first);
	json_decref(second);
}

static void foreign_cursors_are_refused(void **state)
{
	static const char *const bad[] = {
		"", "n", "n0", "n3", "n999999999999999999999", "x2", "n2x", "n-1", "2"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rpc_error e = {0};
		json_t *cursor = json_string(bad[i]);

		assert_null(registry_list_tools(&fixture_offer, cursor, &e));
		assert_int_equal(e.code, RPC_INVALID_PARAMS);
		json_decref(cursor);
	}
}

static void rows_are_complete(void **state)
{
	struct rpc_error e = {0};
	json_t *tools = registry_list_tools(&fixture_offer, NULL, &e);
	json_t *tool = json_array_get(json_object_get(tools, "tools"), 0);
	json_t *prompts = registry_list_prompts(&fixture_offer, NULL, &e);
	json_t *arguments = json_object_get(
		json_array_get(json_object_get(prompts, "prompts"), 0), "arguments");

	assert_true(json_is_object(json_object_get(tool, "inputSchema")));
	assert_true(json_is_object(json_object_get(tool, "outputSchema")));
	assert_true(json_is_true(
		json_object_get(json_object_get(tool, "annotations"), "readOnlyHint")));
	assert_true(json_is_true(json_object_get(json_array_get(arguments, 0), "required")));
	json_decref(tools);
	json_decref(prompts);
	assert_non_null(registry_tool_find(&fixture_offer, "echo"));
	assert_null(registry_tool_find(&fixture_offer, "Echo"));
	assert_null(registry_tool_find(&fixture_offer, NULL));
	assert_null(registry_prompt_find(&fixture_offer, "none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(templates_match_one_part),
		cmocka_unit_test(a_part_has_a_ceiling),
		cmocka_unit_test(lists_come_in_pages),
		cmocka_unit_test(foreign_cursors_are_refused),
		cmocka_unit_test(rows_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
