/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - a streaming JSON writer that cannot emit bad JSON.
 *
 * Calls out of order (a value without its key, an end without its begin, a second top-level value),
 * nesting deeper than JSON_DEPTH_MAX and a failed output are sticky: nothing is written from then
 * on and json_finish() tells. So a caller writes freely and looks once at the end. Values are
 * json_put_X because json_string() and its like belong to jansson, which reads. */
#pragma once

#include "base/buf.h"

#define JSON_DEPTH_MAX 32

struct json_builder;

struct json_writer {
	struct buf *buf; /* exactly one of buf, file and tree is set */
	FILE *file;
	struct json_builder *tree; /* see tree.h */
	bool indent;               /* two spaces a level and a line a value; else one line */
	int err;                   /* 0, -EINVAL (bad order), -E2BIG (too deep), or of the output */
	unsigned depth;
	struct {
		bool object, has_key, has_member;
	} level[JSON_DEPTH_MAX + 1]; /* level[0] is the document */
};

struct json_writer json_writer_to_buf(struct buf *b);
/* json_writer_to_file - documents of up to half of @f's buffer come out whole. */
struct json_writer json_writer_to_file(FILE *f);

void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);

/* json_put_string - valid UTF-8 whatever @s holds: each bad byte becomes U+FFFD. NULL is null. */
void json_put_string(struct json_writer *w, const char *s);
void json_put_string_len(struct json_writer *w, const char *s, size_t len);
void json_put_int(struct json_writer *w, int64_t v);
/* json_put_uint - a number up to INT64_MAX, a string beyond, because readers have no larger int. */
void json_put_uint(struct json_writer *w, uint64_t v);
/* json_put_double - the shortest text that reads back equal; NaN and infinities are null. */
void json_put_double(struct json_writer *w, double v);
/* json_put_thousandths - @v / 1000, exactly, with as many decimals as it needs. */
void json_put_thousandths(struct json_writer *w, int64_t v);
void json_put_bool(struct json_writer *w, bool v);
void json_put_null(struct json_writer *w);

/* A key and its value in one call. */
void json_string_member(struct json_writer *w, const char *key, const char *v);
void json_int_member(struct json_writer *w, const char *key, int64_t v);
/* json_known_member - null unless it @is_known; a real number is null as NAN. */
void json_known_member(struct json_writer *w, const char *key, bool is_known, int64_t v);
void json_uint_member(struct json_writer *w, const char *key, uint64_t v);
void json_thousandths_member(struct json_writer *w, const char *key, int64_t v);
void json_double_member(struct json_writer *w, const char *key, double v);
void json_bool_member(struct json_writer *w, const char *key, bool v);
void json_null_member(struct json_writer *w, const char *key);
void json_begin_object_member(struct json_writer *w, const char *key);
void json_begin_array_member(struct json_writer *w, const char *key);

/* Several members in one call: JSON_PUT(w, JSON_S("name", n), JSON_U("count", c)). */
struct json_member {
	const char *key; /* NULL ends a list */
	enum {
		JSON_MEMBER_TEXT,
		JSON_MEMBER_INT,
		JSON_MEMBER_UINT,
		JSON_MEMBER_REAL,
		JSON_MEMBER_BOOL,
		JSON_MEMBER_NULL
	} type;
	union {
		const char *s; /* NULL is null */
		int64_t i;
		uint64_t u;
		double d;
		bool b;
	};
};
#define JSON_S(key_, v) ((struct json_member){.key = (key_), .type = JSON_MEMBER_TEXT, .s = (v)})
#define JSON_I(key_, v) ((struct json_member){.key = (key_), .type = JSON_MEMBER_INT, .i = (v)})
#define JSON_U(key_, v) ((struct json_member){.key = (key_), .type = JSON_MEMBER_UINT, .u = (v)})
#define JSON_R(key_, v) ((struct json_member){.key = (key_), .type = JSON_MEMBER_REAL, .d = (v)})
#define JSON_B(key_, v) ((struct json_member){.key = (key_), .type = JSON_MEMBER_BOOL, .b = (v)})
#define JSON_KNOWN(key_, known, v)                                                                 \
	((struct json_member){                                                                     \
		.key = (key_), .type = (known) ? JSON_MEMBER_INT : JSON_MEMBER_NULL, .i = (v)})

/* json_put_members - members of an open object. */
void json_put_members(struct json_writer *w, const struct json_member *m);
/* json_put_object - an object of these alone: the member @key, or an element if that is NULL. */
void json_put_object(struct json_writer *w, const char *key, const struct json_member *m);
#define JSON_LIST(...)             ((const struct json_member[]){__VA_ARGS__, {.key = NULL}})
#define JSON_PUT(w, ...)           json_put_members(w, JSON_LIST(__VA_ARGS__))
#define JSON_PUT_OBJECT(w, ...)    json_put_object(w, NULL, JSON_LIST(__VA_ARGS__))
#define JSON_PUT_INTO(w, key, ...) json_put_object(w, key, JSON_LIST(__VA_ARGS__))

/* json_finish - ends the document with a newline. Returns 0, or the first error; -EINVAL too if
 * something is still open or nothing was written. The writer may then be used for the next
 * document, so that one value a line is a loop over json_finish(). */
int json_finish(struct json_writer *w);
