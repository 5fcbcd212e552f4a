/* SPDX-License-Identifier: Apache-2.0 */
/* schema_check.c - see registry.h. The first thing that is wrong ends the check: one sentence is enough to
 * mend a call. */
#include "mcp/registry.h"

#include <math.h>

#define PATH_MAX_BYTES 128
#define VALUE_SHOWN    40 /* bytes of a wrong value */

struct place {
	char path[PATH_MAX_BYTES];
};

static int check(
	const json_t *schema, const json_t *value, const struct place *at, struct buf *why);

static const char *type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT: return "object";
	case JSON_ARRAY: return "array";
	case JSON_STRING: return "string";
	case JSON_INTEGER: return "integer";
	case JSON_REAL: return "number";
	case JSON_TRUE:
	case JSON_FALSE: return "boolean";
	case JSON_NULL: break;
	}
	return "null";
}

/* 10.0 is an integer too. */
static bool has_type(const json_t *v, const char *type)
{
	if (!strcmp(type, "number"))
		return json_is_number(v);
	if (!strcmp(type, "integer") && json_is_real(v))
		return trunc(json_real_value(v)) == json_real_value(v);
	return !strcmp(type, type_name(v));
}

static const char *place_name(const struct place *at)
{
	return at->path[0] ? at->path : "the arguments";
}

static int check_type(const json_t *type, const json_t *v, const struct place *at, struct buf *why)
{
	const json_t *one;
	size_t i;

	if (json_is_string(type) && !has_type(v, json_string_value(type))) {
		buf_printf(why, "%s must be of type %s, not %s", place_name(at),
			json_string_value(type), type_name(v));
		return -EINVAL;
	}
	if (!json_is_array(type))
		return 0;
	json_array_foreach (type, i, one)
		if (has_type(v, json_string_value(one)))
			return 0;
	buf_printf(why, "%s: type %s is not allowed", place_name(at), type_name(v));
	return -EINVAL;
}

static int check_enum(const json_t *list, const json_t *v, const struct place *at, struct buf *why)
{
	const json_t *one;
	size_t i;

	if (!list)
		return 0;
	json_array_foreach (list, i, one)
		if (json_equal(one, v))
			return 0;
	buf_printf(why, "%s must be one of:", place_name(at));
	json_array_foreach (list, i, one)
		buf_printf(why, "%s %s", i ? "," : "", json_string_value(one));
	return -EINVAL;
}

static int check_limits(
	const json_t *schema, const json_t *v, const struct place *at, struct buf *why)
{
	const json_t *min = json_object_get(schema, "minimum");
	const json_t *max = json_object_get(schema, "maximum");

	if (!json_is_number(v) || ((!min || json_number_value(v) >= json_number_value(min)) &&
					  (!max || json_number_value(v) <= json_number_value(max))))
		return 0;
	buf_printf(why, "%s must be", place_name(at));
	if (min)
		buf_printf(why, " at least %.15g", json_number_value(min));
	if (max)
		buf_printf(why, "%s at most %.15g", min ? " and" : "", json_number_value(max));
	buf_printf(why, ", not %.15g", json_number_value(v));
	return -EINVAL;
}

static int check_length(
	const json_t *schema, const json_t *v, const struct place *at, struct buf *why)
{
	const json_t *min = json_object_get(schema, "minLength");
	const json_t *max = json_object_get(schema, "maxLength");

	if (!json_is_string(v))
		return 0;
	if (min && (json_int_t)json_string_length(v) < json_integer_value(min)) {
		buf_printf(why, "%s must not be empty", place_name(at));
		return -EINVAL;
	}
	if (max && (json_int_t)json_string_length(v) > json_integer_value(max)) {
		buf_printf(why, "%s is longer than %lld bytes", place_name(at),
			(long long)json_integer_value(max));
		return -EINVAL;
	}
	return 0;
}

static int check_items(
	const json_t *schema, const json_t *v, const struct place *at, struct buf *why)
{
	const json_t *items = json_object_get(schema, "items");
	const json_t *max = json_object_get(schema, "maxItems");
	const json_t *one;
	struct place below;
	size_t i;
	int r = 0;

	if (!json_is_array(v))
		return 0;
	if (max && (json_int_t)json_array_size(v) > json_integer_value(max)) {
		buf_printf(why, "%s has more than %lld elements", place_name(at),
			(long long)json_integer_value(max));
		return -EINVAL;
	}
	json_array_foreach (v, i, one) {
		snprintf(below.path, sizeof(below.path), "%.100s[%zu]", at->path, i);
		r = items ? check(items, one, &below, why) : 0;
		if (r < 0)
			break;
	}
	return r;
}

static int fail_unknown(
	const json_t *properties, const char *key, const struct place *at, struct buf *why)
{
	const char *known;
	const json_t *one;
	const char *comma = "; valid names: ";

	buf_printf(why, "%s: unknown name \"%.*s\"", place_name(at), VALUE_SHOWN, key);
	json_object_foreach ((json_t *)properties, known, one) {
		buf_printf(why, "%s%s", comma, known);
		comma = ", ";
	}
	return -EINVAL;
}

static int check_members(
	const json_t *schema, const json_t *v, const struct place *at, struct buf *why)
{
	const json_t *properties = json_object_get(schema, "properties"), *one;
	bool closed = json_is_false(json_object_get(schema, "additionalProperties"));
	struct place below;
	const char *key;
	int r;
	const json_t *name;
	size_t i;

	if (!json_is_object(v))
		return 0;
	json_array_foreach (json_object_get(schema, "required"), i, name)
		if (!json_object_get(v, json_string_value(name))) {
			buf_printf(why, "%s: \"%s\" is required", place_name(at),
				json_string_value(name));
			return -EINVAL;
		}
	json_object_foreach ((json_t *)v, key, one) {
		const json_t *inner = json_object_get(properties, key);

		if (!inner && closed)
			return fail_unknown(properties, key, at, why);
		snprintf(below.path, sizeof(below.path), "%.60s%s%.60s", at->path,
			at->path[0] ? "." : "", key);
		r = inner ? check(inner, one, &below, why) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int check(const json_t *schema, const json_t *value, const struct place *at, struct buf *why)
{
	int r = check_type(json_object_get(schema, "type"), value, at, why);

	r = r ?: check_enum(json_object_get(schema, "enum"), value, at, why);
	r = r ?: check_limits(schema, value, at, why);
	r = r ?: check_length(schema, value, at, why);
	r = r ?: check_items(schema, value, at, why);
	return r < 0 ? r : check_members(schema, value, at, why);
}

int schema_check(const json_t *schema, const json_t *value, struct buf *why)
{
	struct place root = {""};

	return check(schema, value, &root, why);
}
