/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.c - /api/v2 as an OpenAPI 3.1 document, made from the table of tools. */

#include "cluster/answer/echo_private.h"
#include "config.h"
#include "json/tree.h"
#include "mcp/rpc.h"

static json_t *content(json_t *schema)
{
	return json_pack("{s:{s:o}}", "application/json", "schema", schema);
}

static json_t *envelope(json_t *data)
{
	return json_pack("{s:s, s:{s:{s:b}, s:o, s:{s:s, s:s}}, s:[s,s]}", "type", "object",
		"properties", "ok", "const", 1, "data", data, "text", "type", "string",
		"description", "the answer in a few sentences", "required", "ok", "data");
}

static json_t *responses(json_t *data)
{
	static const struct {
		const char *status, *about;
	} failures[] = {
		{"400", "invalid arguments"},
		{"401", "missing or unknown token"},
		{"403", "the token lacks the permission, or may not see that cluster"},
		{"408", "timeout: narrow the query"},
		{"413", "too large"},
		{"429", "too many requests with this token: see Retry-After"},
		{"503", "temporarily unavailable: see Retry-After"},
	};
	json_t *o = json_pack("{s:{s:s, s:o}}", "200", "description", "the answer", "content",
		content(envelope(data)));

	for (size_t i = 0; i < ARRAY_SIZE(failures); i++)
		json_object_set_new(o, failures[i].status,
			json_pack("{s:s, s:o}", "description", failures[i].about, "content",
				content(json_pack("{s:s}", "$ref", "#/components/schemas/Error"))));
	return o;
}

static json_t *operation(const char *id, const char *summary, const char *description, json_t *data)
{
	return json_pack("{s:s, s:s, s:s*, s:o}", "operationId", id, "summary", summary,
		"description", description, "responses", responses(data));
}

static json_t *schema_of(const char *text)
{
	json_t *v = NULL;

	return json_tree_read(text, strlen(text), 0, &v, NULL) == 0 ? v : NULL;
}

static void put_body(json_t *o, json_t *schema, bool required)
{
	json_object_set_new(o, "requestBody",
		json_pack("{s:b, s:o}", "required", (int)required, "content", content(schema)));
}

static json_t *parameters(const json_t *input)
{
	json_t *properties = json_object_get(input, "properties"), *list = json_array(), *one;
	const char *key;

	json_object_foreach (properties, key, one)
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:O, s:O}", "name", key, "in", "query", "description",
				json_object_get(one, "description"), "schema", one));
	return list;
}

static json_t *tool_path(const struct echo_tool *t)
{
	const struct tool *row = t->tool;
	json_t *path = json_object(), *o;
	bool sql = row->verb & TENANT_SQL;

	o = operation(row->name, row->title, row->description, schema_of(row->output));
	put_body(o, json_incref(t->input), sql);
	json_object_set_new(path, "post", o);
	if (sql)
		return path;
	o = operation(FORMATTED(TOOL_ID_MAX, "get_%s", row->name), row->title, row->description,
		schema_of(row->output));
	json_object_set_new(o, "parameters", parameters(t->input));
	json_object_set_new(path, "get", o);
	return path;
}

/* ---- what is no tool ---- */

static const struct {
	const char *path, *id, *summary, *data;
	bool open;
} fixed[] = {
	{"/api/v2/tools/list", "list_tools", "The tools with their schemas",
		"{\"type\":\"object\",\"properties\":{\"tools\":{\"type\":\"array\",\"items\":"
		"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
		"\"title\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"},"
		"\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":{\"type\":\"object\"}},"
		"\"required\":[\"name\",\"title\",\"description\",\"inputSchema\",\"outputSchema\"]}}},"
		"\"required\":[\"tools\"]}",
		false},
	{"/api/v2/whoami", "whoami", "What the token may do and see",
		"{\"type\":\"object\",\"properties\":{\"tenant_scoped\":{\"type\":\"boolean\"},"
		"\"clusters\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"string\"}},"
		"\"verbs\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
		"\"expires\":{\"type\":[\"string\",\"null\"]}},"
		"\"required\":[\"tenant_scoped\",\"clusters\",\"verbs\",\"expires\"]}",
		false},
	{"/api/v2/health", "health", "Health of the service",
		"{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"string\"},"
		"\"why\":{\"type\":[\"string\",\"null\"]},\"version\":{\"type\":\"string\"},"
		"\"engine\":{\"type\":\"string\"},\"uptime_s\":{\"type\":\"number\"},"
		"\"store\":{\"type\":\"object\"}},\"required\":[\"status\",\"version\",\"engine\"]}",
		false},
	{"/api/v2/openapi.json", "openapi", "This document", NULL, false},
	{"/api/versions", "versions", "Versions of the API", NULL, true},
};

static json_t *plain_path(size_t i)
{
	json_t *o = operation(fixed[i].id, fixed[i].summary, NULL,
		schema_of(fixed[i].data ? fixed[i].data : "{\"type\":\"object\"}"));

	if (!fixed[i].data) /* without the envelope */
		json_object_set_new(o, "responses",
			json_pack("{s:{s:s, s:o}}", "200", "description", "the document", "content",
				content(json_pack("{s:s}", "type", "object"))));
	if (fixed[i].open)
		json_object_set_new(o, "security", json_array());
	return json_pack("{s:o}", "get", o);
}

static json_t *paths(struct echo_server *e)
{
	const struct echo_tool *sql = echo_tool_find(e, "run_analysis");
	json_t *o = json_object(), *op;

	for (size_t i = 0; i < e->tool_count; i++) {
		char path[TOOL_ID_MAX];

		snprintf(path, sizeof(path), "/api/v2/tools/%s", e->tools[i].tool->name);
		json_object_set_new(o, path, tool_path(&e->tools[i]));
	}
	op = operation(
		"sql", sql->tool->title, sql->tool->description, schema_of(sql->tool->output));
	put_body(op, json_incref(sql->input), true);
	json_object_set_new(o, "/api/v2/sql", json_pack("{s:o}", "post", op));
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		json_object_set_new(o, fixed[i].path, plain_path(i));
	return o;
}

static json_t *components(void)
{
	return json_pack("{s:{s:{s:s, s:s}}, s:{s:{s:s, s:{s:{s:b}, s:{s:s, s:{s:{s:s}, s:{s:s}}, "
			 "s:[s,s]}}, s:[s,s]}}}",
		"securitySchemes", "token", "type", "http", "scheme", "bearer", "schemas", "Error",
		"type", "object", "properties", "ok", "const", 0, "error", "type", "object",
		"properties", "code", "type", "string", "message", "type", "string", "required",
		"code", "message", "required", "ok", "error");
}

int openapi_write(struct echo_server *e, struct buf *b)
{
	_cleanup_json_ json_t *doc = json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:s}], "
					       "s:[{s:[]}], s:o, s:o}",
		"openapi", "3.1.0", "info", "title", "Ingero Echo", "version", INGERO_VERSION,
		"description", "Queries over the stored data of GPU clusters", "license", "name",
		"Apache-2.0", "identifier", "Apache-2.0", "servers", "url", "/", "security",
		"token", "paths", paths(e), "components", components());

	return doc ? json_tree_write(doc, RPC_DUMP, b) : -ENOMEM;
}
