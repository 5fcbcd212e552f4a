/* SPDX-License-Identifier: Apache-2.0 */
/* test_rpc.c - what is a JSON-RPC message and what is not; ceilings of size and depth. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "mcp/rpc.h"

static int read_text(const char *text, struct rpc_message *m, struct rpc_error *e)
{
	static json_t *doc; /* of the last call: the message points into it */
	int r;

	json_decref(doc);
	doc = NULL;
	*e = (struct rpc_error){0};
	r = rpc_parse(text, strlen(text), &doc, e);
	return r < 0 ? r : rpc_read(doc, m, e);
}

static void kinds_of_messages(void **state)
{
	struct rpc_message m;
	struct rpc_error e;

	assert_int_equal(
		read_text("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\",\"params\":{}}", &m, &e),
		0);
	assert_int_equal(m.kind, RPC_REQUEST);
	assert_string_equal(m.method, "a");
	assert_int_equal(json_integer_value(m.id), 7);
	assert_int_equal(
		read_text("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"a\"}", &m, &e), 0);
	assert_string_equal(json_string_value(m.id), "x");
	assert_int_equal(read_text("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}", &m, &e), 0);
	assert_int_equal(m.kind, RPC_NOTIFICATION);
	assert_int_equal(read_text("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", &m, &e), 0);
	assert_int_equal(m.kind, RPC_RESPONSE);
}

static void what_is_no_message(void **state)
{
	static const struct {
		const char *text;
		int code;
	} bad[] = {
		{"", RPC_PARSE_ERROR},
		{"{", RPC_PARSE_ERROR},
		{"{\"a\":1}{\"b\":2}", RPC_PARSE_ERROR},
		{"{\"a\":1,\"a\":2}", RPC_PARSE_ERROR},
		{"{\"a\":\"\\u0000\"}", RPC_PARSE_ERROR},
		{"{\"a\":\"\xff\"}", RPC_PARSE_ERROR},
		{"7", RPC_INVALID_REQUEST},
		{"[]", RPC_INVALID_REQUEST},
		{"{\"id\":1,\"method\":\"a\"}", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[1]}",
			RPC_INVALID_REQUEST},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rpc_message m;
		struct rpc_error e;

		if (read_text(bad[i].text, &m, &e) == 0 || e.code != bad[i].code || !e.message[0])
			fail_msg("%s: code %d", bad[i].text, e.code);
	}
}

static void depth_has_a_ceiling(void **state)
{
	char deep[3 * RPC_DEPTH_MAX] = "", text[512];
	struct rpc_error e = {0};
	json_t *doc = NULL;

	memset(deep, '[', RPC_DEPTH_MAX);
	memset(deep + RPC_DEPTH_MAX, ']', RPC_DEPTH_MAX);
	assert_int_equal(rpc_parse(deep, strlen(deep), &doc, &e), 0);
	json_decref(doc);
	snprintf(text, sizeof(text), "[%s]", deep);
	assert_int_not_equal(rpc_parse(text, strlen(text), &doc, &e), 0);
	assert_non_null(strstr(e.message, "deeper"));
	/* Brackets in strings do not count. */
	snprintf(text, sizeof(text), "[\"\\\"%s[[[[[\"]", deep);
	assert_int_equal(rpc_parse(text, strlen(text), &doc, &e), 0);
	json_decref(doc);
}

static void size_has_a_ceiling(void **state)
{
	_cleanup_free_ char *text = malloc(RPC_BYTES_MAX + 2);
	struct rpc_error e = {0};
	json_t *doc = NULL;

	memset(text, ' ', RPC_BYTES_MAX + 1);
	text[0] = '1';
	assert_int_equal(rpc_parse(text, RPC_BYTES_MAX, &doc, &e), 0);
	json_decref(doc);
	assert_int_not_equal(rpc_parse(text, RPC_BYTES_MAX + 1, &doc, &e), 0);
	assert_int_equal(e.code, RPC_PARSE_ERROR);
}

static void replies(void **state)
{
	_cleanup_json_ json_t *id = json_integer(3), *data = json_string("d");
	struct rpc_error e = {.code = -1, .message = "m", .data = data};
	_cleanup_json_ json_t *ok = rpc_result(id, json_object()),
			      *bad = rpc_failure(id, false, &e);
	_cleanup_json_ json_t *none = rpc_failure(NULL, false, &e),
			      *omitted = rpc_failure(NULL, true, &e);

	assert_int_equal(json_integer_value(json_object_get(ok, "id")), 3);
	assert_true(json_is_object(json_object_get(ok, "result")));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(bad, "error"), "data")), "d");
	assert_true(json_is_null(json_object_get(none, "id")));
	assert_null(json_object_get(omitted, "id"));
}

static void messages_are_counted(void **state)
{
	static const struct {
		const char *text;
		unsigned count;
	} rows[] = {
		{"", 1},
		{"{\"a\": [1, 2, 3], \"b\": 4}", 1},
		{"[]", 1},
		{" \n[{\"a\": [1, 2], \"b\": 2}, {}]", 2},
		{"[{\"a,]\": \"\\\",\"}, {}, 7]", 3},
		{"[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
		 "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
			RPC_BATCH_MAX},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(rpc_count(rows[i].text, strlen(rows[i].text)), rows[i].count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_messages),
		cmocka_unit_test(what_is_no_message),
		cmocka_unit_test(depth_has_a_ceiling),
		cmocka_unit_test(size_has_a_ceiling),
		cmocka_unit_test(replies),
		cmocka_unit_test(messages_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
