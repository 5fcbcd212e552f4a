/* SPDX-License-Identifier: Apache-2.0 */
/* test_mcp_tsc.c - full and compact answers, and what a client must take in to begin. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "serve/mcp/mcp_registry.h"
#include "serve/mcp/mcp_tools.h"
#include "serve/mcp/mcp_tsc.h"
#include "base/macros.h"
#include "cli/recording.h"
#include "mcp/rpc.h"

static char *full(const char *text)
{
	json_t *v = json_loads(text, 0, NULL), *f = mcp_tsc_full(v);
	char *out = json_dumps(f, RPC_DUMP);

	json_decref(v);
	json_decref(f);
	return out;
}

static char *compact(const char *text)
{
	json_t *v = json_loads(text, 0, NULL), *p = mcp_tsc_pack(v);
	char *out = json_dumps(p, RPC_DUMP);

	json_decref(v);
	json_decref(p);
	return out;
}

#define assert_becomes(function, from, to)                                                         \
	do {                                                                                       \
		_cleanup_free_ char *got = function(from);                                         \
		assert_string_equal(got, to);                                                      \
	} while (0)

static void full_has_times_and_published_names(void **state)
{
	assert_becomes(full, "{\"p50_ns\":1234567,\"comm\":\"x\",\"op\":\"y\",\"fixes\":[\"f\"]}",
		"{\"p50_us\":1235,\"process_name\":\"x\",\"operation\":\"y\",\"recommendations\":["
		"\"f\"]}");
	assert_becomes(full, "{\"first_seen_ns\":1774360124500000000}",
		"{\"first_seen\":\"2026-03-24T13:48:44.500Z\"}");
	assert_becomes(full, "{\"duration_ns\":1500}", "{\"duration_us\":1.5}");
	assert_becomes(full, "{\"comm\":\"a\\u001b[2J\\u202e\"}", "{\"process_name\":\"a[2J\"}");
}

static void compact_is_short(void **state)
{
	assert_becomes(compact,
		"{\"severity\":\"HIGH\",\"summary\":\"s\",\"explanation\":\"long\",\"timeline\":[{"
		"\"timestamp\":"
		"\"2026-03-24T13:48:44.500Z\",\"duration_us\":0,\"detail\":\"\"}],\"share\":0."
		"123456,\"culprit\":null}",
		"{\"sev\":\"HIGH\",\"sum\":\"s\",\"tl\":[{\"t\":\"13:48:44.500\"}],\"share\":0."
		"123}");
	assert_becomes(compact, "{\"completeness\":0.99999}", "{\"completeness\":0.99999}");
	assert_becomes(compact, "{\"count\":0,\"other\":0}", "{\"n\":0,\"other\":0}");
}

/* The text of run_demo's answer, from the first to the last brace. */
static char *demo(const struct dispatcher *t, bool tsc)
{
	struct call call = {.revision = revision_agree(NULL)};
	json_t *params = json_pack("{s:s, s:{s:s, s:b}}", "name", "run_demo", "arguments",
		"scenario", "incident", "tsc", tsc);
	struct rpc_message m = {.method = "tools/call", .params = params};
	struct rpc_error e = {0};
	json_t *result = dispatcher_answer(t, &call, &m, NULL, &e), *content;
	const char *text;
	char *out;

	assert_non_null(result);
	assert_true(json_is_false(json_object_get(result, "isError")));
	assert_null(json_object_get(result, "structuredContent")); /* sent once */
	content = json_object_get(result, "content");
	assert_int_equal(json_array_size(content), 1);
	text = json_string_value(json_object_get(json_array_get(content, 0), "text"));
	out = strndup(strchr(text, '{'), (size_t)(strrchr(text, '}') + 1 - strchr(text, '{')));
	json_decref(params);
	json_decref(result);
	return out;
}

static void real_answers(void **state)
{
	static const struct mcp_demo demos[] = {
		{"incident", "t", &recording_incident}, {NULL, NULL, NULL}};
	struct mcp_settings settings = {.db = "/nonexistent", .version = "1", .demos = demos};
	_cleanup_(mcp_server_freep) struct mcp_server *server = NULL;
	_cleanup_free_ char *brief = NULL, *complete = NULL;
	json_t *value;

	assert_int_equal(mcp_server_new(&settings, &server, NULL), 0);
	brief = demo(mcp_server_dispatcher(server), true);
	complete = demo(mcp_server_dispatcher(server), false);
	assert_true(2 * strlen(brief) <= strlen(complete));
	value = json_loads(brief, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(value, "incidents"), 0), "sev")),
		"HIGH");
	json_decref(value);
	value = json_loads(complete, 0, NULL);
	assert_non_null(json_object_get(
		json_array_get(json_object_get(value, "incidents"), 0), "evidence_sql"));
	json_decref(value);
}

/* Every schema is JSON, and all of them fit into a model's context. */
static void the_list_of_tools_is_short(void **state)
{
	struct registry registry = {.tools = mcp_tools};
	struct rpc_error e = {0};
	json_t *list = registry_list_tools(&registry, NULL, &e), *tool;
	size_t i;

	json_array_foreach (json_object_get(list, "tools"), i, tool) {
		assert_true(json_is_object(json_object_get(tool, "inputSchema")));
		assert_true(json_is_object(json_object_get(tool, "annotations")));
	}
	assert_int_equal(i, 15);
	assert_in_range(json_dumpb(list, NULL, 0, RPC_DUMP), 1000, 15000);
	json_decref(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_has_times_and_published_names),
		cmocka_unit_test(compact_is_short),
		cmocka_unit_test(real_answers),
		cmocka_unit_test(the_list_of_tools_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
