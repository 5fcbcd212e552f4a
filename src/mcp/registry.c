/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - looks up rows of the tables and turns them into pages of lists. A cursor is the index
 * of the next row behind a letter: opaque to clients, and nothing has to be remembered for it. */
#include "mcp/registry.h"

#include "json/tree.h"

#define REGISTRY_PAGE 50 /* elements of a list in one reply, unless the offer says otherwise */

const char *param_type_name(const struct param *p, bool in_url)
{
	switch (p->type) {
	case PARAM_INTEGERS: return in_url ? "string" : "integer";
	case PARAM_INTEGER: return "integer";
	case PARAM_NUMBER: return "number";
	case PARAM_FLAG: return "boolean";
	case PARAM_TEXT: break;
	}
	return "string";
}

static void put_number(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	if (v == (double)(int64_t)v)
		json_put_int(w, (int64_t)v);
	else
		json_put_double(w, v);
}

static void put_limits(struct json_writer *w, const struct param *p)
{
	if (p->type == PARAM_TEXT) {
		put_number(w, "minLength", p->least);
		put_number(w, "maxLength", p->most);
	} else {
		put_number(w, "minimum", p->least);
		put_number(w, "maximum", p->most);
	}
}

static void put_param(struct json_writer *w, const struct param *p, bool listed)
{
	json_begin_object_member(w, p->name);
	if (p->type == PARAM_INTEGERS && !listed) {
		json_begin_array_member(w, "type");
		json_put_string(w, "integer");
		json_put_string(w, "array");
		json_end_array(w);
		json_int_member(w, "maxItems", 64);
		json_begin_object_member(w, "items");
		json_string_member(w, "type", "integer");
		put_limits(w, p);
		json_end_object(w);
	} else {
		json_string_member(w, "type", param_type_name(p, false));
	}
	if (p->choices) {
		const char *choices = p->choices;

		json_begin_array_member(w, "enum");
		while (*choices) {
			size_t len = strcspn(choices, " ");

			json_put_string_len(w, choices, len);
			choices += len + (choices[len] == ' ');
		}
		json_end_array(w);
	} else if (p->most > 0 && !listed) {
		put_limits(w, p);
	}
	json_string_member(w, "description", p->about);
	json_end_object(w);
}

static bool is_taken(const struct param *p, unsigned takes, bool listed)
{
	return p->bit & takes && !(listed && p->is_extra);
}

json_t *param_schema(const struct param *table, unsigned takes, unsigned needs, bool listed)
{
	struct json_builder tree = {0};
	struct json_writer w = json_writer_to_tree(&tree);

	json_begin_object(&w);
	json_string_member(&w, "type", "object");
	json_begin_object_member(&w, "properties");
	for (const struct param *p = table; p->name; p++)
		if (is_taken(p, takes, listed))
			put_param(&w, p, listed);
	json_end_object(&w);
	if (needs) {
		json_begin_array_member(&w, "required");
		for (const struct param *p = table; p->name; needs &= ~p->bit, p++)
			if (is_taken(p, takes & needs, listed))
				json_put_string(&w, p->name);
		json_end_array(&w);
	}
	json_bool_member(&w, "additionalProperties", false);
	json_end_object(&w);
	if (json_finish(&w) < 0)
		json_builder_done(&tree);
	return tree.root;
}

json_t *param_arguments(const struct param *table, unsigned takes, const json_t *given)
{
	json_t *copy = json_copy((json_t *)given);

	for (const struct param *p = table; copy && p->name; p++) {
		json_t *v = p->alias ? json_object_get(copy, p->alias) : NULL;

		if (!v || !(p->bit & takes) || json_object_get(copy, p->name))
			continue;
		json_object_set(copy, p->name, v);
		json_object_del(copy, p->alias);
	}
	return copy;
}

const struct registry_tool *registry_tool_find(const struct registry *o, const char *name)
{
	return name ? FIND_ROW(t, o->tools, name,
			      !strcmp(t->name, name) || (t->alias && !strcmp(t->alias, name)))
		    : NULL;
}

const struct registry_prompt *registry_prompt_find(const struct registry *o, const char *name)
{
	return name ? FIND_ROW(p, o->prompts, name, !strcmp(p->name, name)) : NULL;
}

/* "a/{x}/b" against "a/17/b": the part is not empty and holds no slash. */
static bool matches(const char *pattern, const char *uri, char variable[REGISTRY_VALUE_MAX])
{
	const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
	size_t before, after, len = strlen(uri), part;

	variable[0] = 0;
	if (!close)
		return !strcmp(pattern, uri);
	before = (size_t)(open - pattern);
	after = strlen(close + 1);
	if (len <= before + after || strncmp(pattern, uri, before) ||
		strcmp(close + 1, uri + len - after))
		return false;
	part = len - before - after;
	if (part >= REGISTRY_VALUE_MAX || memchr(uri + before, '/', part))
		return false;
	memcpy(variable, uri + before, part);
	variable[part] = 0;
	return true;
}

static const struct registry_resource *find_in(
	const struct registry_resource *rows, const char *uri, char variable[REGISTRY_VALUE_MAX])
{
	for (; rows && rows->uri; rows++)
		if (matches(rows->uri, uri, variable))
			return rows;
	return NULL;
}

const struct registry_resource *registry_resource_find(
	const struct registry *o, const char *uri, char variable[REGISTRY_VALUE_MAX])
{
	const struct registry_resource *row = find_in(o->resources, uri, variable);

	return row ? row : find_in(o->templates, uri, variable);
}

/* What an answer has at its top: a list of tools is read whole before any is used. */
static json_t *output_top(const char *output)
{
	json_t *full = json_loads(output, 0, NULL), *top = json_object(), *one;
	const char *key;

	json_object_foreach (json_object_get(full, "properties"), key, one)
		json_object_set_new(
			top, key, json_pack("{s:O}", "type", json_object_get(one, "type")));
	json_object_set_new(full, "properties", top);
	return full;
}

static void put_text(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, json_string(text));
}

static json_t *tool_row(const struct registry *o, size_t i)
{
	const struct registry_tool *t = &o->tools[i];
	json_t *row;

	if (t->is_extra)
		return NULL;
	row = json_pack("{s:s, s:s}", "name", t->name, "description", t->description);
	put_text(row, "title", t->title);
	json_object_set_new(row, "inputSchema",
		t->input ? json_loads(t->input, 0, NULL)
			 : param_schema(t->params, t->takes, t->requires, true));
	if (t->output)
		json_object_set_new(row, "outputSchema", output_top(t->output));
	if (t->annotations)
		json_object_set_new(row, "annotations", json_loads(t->annotations, 0, NULL));
	return row;
}

static json_t *resource_row(const struct registry_resource *r, const char *key)
{
	json_t *row = json_pack("{s:s, s:s}", key, r->uri, "name", r->name);

	put_text(row, "title", r->title);
	put_text(row, "description", r->description);
	put_text(row, "mimeType", r->mime);
	return row;
}

static json_t *plain_row(const struct registry *o, size_t i)
{
	return resource_row(&o->resources[i], "uri");
}

static json_t *template_row(const struct registry *o, size_t i)
{
	return resource_row(&o->templates[i], "uriTemplate");
}

static json_t *prompt_row(const struct registry *o, size_t i)
{
	const struct registry_prompt *p = &o->prompts[i];
	json_t *row = json_pack("{s:s, s:s}", "name", p->name, "description", p->description);
	json_t *list;

	put_text(row, "title", p->title);
	if (!p->arguments)
		return row;
	list = json_array();
	for (const struct registry_argument *a = p->arguments; a->name; a++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b}", "name", a->name, "description",
				      a->description, "required", a->required));
	json_object_set_new(row, "arguments", list);
	return row;
}

void registry_tool_names(const struct registry *o, struct buf *b)
{
	for (const struct registry_tool *t = o->tools; t && t->name; t++)
		if (!t->is_extra)
			buf_printf(b, "%s%s", b->len ? ", " : "", t->name);
}

static bool read_cursor(const json_t *cursor, size_t count, size_t *ret)
{
	const char *text = json_string_value(cursor);
	unsigned long v;
	char *end;

	*ret = 0;
	if (!cursor)
		return true;
	if (!text || text[0] != 'n' || text[1] < '0' || text[1] > '9')
		return false;
	v = strtoul(text + 1, &end, 10);
	*ret = v;
	return !*end && v > 0 && v < count;
}

static json_t *page(const struct registry *o, const char *key, size_t count,
	json_t *(*row)(const struct registry *o, size_t i), const json_t *cursor,
	struct rpc_error *e)
{
	size_t size = o->page ? o->page : REGISTRY_PAGE, first;
	json_t *list, *result;

	if (!read_cursor(cursor, count, &first)) {
		rpc_fail(e, RPC_INVALID_PARAMS, "invalid cursor");
		return NULL;
	}
	list = json_array();
	for (size_t i = first; i < count && i < first + size; i++) {
		json_t *one = row(o, i);

		if (one)
			json_array_append_new(list, one);
	}
	result = json_pack("{s:o}", key, list);
	if (first + size < count) {
		put_text(result, "nextCursor", FORMATTED(32, "n%zu", first + size));
	}
	return result;
}

#define COUNT(rows, field)                                                                         \
	({                                                                                         \
		size_t count_n_ = 0;                                                               \
		while ((rows) && (rows)[count_n_].field)                                           \
			count_n_++;                                                                \
		count_n_;                                                                          \
	})

json_t *registry_list_tools(const struct registry *o, const json_t *cursor, struct rpc_error *e)
{
	return page(o, "tools", COUNT(o->tools, name), tool_row, cursor, e);
}

json_t *registry_list_resources(const struct registry *o, const json_t *cursor, struct rpc_error *e)
{
	return page(o, "resources", COUNT(o->resources, uri), plain_row, cursor, e);
}

json_t *registry_list_templates(const struct registry *o, const json_t *cursor, struct rpc_error *e)
{
	return page(o, "resourceTemplates", COUNT(o->templates, uri), template_row, cursor, e);
}

json_t *registry_list_prompts(const struct registry *o, const json_t *cursor, struct rpc_error *e)
{
	return page(o, "prompts", COUNT(o->prompts, name), prompt_row, cursor, e);
}
