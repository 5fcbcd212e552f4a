/* SPDX-License-Identifier: Apache-2.0 */
/* test_dispatcher.c - lines in, lines out: the handshake, the stateless revision, tools, resources,
 * prompts, completions, batches, and what is no message at all. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "mcp_fixture.h"

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

struct chat {
	struct dispatcher *dispatcher;
	struct dispatcher_lines lines;
	json_t *reply; /* the last; NULL: there was none */
	int notes;
};

static void note(void *arg, const char *text, size_t len)
{
	struct chat *c = arg;

	assert_non_null(strstr(text, "notifications/progress"));
	c->notes++;
}

static json_t *say(struct chat *c, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	dispatcher_line(c->dispatcher, &c->lines, text, strlen(text), &b);
	json_decref(c->reply);
	c->reply = b.len ? json_loads(buf_str(&b), 0, NULL) : NULL;
	if (b.len) {
		assert_non_null(c->reply);
		assert_ptr_equal(strchr(b.data, '\n'), b.data + b.len - 1);
	}
	return c->reply;
}

static json_t *ask(struct chat *c, const char *method, const char *params)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	buf_printf(&b, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"%s\",\"params\":{%s}}", method,
		params);
	return say(c, buf_str(&b));
}

static const char *at(const json_t *v, const char *path)
{
	static char out[256];
	char copy[128], *save, *part;

	snprintf(copy, sizeof(copy), "%s", path);
	for (part = strtok_r(copy, "/", &save); part; part = strtok_r(NULL, "/", &save))
		v = part[0] >= '0' && part[0] <= '9' ? json_array_get(v, (size_t)atoi(part))
						     : json_object_get(v, part);
	if (!v)
		return "(none)";
	if (json_is_string(v))
		return json_string_value(v);
	snprintf(out, sizeof(out), "%s",
		json_is_true(v)    ? "true"
		: json_is_false(v) ? "false"
				   : "");
	if (json_is_integer(v))
		snprintf(out, sizeof(out), "%lld", (long long)json_integer_value(v));
	return out;
}

static int begin(void **state)
{
	struct chat *c = calloc(1, sizeof(*c));

	c->dispatcher = fixture_talk();
	c->lines.notify = note;
	c->lines.notify_arg = c;
	*state = c;
	return c->dispatcher ? 0 : -1;
}

static int end(void **state)
{
	struct chat *c = *state;

	json_decref(c->reply);
	dispatcher_free(c->dispatcher);
	free(c);
	return 0;
}

static void a_handshake(void **state)
{
	struct chat *c = *state;
	json_t *r = ask(c, "initialize", "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}");

	assert_string_equal(at(r, "result/protocolVersion"), "2025-06-18");
	assert_string_equal(at(r, "result/serverInfo/name"), "fixture");
	assert_non_null(json_object_get(
		json_object_get(json_object_get(r, "result"), "capabilities"), "tools"));
	assert_null(say(c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"));
	r = ask(c, "ping", "");
	assert_int_equal(json_object_size(json_object_get(r, "result")), 0);
	r = ask(c, "server/discover", "");
	assert_string_equal(at(r, "error/code"), "-32601");
	r = ask(c, "initialize", "");
	assert_string_equal(at(r, "error/code"), "-32602");
	assert_null(json_object_get(ask(c, "tools/list", ""), "resultType"));
}

static void without_state(void **state)
{
	struct chat *c = *state;
	json_t *r = ask(c, "server/discover", META);

	assert_string_equal(at(r, "result/supportedVersions/0"), "2026-07-28");
	assert_string_equal(at(r, "result/resultType"), "complete");
	assert_string_equal(at(r, "result/cacheScope"), "private");
	assert_string_equal(at(ask(c, "ping", META), "error/code"), "-32601");
	assert_string_equal(at(ask(c, "initialize", META), "error/code"), "-32601");
	r = ask(c, "tools/list", META);
	assert_true(json_is_integer(json_object_get(json_object_get(r, "result"), "ttlMs")));
	r = ask(c, "tools/list",
		"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"1900-01-01\","
		"\"io.modelcontextprotocol/clientCapabilities\":{}}");
	assert_string_equal(at(r, "error/code"), "-32022");
	assert_string_equal(at(r, "error/data/requested"), "1900-01-01");
	assert_string_equal(at(r, "error/data/supported/1"), "2025-11-25");
	r = ask(c, "tools/list",
		"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}");
	assert_string_equal(at(r, "error/code"), "-32602");
	r = ask(c, "tools/call", "\"name\":\"asks\"," META);
	assert_string_equal(at(r, "error/code"), "-32021");
	assert_true(json_is_object(json_object_get(
		json_object_get(json_object_get(json_object_get(r, "error"), "data"),
			"requiredCapabilities"),
		"sampling")));
	/* Nothing of it was kept. */
	assert_null(c->lines.agreed);
}

static void tools(void **state)
{
	struct chat *c = *state;
	json_t *r = ask(c, "tools/call", "\"name\":\"echo\",\"arguments\":{\"n\":3}");

	assert_string_equal(at(r, "result/structuredContent/n"), "3");
	assert_string_equal(at(r, "result/content/0/text"), "echo");
	assert_string_equal(at(r, "result/isError"), "false");
	assert_int_equal(c->notes, 0);
	ask(c, "tools/call",
		"\"name\":\"echo\",\"arguments\":{\"n\":3},\"_meta\":{\"progressToken\":1}");
	assert_int_equal(c->notes, 1);
	r = ask(c, "tools/call", "\"name\":\"echo\",\"arguments\":{\"n\":\"x\"}");
	assert_string_equal(at(r, "result/isError"), "true");
	assert_string_equal(
		at(r, "result/content/0/text"), "n must be of type integer, not string.");
	assert_string_equal(
		at(ask(c, "tools/call", "\"name\":\"echo\""), "result/isError"), "true");
	assert_string_equal(at(ask(c, "tools/call", "\"name\":\"none\""), "error/code"), "-32602");
	r = ask(c, "tools/call", "\"name\":\"large\"");
	assert_string_equal(at(r, "result/isError"), "true");
	assert_non_null(strstr(at(r, "result/content/0/text"), "Ask for less."));
}

static void resources_and_prompts(void **state)
{
	struct chat *c = *state;
	json_t *r = ask(c, "resources/read", "\"uri\":\"test://x/9/y\"");

	assert_string_equal(at(r, "result/contents/0/text"), "9");
	r = ask(c, "resources/read", "\"uri\":\"test://x/gone/y\"");
	assert_string_equal(at(r, "error/code"), "-32002");
	r = ask(c, "resources/read", "\"uri\":\"test://none\"," META);
	assert_string_equal(at(r, "error/code"), "-32602");
	assert_string_equal(at(r, "error/data/uri"), "test://none");
	assert_string_equal(at(ask(c, "resources/read", ""), "error/code"), "-32602");
	r = ask(c, "prompts/get", "\"name\":\"greet\",\"arguments\":{\"who\":\"you\"}");
	assert_string_equal(at(r, "result/messages/0/content/text"), "you");
	assert_string_equal(
		at(ask(c, "prompts/get", "\"name\":\"greet\""), "error/code"), "-32602");
	r = ask(c, "prompts/get", "\"name\":\"greet\",\"arguments\":{\"who\":1}");
	assert_string_equal(at(r, "error/code"), "-32602");
	r = ask(c, "completion/complete",
		"\"ref\":{\"type\":\"ref/resource\",\"uri\":\"test://x/{id}/y\"},"
		"\"argument\":{\"name\":\"id\",\"value\":\"a\"}");
	assert_string_equal(at(r, "result/completion/values/99"), "a99");
	assert_string_equal(at(r, "result/completion/values/100"), "(none)");
	assert_string_equal(at(r, "result/completion/total"), "120");
	assert_string_equal(at(r, "result/completion/hasMore"), "true");
}

static void batches(void **state)
{
	static const char two[] =
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\","
		"\"method\":\"notifications/x\"},{\"jsonrpc\":\"2.0\",\"id\":2,"
		"\"method\":\"none\"},5]";
	struct chat *c = *state;

	assert_string_equal(at(say(c, two), "error/code"), "-32600");
	ask(c, "initialize", "\"protocolVersion\":\"2025-11-25\"");
	assert_string_equal(at(say(c, two), "error/code"), "-32600");
	ask(c, "initialize", "\"protocolVersion\":\"2025-03-26\"");
	assert_int_equal(json_array_size(say(c, two)), 3);
	assert_string_equal(at(c->reply, "1/error/code"), "-32601");
	assert_string_equal(at(c->reply, "2/error/code"), "-32600");
	assert_string_equal(at(say(c, "[]"), "error/code"), "-32600");
	assert_null(say(c, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]"));
}

static void what_is_wrong_is_answered_and_over(void **state)
{
	struct chat *c = *state;

	assert_string_equal(at(say(c, "{\"jsonrpc\":"), "error/code"), "-32700");
	assert_string_equal(at(say(c, "\xff\xfe"), "error/code"), "-32700");
	assert_string_equal(at(say(c, "{}"), "error/code"), "-32600");
	assert_true(json_is_null(json_object_get(c->reply, "id")));
	assert_null(say(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"));
	assert_string_equal(at(ask(c, "none", ""), "error/code"), "-32601");
	assert_string_equal(at(ask(c, "tools/list", "\"cursor\":\"x\""), "error/code"), "-32602");
	assert_non_null(json_object_get(ask(c, "tools/list", ""), "result"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_handshake, begin, end),
		cmocka_unit_test_setup_teardown(without_state, begin, end),
		cmocka_unit_test_setup_teardown(tools, begin, end),
		cmocka_unit_test_setup_teardown(resources_and_prompts, begin, end),
		cmocka_unit_test_setup_teardown(batches, begin, end),
		cmocka_unit_test_setup_teardown(what_is_wrong_is_answered_and_over, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
