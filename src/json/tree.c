/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h. Small texts of known shape; large ones of strangers go through exchange.h. */
#include "json/tree.h"

#include "base/text.h"

/* No recursion: the reader counts the levels. */

static void put(struct json_reader *r, enum json_read token, struct json_writer *w)
{
	switch (token) {
	case JSON_READ_NULL: json_put_null(w); break;
	case JSON_READ_BOOL: json_put_bool(w, r->b); break;
	case JSON_READ_INT: json_put_int(w, r->i); break;
	case JSON_READ_REAL: json_put_double(w, r->d); break;
	case JSON_READ_STRING: json_put_string_len(w, buf_str(&r->text), r->text.len); break;
	case JSON_READ_KEY: json_key(w, buf_str(&r->text)); break;
	case JSON_READ_OBJECT: json_begin_object(w); break;
	case JSON_READ_OBJECT_END: json_end_object(w); break;
	case JSON_READ_ARRAY: json_begin_array(w); break;
	case JSON_READ_ARRAY_END: json_end_array(w); break;
	case JSON_READ_BAD:
	case JSON_READ_END: break;
	}
}

bool json_copy_value(struct json_reader *r, enum json_read token, struct json_writer *w)
{
	bool nested = token == JSON_READ_OBJECT || token == JSON_READ_ARRAY;
	unsigned outside = r->depth - 1;

	put(r, token, w);
	while (nested && r->depth > outside) {
		token = json_read(r);
		if (token == JSON_READ_BAD)
			return false;
		put(r, token, w);
	}
	return token != JSON_READ_BAD;
}

/* The writer keeps the order; at[d] is the container that is open at depth d. */

struct json_writer json_writer_to_tree(struct json_builder *t)
{
	return (struct json_writer){.tree = t};
}

void json_builder_done(struct json_builder *t)
{
	json_decref(t->root);
	t->root = NULL;
}

void json_builder_key(struct json_builder *t, const char *key)
{
	snprintf(t->key, sizeof(t->key), "%s", key);
}

int json_builder_put(struct json_builder *t, unsigned depth, json_t *v)
{
	int r;

	if (!v)
		return -ENOMEM;
	if (!depth) {
		json_decref(t->root);
		t->root = v;
		return 0;
	}
	r = json_is_object(t->at[depth]) ? json_object_set_new(t->at[depth], t->key, v)
					 : json_array_append_new(t->at[depth], v);
	return r < 0 ? -ENOMEM : 0;
}

int json_builder_open(struct json_builder *t, unsigned depth, bool object)
{
	json_t *v = object ? json_object() : json_array();
	int r = json_builder_put(t, depth, v);

	t->at[depth + 1] = v;
	return r;
}

int json_builder_text(struct json_builder *t, unsigned depth, const char *s, size_t len)
{
	_cleanup_buf_ struct buf valid = BUF_INIT(3 * len + 1);
	json_t *v = t->text ? t->text(s, len) : json_stringn(s, len);

	if (!v)
		text_put_utf8(&valid, s, len);
	return json_builder_put(t, depth, v ? v : json_stringn(buf_str(&valid), valid.len));
}

int json_tree_read(const char *text, size_t len, size_t flags, json_t **ret, json_error_t *why)
{
	json_t *value;

	errno = 0;
	value = json_loadb(text, len, flags, why);
	if (!value)
		return errno == ENOMEM ? -ENOMEM : -EINVAL;
	*ret = value;
	return 0;
}

static int append(const char *text, size_t len, void *arg)
{
	buf_append(arg, text, len);
	return 0; /* the buffer keeps the error, which jansson does not always hand on */
}

int json_tree_write(const json_t *value, size_t flags, struct buf *out)
{
	if (json_dump_callback(value, append, out, flags) < 0 && !out->err)
		out->err = -ENOMEM;
	return out->err;
}
