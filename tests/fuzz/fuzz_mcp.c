/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of MCP, one message each, to a small set of tools: whatever is said, an answer is one line
 * of JSON-RPC, and the same body by HTTP has a status. */
#include <jansson.h>

#include "../unit/mcp_fixture.h"
#include "fuzz.h"
#include "mcp/http_transport.h"
#include "mcp/registry.h"

static void check_message(const json_t *m)
{
	const char *version = json_string_value(json_object_get(m, "jsonrpc"));

	MUST(json_is_object(m) && version && strcmp(version, "2.0") == 0);
	MUST(!json_object_get(m, "result") != !json_object_get(m, "error"));
}

static void check_reply(const struct buf *reply)
{
	json_t *doc, *m;
	size_t i;

	if (!reply->len)
		return;
	MUST(!reply->err && reply->data[reply->len - 1] == '\n');
	MUST(memchr(reply->data, '\n', reply->len) == reply->data + reply->len - 1);
	doc = json_loadb(reply->data, reply->len, 0, NULL);
	MUST(doc);
	if (json_is_array(doc))
		json_array_foreach (doc, i, m)
			check_message(m);
	else
		check_message(doc);
	json_decref(doc);
}

static const char *field_of(const void *arg, const char *name)
{
	if (strcmp(name, "content-type") == 0)
		return "application/json";
	if (strcmp(name, "accept") == 0)
		return "application/json, text/event-stream";
	return strcmp(name, "mcp-protocol-version") == 0 ? arg : NULL;
}

static void check_post(const struct dispatcher *t, const char *body, size_t len)
{
	static const char *const versions[] = {"2025-06-18", "2024-11-05", NULL};

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct http_transport_request q = {.method = "POST",
			.body = body,
			.body_len = len,
			.field = field_of,
			.field_arg = versions[i]};
		struct http_transport_reply r = {0};

		http_transport_answer(t, &q, &r);
		MUST(r.status >= 200 && r.status < 600);
		MUST(!r.body.len || r.type);
		buf_done(&r.body);
	}
}

static void check_shape(const char *text, size_t len)
{
	static const char schema_text[] =
		"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"a\"],"
		"\"properties\":{\"a\":{\"type\":[\"integer\",\"string\"],\"minimum\":1},"
		"\"b\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"enum\":[\"x\",1]}},"
		"\"c\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":3}}}";
	json_t *schema = json_loads(schema_text, 0, NULL);
	json_t *value = json_loadb(text, len, JSON_DECODE_ANY, NULL);
	_cleanup_buf_ struct buf why = BUF_INIT(SCHEMA_CHECK_SENTENCE);

	if (value && schema_check(schema, value, &why) < 0)
		MUST(why.len > 0);
	json_decref(value);
	json_decref(schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct dispatcher *t;
	struct dispatcher_lines session = {0};
	const char *p = (const char *)data, *end = p + size;

	if (!t)
		t = fixture_talk();
	MUST(t);
	check_post(t, p, size);
	check_shape(p, size);
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((nl ? nl : end) - p);
		struct buf reply = BUF_INIT(HTTP_TRANSPORT_REPLY_MAX);

		dispatcher_line(t, &session, p, len, &reply);
		check_reply(&reply);
		buf_done(&reply);
		p += len + 1;
	}
	return 0;
}
