/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.c - see rpc.h. Depth is counted before anything is built, because the parser's own limit is a
 * matter of how it was compiled. */
#include "mcp/rpc.h"

#include "base/buf.h"
#include "json/tree.h"

extern const struct revision revisions[]; /* newest first */

#define NO_RESOURCE_OLD (-32002)
#define NO_RESOURCE     (-32602)

const struct revision revisions[] = {
	{"2026-07-28", true, false, true, NO_RESOURCE},
	{"2025-11-25", false, false, true, NO_RESOURCE_OLD},
	{"2025-06-18", false, false, true, NO_RESOURCE_OLD},
	{"2025-03-26", false, true, false, NO_RESOURCE_OLD},
	{NULL, false, false, false, 0},
};

const struct revision *revision_find(const char *name)
{
	return name ? FIND_ROW(r, revisions, name, !strcmp(r->name, name)) : NULL;
}

const struct revision *revision_agree(const char *asked)
{
	const struct revision *r = revision_find(asked);

	if (r && !r->stateless)
		return r;
	for (r = revisions; r->stateless; r++)
		;
	return r;
}

const struct revision *revision_assumed(void)
{
	return revision_find("2025-03-26");
}

json_t *revision_names(void)
{
	json_t *names = json_array();

	for (const struct revision *r = revisions; r->name; r++)
		json_array_append_new(names, json_string(r->name));
	return names;
}

#define SENTENCE_MAX 1024

static json_t *rpc_notification(const char *method, json_t *params)
{
	return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}

void call_progress(const struct call *c, double done, double total, const char *message)
{
	_cleanup_json_ json_t *note = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT(RPC_BYTES_MAX);

	if (!c->notify || !c->progress_token)
		return;
	note = rpc_notification("notifications/progress",
		json_pack("{s:O, s:f, s:f, s:s*}", "progressToken", (json_t *)c->progress_token,
			"progress", done, "total", total, "message", message));
	if (note && json_tree_write(note, RPC_DUMP, &text) == 0)
		c->notify(c->notify_arg, text.data, text.len);
}

int answer_init(struct answer *a)
{
	*a = (struct answer){.content = json_array()};
	return a->content ? 0 : -ENOMEM;
}

void answer_done(struct answer *a)
{
	json_decref(a->content);
	json_decref(a->structured);
	*a = (struct answer){0};
}

void answer_text(struct answer *a, const char *text)
{
	json_t *block = json_pack("{s:s, s:s}", "type", "text", "text", text);

	block = block ?: json_pack("{s:s, s:s}", "type", "text", "text", "(not UTF-8)");
	json_array_append_new(a->content, block);
}

void answer_structured_as_text(struct answer *a, const char *mark)
{
	_cleanup_buf_ struct buf text = BUF_INIT(2 * RPC_BYTES_MAX);

	if (mark)
		buf_printf(&text, "[%s]\n", mark);
	json_tree_write(a->structured, RPC_DUMP, &text);
	if (mark)
		buf_printf(&text, "\n[/%s]", mark);
	answer_text(a, text.err ? "the answer is too large" : buf_str(&text));
	json_decref(a->structured);
	a->structured = NULL;
}

void answer_fail(struct answer *a, const char *fmt, ...)
{
	char text[SENTENCE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_clear(a->content);
	json_decref(a->structured);
	a->structured = NULL;
	a->failed = true;
	answer_text(a, text);
}

int rpc_fail(struct rpc_error *e, int code, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->message, sizeof(e->message), fmt, ap);
	va_end(ap);
	return -EPROTO;
}

void rpc_error_done(struct rpc_error *e)
{
	json_decref(e->data);
	*e = (struct rpc_error){0};
}

struct shape { /* of a text, should it be JSON */
	size_t depth;
	size_t commas; /* of its outermost value */
};

static struct shape shape_of(const char *text, size_t len)
{
	struct shape s = {0};
	bool quoted = false;
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == '{' || text[i] == '['))
			s.depth = MAX(s.depth, ++depth);
		else if (!quoted && depth && (text[i] == '}' || text[i] == ']'))
			depth--;
		else if (!quoted && depth == 1 && text[i] == ',')
			s.commas++;
	}
	return s;
}

unsigned rpc_count(const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && strchr(" \t\r\n", text[i]))
		i++;
	if (i == len || text[i] != '[')
		return 1;
	return (unsigned)MIN(shape_of(text, len).commas + 1, (size_t)RPC_BATCH_MAX);
}

int rpc_parse(const char *text, size_t len, json_t **ret, struct rpc_error *e)
{
	json_error_t why;
	json_t *doc;
	int r;

	if (len > RPC_BYTES_MAX)
		return rpc_fail(
			e, RPC_PARSE_ERROR, "the message has more than %u bytes", RPC_BYTES_MAX);
	if (shape_of(text, len).depth > RPC_DEPTH_MAX)
		return rpc_fail(
			e, RPC_PARSE_ERROR, "the message is nested deeper than %d", RPC_DEPTH_MAX);
	r = json_tree_read(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &doc, &why);
	if (r == -ENOMEM)
		return rpc_fail(e, RPC_INTERNAL, "out of memory");
	if (r < 0)
		return rpc_fail(e, RPC_PARSE_ERROR, "invalid JSON (near byte %d)", why.position);
	*ret = doc;
	return 0;
}

int rpc_read(json_t *doc, struct rpc_message *ret, struct rpc_error *e)
{
	json_t *id = json_object_get(doc, "id"), *method = json_object_get(doc, "method");
	json_t *params = json_object_get(doc, "params");
	const char *version = json_string_value(json_object_get(doc, "jsonrpc"));

	*ret = (struct rpc_message){
		.id = json_is_string(id) || json_is_integer(id) ? id : NULL, .params = params};
	if (!json_is_object(doc))
		return rpc_fail(e, RPC_INVALID_REQUEST, "a message must be a JSON object");
	if (!version || strcmp(version, "2.0"))
		return rpc_fail(e, RPC_INVALID_REQUEST, "\"jsonrpc\" must be \"2.0\"");
	if (id && !ret->id)
		return rpc_fail(e, RPC_INVALID_REQUEST, "\"id\" must be a string or an integer");
	if (!method && (json_object_get(doc, "result") || json_object_get(doc, "error"))) {
		ret->kind = RPC_RESPONSE;
		return 0;
	}
	ret->method = json_string_value(method);
	if (!ret->method)
		return rpc_fail(e, RPC_INVALID_REQUEST, "\"method\" must be a string");
	if (params && !json_is_object(params))
		return rpc_fail(e, RPC_INVALID_REQUEST, "\"params\" must be an object");
	ret->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
	return 0;
}

json_t *rpc_result(json_t *id, json_t *result)
{
	return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result);
}

json_t *rpc_failure(json_t *id, bool omit, const struct rpc_error *e)
{
	json_t *reply = json_pack("{s:s, s:{s:i, s:s}}", "jsonrpc", "2.0", "error", "code", e->code,
		"message", e->message);

	if (id)
		json_object_set(reply, "id", id);
	else if (!omit)
		json_object_set_new(reply, "id", json_null());
	if (e->data)
		json_object_set(json_object_get(reply, "error"), "data", e->data);
	return reply;
}
