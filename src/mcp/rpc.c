/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.c - see rpc.h. Depth is counted before anything is built, because the parser's own limit is a
 * matter of how it was compiled. */
#include "mcp/rpc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json/tree.h"

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

static bool is_too_deep(const char *text, size_t len)
{
	bool quoted = false;
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == '{' || text[i] == '[') && ++depth > RPC_DEPTH_MAX)
			return true;
		else if (!quoted && depth && (text[i] == '}' || text[i] == ']'))
			depth--;
	}
	return false;
}

int rpc_parse(const char *text, size_t len, json_t **ret, struct rpc_error *e)
{
	json_error_t why;
	json_t *doc;
	int r;

	if (len > RPC_BYTES_MAX)
		return rpc_fail(
			e, RPC_PARSE_ERROR, "the message has more than %u bytes", RPC_BYTES_MAX);
	if (is_too_deep(text, len))
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

static bool is_id(const json_t *id)
{
	return json_is_string(id) || json_is_integer(id);
}

int rpc_read(json_t *doc, struct rpc_message *ret, struct rpc_error *e)
{
	json_t *id = json_object_get(doc, "id"), *method = json_object_get(doc, "method");
	json_t *params = json_object_get(doc, "params");
	const char *version = json_string_value(json_object_get(doc, "jsonrpc"));

	*ret = (struct rpc_message){.id = is_id(id) ? id : NULL, .params = params};
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

json_t *rpc_notification(const char *method, json_t *params)
{
	return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}
