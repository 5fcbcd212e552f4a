/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - jansson's values from and to text, with want of memory told from bad text.
 *
 * jansson itself calls it an invalid token where memory runs out inside a string, and leaves out a
 * key, without a word, where it runs out while one is written. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "json/reader.h"
#include "json/writer.h"

/* json_tree_read - as json_loadb(). *ret is the caller's (json_decref()). -EINVAL: not JSON, and
 * @why says why (NULL: not wanted); -ENOMEM. */
int json_tree_read(const char *text, size_t len, size_t flags, json_t **ret, json_error_t *why);

/* json_tree_write - appends @value to @out, whose first failure sticks as ever. 0 or out->err. */
int json_tree_write(const json_t *value, size_t flags, struct buf *out);

/* A value from a reader to a writer: what a stranger sent, as JSON of our own making. */

/* json_copy_value - writes the value that @token begins. False if the reader fails in it; the
 * writer's error is told by json_finish(). */
bool json_copy_value(struct json_reader *r, enum json_read token, struct json_writer *w);

/* What is written to a JSON writer, as a tree of jansson's: no text is made and read again. */

#define JSON_KEY_MAX 128

struct json_builder {
	json_t *root; /* what has been written; take it out, or json_builder_done() frees it */
	/* How a text becomes a string; NULL: bad UTF-8 becomes U+FFFD. */
	json_t *(*text)(const char *s, size_t len);
	/* private */
	json_t *at[JSON_DEPTH_MAX + 1];
	char key[JSON_KEY_MAX];
};

struct json_writer json_writer_to_tree(struct json_builder *t);
void json_builder_done(struct json_builder *t);

/* ---- for writer.c: @depth is of the container that the value goes into ---- */

int json_builder_put(
	struct json_builder *t, unsigned depth, json_t *v); /* takes @v; NULL: -ENOMEM */
int json_builder_open(struct json_builder *t, unsigned depth, bool object);
int json_builder_text(struct json_builder *t, unsigned depth, const char *s, size_t len);
void json_builder_key(struct json_builder *t, const char *key);
