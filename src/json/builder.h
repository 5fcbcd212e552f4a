/* SPDX-License-Identifier: Apache-2.0 */
/* builder.h - what is written to a JSON writer, as a tree of jansson's: no text is made and read again. */
#pragma once

#include <jansson.h>

#include "json/writer.h"

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
