/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - a strict JSON reader that gives one token after the other and builds no tree.
 *
 * For large texts of strangers: it takes no more memory than the longest string, and no nesting
 * beyond JSON_READ_DEPTH. Small texts of known shape are read with jansson.
 *
 * The first error sticks: from then on every token is JSON_READ_BAD, so a caller may look for what
 * it wants and treat everything else as the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_READ_DEPTH 32

enum json_read {
	JSON_READ_BAD, /* not JSON, too deep, or a string beyond the ceiling: see err */
	JSON_READ_END, /* the text is over, complete */
	JSON_READ_NULL,
	JSON_READ_BOOL,
	JSON_READ_INT,  /* fits into 64 bits */
	JSON_READ_REAL, /* any other number */
	JSON_READ_STRING,
	JSON_READ_OBJECT, /* begins; keys and values follow */
	JSON_READ_OBJECT_END,
	JSON_READ_ARRAY,
	JSON_READ_ARRAY_END,
	JSON_READ_KEY,
};

struct json_reader {
	const char *start, *p, *end;
	int err; /* 0; -EBADMSG; -E2BIG too deep; of text */
	unsigned depth;
	bool object[JSON_READ_DEPTH + 1]; /* what each level is */
	unsigned char want;               /* what may follow */
	/* The value of the last token: */
	bool b;
	int64_t i;
	double d;
	struct buf text; /* STRING, KEY: decoded, valid UTF-8; may hold NULs */
};

/* json_reader_init - reads @len bytes of @s, which must stay. Strings longer than @text_max are an
 * error. Done with json_reader_done(). */
void json_reader_init(struct json_reader *r, const char *s, size_t len, size_t text_max);
void json_reader_done(struct json_reader *r);

enum json_read json_read(struct json_reader *r);

/* json_skip - after a token that begins a value: reads up to its end. False on an error. */
bool json_skip(struct json_reader *r, enum json_read token);

/* json_here, json_go_to - a place to read from again, as long as the object or array around it has
 * not been left for another one. An error stays. */
struct json_place {
	const char *p;
	unsigned depth;
	unsigned char want;
};
struct json_place json_here(const struct json_reader *r);
void json_go_to(struct json_reader *r, struct json_place place);

/* json_read_is - the last token was a key or string equal to @s. */
bool json_read_is(const struct json_reader *r, const char *s);
