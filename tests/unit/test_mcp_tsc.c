/* SPDX-License-Identifier: Apache-2.0 */
/* test_mcp_tsc.c - full and compact answers, and schemas that fit both. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/serve/mcp_offer.h"
#include "agent/serve/mcp_tools.h"
#include "agent/serve/mcp_tsc.h"
#include "base/macros.h"
#include "cli/recording.h"
#include "mcp/shape.h"

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

static void schemas_fit_both_forms(void **state)
{
	static const char schema[] =
		"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"severity\","
		"\"id\"],"
		"\"properties\":{\"id\":{\"type\":\"string\"},\"severity\":{\"type\":\"string\"},"
		"\"timeline\":"
		"{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"
		"\"properties\":{\"detail\":{\"type\":\"string\"}}}}}}";
	static const struct {
		const char *value;
		int fits;
	} cases[] = {{"{\"id\":\"a\",\"severity\":\"x\",\"timeline\":[{\"detail\":\"d\"}]}", 1},
		{"{\"id\":\"a\",\"sev\":\"x\",\"tl\":[{\"det\":\"d\"}]}", 1},
		{"{\"sev\":\"x\"}", 0}, {"{\"id\":\"a\",\"sev\":7}", 0},
		{"{\"id\":\"a\",\"tl\":[{\"dett\":\"d\"}]}", 0}};
	_cleanup_free_ char *wide = mcp_tsc_schema(schema);
	json_t *s = json_loads(wide, 0, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf why = BUF_INIT(SHAPE_SENTENCE);
		json_t *v = json_loads(cases[i].value, 0, NULL);

		assert_int_equal(shape_check(s, v, &why) == 0, cases[i].fits);
		json_decref(v);
	}
	json_decref(s);
}

static void an_outline_has_every_value(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	json_t *v = json_loads(
		"{\"a\":1,\"l\":[{\"x\":\"y\"},\"z\"],\"o\":{\"r\":1.5,\"t\":true}}", 0, NULL);

	mcp_tsc_outline(&b, v);
	assert_string_equal(
		buf_str(&b), "a: 1\nl:\n  - 1\n    x: y\n  - z\no:\n  r: 1.5\n  t: yes\n");
	json_decref(v);
}

/* Every tool's schemas are JSON; a real answer fits them in both forms and compact is half as long.
 */
static json_t *demo(const struct talk *t, bool tsc, size_t *ret_bytes)
{
	struct call call = {.revision = revision_agree(NULL)};
	json_t *params = json_pack("{s:s, s:{s:s, s:b}}", "name", "run_demo", "arguments",
		"scenario", "incident", "tsc", tsc);
	struct rpc_message m = {.method = "tools/call", .params = params};
	struct rpc_error e = {0};
	json_t *result = talk_answer(t, &call, &m, NULL, &e);

	assert_non_null(result);
	assert_true(json_is_false(json_object_get(result, "isError")));
	*ret_bytes = json_dumpb(result, NULL, 0, RPC_DUMP);
	json_decref(params);
	return result;
}

static void real_answers(void **state)
{
	static const struct mcp_demo demos[] = {
		{"incident", "t", recording_incident}, {NULL, NULL, NULL}};
	struct mcp_settings settings = {.db = "/nonexistent", .version = "1", .demos = demos};
	_cleanup_(mcp_server_freep) struct mcp_server *server = NULL;
	_cleanup_buf_ struct buf why = BUF_INIT(SHAPE_SENTENCE);
	json_t *schema = NULL, *results[2];
	size_t bytes[2];

	assert_int_equal(mcp_server_new(&settings, &server, NULL), 0);
	for (const struct offer_tool *t = mcp_tools; t->name; t++) {
		json_t *in = json_loads(t->input, 0, NULL),
		       *out = t->output ? json_loads(t->output, 0, NULL) : NULL;

		assert_non_null(in);
		assert_true(!t->output || out);
		if (!strcmp(t->name, "run_demo")) {
			_cleanup_free_ char *wide = mcp_tsc_schema(t->output);

			schema = json_loads(wide, 0, NULL);
		}
		json_decref(in);
		json_decref(out);
	}
	for (int i = 0; i < 2; i++) {
		results[i] = demo(mcp_server_talk(server), i == 0, &bytes[i]);
		if (shape_check(schema, json_object_get(results[i], "structuredContent"), &why) < 0)
			fail_msg("%s", buf_str(&why));
		json_decref(results[i]);
	}
	print_message("compact %zu bytes, complete %zu\n", bytes[0], bytes[1]);
	assert_true(2 * bytes[0] <= bytes[1]);
	json_decref(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_has_times_and_published_names),
		cmocka_unit_test(compact_is_short),
		cmocka_unit_test(schemas_fit_both_forms),
		cmocka_unit_test(an_outline_has_every_value),
		cmocka_unit_test(real_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
