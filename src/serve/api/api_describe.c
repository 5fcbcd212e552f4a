/* SPDX-License-Identifier: Apache-2.0 */
/* api_describe.c - the routes as an OpenAPI 3.1 document, made from the table that the server uses.
 */
#include "serve/serve_private.h"

#define ID_MAX 64

static bool is_described(const struct api_row *r)
{
	return r->path && (!strncmp(r->path, "/api/", 5) || !strcmp(r->path, "/healthz"));
}

static void put_param(struct json_writer *w, const struct param *p)
{
	json_begin_object(w);
	json_string_member(w, "name", p->name);
	json_string_member(w, "in", "query");
	json_string_member(w, "description", p->about);
	json_begin_object_member(w, "schema");
	json_string_member(w, "type", param_type_name(p, true));
	json_end_object(w);
	json_end_object(w);
}

static void put_content(struct json_writer *w, const char *ref)
{
	json_begin_object_member(w, "content");
	json_begin_object_member(w, "application/json");
	json_begin_object_member(w, "schema");
	if (ref)
		json_string_member(w, "$ref", ref);
	json_end_object(w);
	json_end_object(w);
	json_end_object(w);
}

static void put_response(
	struct json_writer *w, const char *status, const char *about, const char *ref)
{
	json_begin_object_member(w, status);
	json_string_member(w, "description", about);
	put_content(w, ref);
	json_end_object(w);
}

static void put_body(struct json_writer *w)
{
	json_begin_object_member(w, "requestBody");
	json_bool_member(w, "required", true);
	put_content(w, "#/components/schemas/Query");
	json_end_object(w);
}

/* "/api/v1/flame/diff" is the operation "flame-diff". */
static const char *id_of(const char *path, char out[ID_MAX])
{
	static const char root[] = "/api/v1/";

	snprintf(out, ID_MAX, "%s", path + (strncmp(path, root, strlen(root)) ? 1 : strlen(root)));
	for (char *p = out; *p; p++)
		if (*p == '/')
			*p = '-';
	return out;
}

static void put_route(struct json_writer *w, const struct api_row *r)
{
	bool post = !strcmp(r->method, "POST");
	char id[ID_MAX];

	json_begin_object_member(w, r->path);
	json_begin_object_member(w, post ? "post" : "get");
	json_string_member(w, "operationId", id_of(r->path, id));
	json_string_member(w, "summary", r->summary);
	json_begin_array_member(w, "parameters");
	for (const struct param *p = api_params; p->name; p++)
		if (r->params & p->bit)
			put_param(w, p);
	json_end_array(w);
	if (post)
		put_body(w);
	if (r->open) {
		json_begin_array_member(w, "security");
		json_end_array(w);
	}
	json_begin_object_member(w, "responses");
	put_response(w, "200", r->summary, NULL);
	put_response(w, "default", "one sentence: what is wrong and what to do",
		"#/components/schemas/Error");
	json_end_object(w);
	json_end_object(w);
	json_end_object(w);
}

static void put_property(struct json_writer *w, const char *name, const char *type)
{
	json_begin_object_member(w, name);
	json_string_member(w, "type", type);
	json_end_object(w);
}

static void put_schema(struct json_writer *w, const char *name, const char *const *properties,
	const char *required)
{
	json_begin_object_member(w, name);
	json_string_member(w, "type", "object");
	json_begin_array_member(w, "required");
	json_put_string(w, required);
	json_end_array(w);
	json_begin_object_member(w, "properties");
	for (; *properties; properties += 2)
		put_property(w, properties[0], properties[1]);
	json_end_object(w);
	json_end_object(w);
}

static void put_components(struct json_writer *w)
{
	static const char *const query[] = {
		"sql", "string", "limit", "integer", "timeout_ms", "integer", NULL};
	static const char *const error[] = {"error", "string", "hint", "string", NULL};

	json_begin_object_member(w, "components");
	json_begin_object_member(w, "schemas");
	put_schema(w, "Query", query, "sql");
	put_schema(w, "Error", error, "error");
	json_end_object(w);
	json_begin_object_member(w, "securitySchemes");
	json_begin_object_member(w, "bearer");
	json_string_member(w, "type", "http");
	json_string_member(w, "scheme", "bearer");
	json_end_object(w);
	json_end_object(w);
	json_end_object(w);
}

static void put_document(struct json_writer *w, const char *version)
{
	json_begin_object(w);
	json_string_member(w, "openapi", "3.1.0");
	json_begin_object_member(w, "info");
	json_string_member(w, "title", "ingero");
	json_string_member(w, "version", version);
	json_end_object(w);
	json_begin_array_member(w, "security");
	json_begin_object(w);
	json_begin_array_member(w, "bearer");
	json_end_array(w);
	json_end_object(w);
	json_end_array(w);
	json_begin_object_member(w, "paths");
	for (const struct api_row *r = api_rows; r->summary; r++)
		if (is_described(r))
			put_route(w, r);
	json_end_object(w);
	put_components(w);
	json_end_object(w);
}

void api_describe(void *arg, struct http_exchange *x, const struct http_request *q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct json_writer w = json_writer_to_buf(&b);
	struct serve *s = arg;

	(void)q;
	put_document(&w, s->settings.version ? s->settings.version : "");
	serve_put_node(s, x);
	if (json_finish(&w) < 0)
		http_reply_error(x, 500, "cannot write the description");
	else
		http_reply(x, 200, NULL, buf_str(&b), b.len);
}
