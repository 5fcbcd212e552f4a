/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_transport.c - the protocol's rules for HTTP: types, revisions, fields that must say what the body
 * says, statuses, streams. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "mcp/http_transport.h"
#include "mcp_fixture.h"

#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}"
#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define CALL(method, more)                                                                         \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" more META "}}"

struct sent {
	const char *type, *accept, *version, *method, *name;
};

static const char *field(const void *arg, const char *name)
{
	const struct sent *s = arg;

	return !strcmp(name, "content-type")           ? s->type
	       : !strcmp(name, "accept")               ? s->accept
	       : !strcmp(name, "mcp-protocol-version") ? s->version
	       : !strcmp(name, "mcp-method")           ? s->method
	       : !strcmp(name, "mcp-name")             ? s->name
						       : NULL;
}

#define JSON_BOTH "application/json", "application/json, text/event-stream"

/* The status; *ret_code is that of the error, 0: a result. @holds must be in the body. */
static int post_as(
	const char *verb, const struct sent *s, const char *body, int *ret_code, const char *holds)
{
	_cleanup_(dispatcher_freep) struct dispatcher *t = fixture_talk();
	struct http_transport_request q = {.method = verb,
		.body = body,
		.body_len = strlen(body),
		.field = field,
		.field_arg = s};
	struct http_transport_reply r;
	json_t *reply;
	int status;

	http_transport_answer(t, &q, &r);
	reply = json_loads(buf_str(&r.body), 0, NULL);
	if (ret_code)
		*ret_code = (int)json_integer_value(
			json_object_get(json_object_get(reply, "error"), "code"));
	if (holds && !strstr(buf_str(&r.body), holds))
		fail_msg("%s is not in %s", holds, buf_str(&r.body));
	if (r.status == 405)
		assert_string_equal(r.allow, "POST");
	if (r.status == 202)
		assert_true(!r.type && !r.body.len);
	status = r.status;
	json_decref(reply);
	buf_done(&r.body);
	return status;
}

static int post(const struct sent *s, const char *body, int *ret_code, const char *holds)
{
	return post_as("POST", s, body, ret_code, holds);
}

static void only_posts_of_json(void **state)
{
	struct sent s = {JSON_BOTH, NULL, NULL, NULL};

	assert_int_equal(post(&s, LIST, NULL, "echo"), 200);
	assert_int_equal(post_as("GET", &s, "", NULL, NULL), 405);
	assert_int_equal(post_as("DELETE", &s, "", NULL, NULL), 405);
	s.type = "application/json; charset=utf-8";
	assert_int_equal(post(&s, LIST, NULL, "echo"), 200);
	s.type = "text/plain";
	assert_int_equal(post(&s, LIST, NULL, NULL), 415);
	s.type = NULL;
	assert_int_equal(post(&s, LIST, NULL, NULL), 415);
	s = (struct sent){"application/json", "text/html", NULL, NULL, NULL};
	assert_int_equal(post(&s, LIST, NULL, NULL), 406);
	s.accept = NULL;
	assert_int_equal(post(&s, LIST, NULL, NULL), 200);
	s.accept = "text/event-stream";
	assert_int_equal(post(&s, LIST, NULL, "data: {"), 200);
	s.accept = "*/*";
	assert_int_equal(post(&s, "{", NULL, "-32700"), 400);
	assert_int_equal(post(&s, "{}", NULL, "-32600"), 400);
}

static void revisions_with_a_handshake(void **state)
{
	struct sent s = {JSON_BOTH, "2025-11-25", NULL, NULL};
	int code;

	assert_int_equal(post(&s, LIST, &code, NULL), 200);
	assert_int_equal(post(&s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
				 NULL, NULL),
		202);
	assert_int_equal(post(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", NULL, NULL), 202);
	assert_int_equal(
		post(&s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"none\"}", &code, NULL), 200);
	assert_int_equal(code, RPC_NO_METHOD);
	assert_int_equal(post(&s, "[" LIST "]", NULL, NULL), 400);
	s.version = "2025-03-26";
	assert_int_equal(post(&s, "[" LIST "]", NULL, "[{"), 200);
	assert_int_equal(
		post(&s, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]", NULL, NULL),
		202);
	s.version = NULL;
	assert_int_equal(post(&s, "[" LIST "," LIST ",7]", NULL, "-32600"), 200);
	s.version = "1999-01-01";
	assert_int_equal(post(&s, LIST, &code, "2025-06-18"), 400);
	assert_int_equal(code, DISPATCHER_NO_REVISION);
}

static void fields_must_say_what_the_body_says(void **state)
{
	static const struct {
		struct sent s;
		const char *body;
		int status, code;
	} cases[] = {
		{{JSON_BOTH, "2026-07-28", "tools/list", NULL}, CALL("tools/list", ""), 200, 0},
		{{JSON_BOTH, "2026-07-28", "tools/call", "echo"},
			CALL("tools/call", "\"name\":\"echo\",\"arguments\":{\"n\":1},"), 200, 0},
		{{JSON_BOTH, "2026-07-28", "tools/call", "=?base64?ZWNobw==?="},
			CALL("tools/call", "\"name\":\"echo\",\"arguments\":{\"n\":1},"), 200, 0},
		{{JSON_BOTH, "2026-07-28", "tools/call", "=?base64?ZWNobw?="},
			CALL("tools/call", "\"name\":\"echo\","), 400, DISPATCHER_HEADER_MISMATCH},
		{{JSON_BOTH, "2026-07-28", "tools/call", "=?base64?ZW!obw==?="},
			CALL("tools/call", "\"name\":\"echo\","), 400, DISPATCHER_HEADER_MISMATCH},
		{{JSON_BOTH, "2026-07-28", "tools/call", "=?base64?Z=Nobw==?="},
			CALL("tools/call", "\"name\":\"echo\","), 400, DISPATCHER_HEADER_MISMATCH},
		{{JSON_BOTH, "2026-07-28", "tools/call", "large"},
			CALL("tools/call", "\"name\":\"echo\","), 400, DISPATCHER_HEADER_MISMATCH},
		{{JSON_BOTH, "2026-07-28", "tools/call", NULL},
			CALL("tools/call", "\"name\":\"echo\","), 400, DISPATCHER_HEADER_MISMATCH},
		{{JSON_BOTH, "2026-07-28", NULL, NULL}, CALL("tools/list", ""), 400,
			DISPATCHER_HEADER_MISMATCH},
		{{JSON_BOTH, "2026-07-28", "TOOLS/LIST", NULL}, CALL("tools/list", ""), 400,
			DISPATCHER_HEADER_MISMATCH},
		{{JSON_BOTH, NULL, "tools/list", NULL}, CALL("tools/list", ""), 400,
			DISPATCHER_HEADER_MISMATCH},
		{{JSON_BOTH, "2025-11-25", "tools/list", NULL}, CALL("tools/list", ""), 400,
			DISPATCHER_HEADER_MISMATCH},
		{{JSON_BOTH, "2026-07-28", "tools/list", NULL}, LIST, 400, RPC_INVALID_PARAMS},
		{{JSON_BOTH, "2026-07-28", "none", NULL}, CALL("none", ""), 404, RPC_NO_METHOD},
		{{JSON_BOTH, "2026-07-28", "ping", NULL}, CALL("ping", ""), 404, RPC_NO_METHOD},
		{{JSON_BOTH, "2026-07-28", "tools/call", "asks"},
			CALL("tools/call", "\"name\":\"asks\","), 400, DISPATCHER_NO_CAPABILITY},
		{{JSON_BOTH, "2026-07-28", "resources/read", "test://no"},
			CALL("resources/read", "\"uri\":\"test://no\","), 200, RPC_INVALID_PARAMS},
		{{JSON_BOTH, "2026-07-28", NULL, NULL},
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 400, RPC_INVALID_REQUEST},
		{{JSON_BOTH, "2026-07-28", NULL, NULL}, "[" LIST "]", 400, RPC_INVALID_REQUEST},
		{{JSON_BOTH, "2026-07-28", NULL, NULL},
			"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}", 202, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int code, status = post(&cases[i].s, cases[i].body, &code, NULL);

		if (status != cases[i].status || code != cases[i].code)
			fail_msg("case %zu: status %d, code %d", i, status, code);
	}
}

static void progress_makes_a_stream(void **state)
{
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
				   "call\",\"params\":{\"name\":\"echo\","
				   "\"arguments\":{\"n\":1},\"_meta\":{\"progressToken\":\"p\"}}}";
	struct sent s = {JSON_BOTH, NULL, NULL, NULL};

	assert_int_equal(
		post(&s, body, NULL, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":"),
		200);
	assert_int_equal(
		post(&s, body, NULL, "\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,"),
		200);
	s.accept = "application/json";
	assert_int_equal(post(&s, body, NULL, "{\"jsonrpc\":\"2.0\",\"id\":1,"), 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_posts_of_json),
		cmocka_unit_test(revisions_with_a_handshake),
		cmocka_unit_test(fields_must_say_what_the_body_says),
		cmocka_unit_test(progress_makes_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
