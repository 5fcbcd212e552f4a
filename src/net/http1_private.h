/* SPDX-License-Identifier: Apache-2.0 */
/* http1_private.h - the two parts of the parser: http1.c has states and bodies, http1_head.c the
 * lines of a head. */
#pragma once

#include "net/http1.h"

enum state {
	ST_START,
	ST_FIELDS,
	ST_HEAD_DONE,
	ST_BODY,
	ST_UNTIL_EOF,
	ST_CHUNK_SIZE,
	ST_CHUNK,
	ST_CHUNK_END,
	ST_TRAILERS,
	ST_ENDED,
	ST_FAILED,
};

#define GO_ON (-1) /* no event yet */

int http1_fail(struct http1 *p, int status, const char *why); /* returns HTTP1_ERROR */
bool http1_is_token_char(unsigned char c);
/* http1_is_text - visible characters, blanks, tabs, and bytes of other alphabets. */
bool http1_is_text(const char *s, size_t len);

/* Lines of @len bytes without CRLF, writable up to s[len]: an event, or GO_ON. */
int http1_parse_start(struct http1 *p, char *s, size_t len);
int http1_parse_head_field(struct http1 *p, char *s, size_t len);
/* http1_parse_field - splits "Name: value" in place; *ret_value is where its value begins. */
int http1_parse_field(struct http1 *p, char *s, size_t len, size_t *ret_value);
