/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c - see builder.h. The writer keeps the order; at[d] is the container that is open at depth d. */
#include "json/builder.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/text.h"

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

	for (size_t i = 0; !v && i < len;) {
		uint32_t cp;
		int n = text_utf8_next(s + i, len - i, &cp);

		buf_append(&valid, n < 0 ? "\xef\xbf\xbd" : s + i, n < 0 ? 3 : (size_t)n);
		i += n < 0 ? 1 : (size_t)n;
	}
	return json_builder_put(t, depth, v ? v : json_stringn(buf_str(&valid), valid.len));
}
