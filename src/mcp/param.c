/* SPDX-License-Identifier: Apache-2.0 */
/* param.c - see param.h. */
#include "mcp/param.h"

#include <stdio.h>
#include <string.h>

#include "json/writer.h"

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

static void put_choices(struct json_writer *w, const char *choices)
{
	json_begin_array_member(w, "enum");
	while (*choices) {
		size_t len = strcspn(choices, " ");

		json_put_string_len(w, choices, len);
		choices += len + (choices[len] == ' ');
	}
	json_end_array(w);
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
	if (p->choices)
		put_choices(w, p->choices);
	else if (p->most > 0 && !listed)
		put_limits(w, p);
	json_string_member(w, "description", p->about);
	json_end_object(w);
}

static bool is_taken(const struct param *p, unsigned takes, bool listed)
{
	return p->bit & takes && !(listed && p->is_extra);
}

void param_schema(
	struct buf *b, const struct param *table, unsigned takes, unsigned needs, bool listed)
{
	struct json_writer w = json_writer_to_buf(b);

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
	json_finish(&w);
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
