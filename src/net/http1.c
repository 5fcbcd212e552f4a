/* SPDX-License-Identifier: Apache-2.0 */
/* http1.c - see http1.h. A message is read line by line up to its body; a body is passed through.
 *
 * Invariants:
 *  1. p->text holds the start line and the fields, each ended by NUL, and does not change between
 *     HTTP1_HEAD and http1_next(): p->method, p->target and p->head point into it. Lines that come
 *     after the head (chunk sizes, trailers) lie in p->line.
 *  2. A line is refused as soon as it is over its ceiling, complete or not.
 *  3. ST_FAILED is never left. */
#include "net/http1_private.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define TEXT_KEPT      4096 /* a longer buffer is given back between messages */
#define CHUNK_LINE_MAX 256
#define LENGTH_DIGITS  15

void http1_init(struct http1 *p, enum http1_kind kind)
{
	*p = (struct http1){
		.kind = kind,
		.body_max = HTTP_BODY_MAX,
		.content_length = -1,
		.text = BUF_INIT(HTTP_LINE_MAX + HTTP_HEAD_MAX + 16),
		.line = BUF_INIT(HTTP_HEAD_MAX + 16),
	};
}

void http1_done(struct http1 *p)
{
	buf_done(&p->text);
	buf_done(&p->line);
}

void http1_next(struct http1 *p)
{
	struct buf text = p->text, line = p->line;
	enum http1_kind kind = p->kind;

	if (text.cap > TEXT_KEPT)
		buf_done(&text);
	if (line.cap > TEXT_KEPT)
		buf_done(&line);
	buf_clear(&text);
	buf_clear(&line);
	http1_init(p, kind);
	p->text = text;
	p->line = line;
}

struct buf http1_take_text(struct http1 *p)
{
	struct buf text = p->text;

	p->text = BUF_INIT(text.max);
	return text;
}

bool http1_is_between(const struct http1 *p)
{
	return p->state == ST_START && p->text.len == 0 && !p->blank_seen;
}

static int parse_chunk_size(struct http1 *p, const char *s, size_t len)
{
	size_t digits = 0;

	p->left = 0;
	for (; digits < len && isxdigit((unsigned char)s[digits]); digits++) {
		int c = tolower((unsigned char)s[digits]);

		if (digits == LENGTH_DIGITS)
			return http1_fail(p, 400, "invalid chunk size");
		p->left = p->left * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	/* What stands behind a semicolon is an extension, which nobody uses. */
	if (digits == 0 || (digits < len && s[digits] != ';') || !http1_is_text(s, len))
		return http1_fail(p, 400, "invalid chunk size");
	if (p->left > p->body_max - p->body_bytes)
		return http1_fail(p, 413, "the body is too long");
	p->state = p->left ? ST_CHUNK : ST_TRAILERS;
	p->fields_bytes = 0;
	return GO_ON;
}

static int parse_trailer(struct http1 *p, char *s, size_t len)
{
	size_t value;

	if (len)
		return http1_parse_field(p, s, len, &value); /* proper, and not used */
	p->state = ST_ENDED;
	return HTTP1_END;
}

/* parse_line - @s has @len bytes without CRLF and is writable up to s[len]. */
static int parse_line(struct http1 *p, char *s, size_t len)
{
	switch (p->state) {
	case ST_START: return http1_parse_start(p, s, len);
	case ST_FIELDS: return http1_parse_head_field(p, s, len);
	case ST_CHUNK_SIZE: return parse_chunk_size(p, s, len);
	case ST_TRAILERS: return parse_trailer(p, s, len);
	default: /* ST_CHUNK_END */
		if (len)
			return http1_fail(p, 400, "the chunk is longer than its size");
		p->state = ST_CHUNK_SIZE;
		return GO_ON;
	}
}

/* Over its ceiling? @len is the line's so far, with its CRLF if that has come. */
static int check_ceiling(struct http1 *p, size_t len, size_t added)
{
	switch (p->state) {
	case ST_START:
		if (len > HTTP_LINE_MAX + 2)
			return http1_fail(p, 414, "the request line is too long");
		break;
	case ST_CHUNK_SIZE:
		if (len > CHUNK_LINE_MAX)
			return http1_fail(p, 400, "invalid chunk size");
		break;
	case ST_CHUNK_END:
		if (len > 2)
			return http1_fail(p, 400, "the chunk is longer than its size");
		break;
	default:
		p->fields_bytes += added;
		if (p->fields_bytes > HTTP_HEAD_MAX)
			return http1_fail(p, 431, "the header fields are too long");
	}
	return GO_ON;
}

/* take_line - moves bytes up to a newline into the buffer of lines and parses what is complete. */
static int take_line(struct http1 *p, const char *data, size_t len, size_t *ret_used)
{
	bool in_head = p->state == ST_START || p->state == ST_FIELDS;
	struct buf *b = in_head ? &p->text : &p->line;
	size_t start = in_head ? p->line_start : 0, n;
	const char *end = memchr(data, '\n', len);
	int r;

	n = end ? (size_t)(end - data) + 1 : len;
	/* Whoever speaks TLS or something else need not be listened to until a newline comes. */
	if (p->state == ST_START && b->len == 0 && data[0] != '\r' &&
		!http1_is_token_char((unsigned char)data[0]))
		return http1_fail(p, 400, "not an HTTP message");
	r = check_ceiling(p, b->len - start + n, n);
	if (r != GO_ON)
		return r;
	buf_append(b, data, n);
	if (b->err == -ENOMEM)
		return http1_fail(p, 503, "out of memory");
	if (b->err)
		return http1_fail(p, 431, "the header fields are too long");
	*ret_used = n;
	if (!end)
		return HTTP1_MORE;
	n = b->len - start;
	if (n < 2 || b->data[b->len - 2] != '\r')
		return http1_fail(p, 400, "a line does not end in CRLF");
	b->data[b->len - 2] = 0;
	if (in_head)
		b->len--; /* the next line begins behind this one's NUL */
	else
		b->len = 0; /* the bytes stay until the next line comes */
	return parse_line(p, b->data + start, n - 2);
}

/* How the body ends is decided when the caller has seen the head and set body_max. */
static int begin_body(struct http1 *p)
{
	bool response = p->kind == HTTP1_RESPONSE;

	if (response && (p->no_body || p->status < 200 || p->status == 204 || p->status == 304)) {
		p->state = ST_ENDED;
		return HTTP1_END;
	}
	if (p->content_length > 0 && (uint64_t)p->content_length > p->body_max)
		return http1_fail(p, 413, "the body is too long");
	if (p->chunked) {
		p->state = ST_CHUNK_SIZE;
	} else if (p->content_length > 0) {
		p->left = (uint64_t)p->content_length;
		p->state = ST_BODY;
	} else if (response && p->content_length < 0) {
		p->keep_alive = false;
		p->state = ST_UNTIL_EOF;
	} else {
		p->state = ST_ENDED;
		return HTTP1_END;
	}
	return GO_ON;
}

static int take_body(struct http1 *p, const char *data, size_t len, size_t *ret_used)
{
	size_t n = len;

	if (p->state == ST_UNTIL_EOF) {
		if (n > p->body_max - p->body_bytes)
			return http1_fail(p, 413, "the body is too long");
	} else {
		n = p->left < len ? (size_t)p->left : len;
		p->left -= n;
		if (p->left == 0)
			p->state = p->state == ST_CHUNK ? ST_CHUNK_END : ST_ENDED;
	}
	p->body_bytes += n;
	p->data = data;
	p->data_len = n;
	*ret_used = n;
	return HTTP1_DATA;
}

/* One step: an event, or GO_ON with *ret_used bytes used. */
static int step(struct http1 *p, const char *data, size_t len, size_t *ret_used)
{
	switch (p->state) {
	case ST_FAILED: return HTTP1_ERROR;
	case ST_ENDED: return HTTP1_END;
	case ST_HEAD_DONE: return begin_body(p);
	case ST_BODY:
	case ST_CHUNK:
	case ST_UNTIL_EOF: return len ? take_body(p, data, len, ret_used) : HTTP1_MORE;
	default: return len ? take_line(p, data, len, ret_used) : HTTP1_MORE;
	}
}

enum http1_event http1_feed(struct http1 *p, const char *data, size_t len, size_t *ret_used)
{
	size_t total = 0;
	int e;

	do {
		size_t used = 0;

		e = step(p, data + total, len - total, &used);
		total += used;
	} while (e == GO_ON);
	*ret_used = total;
	return (enum http1_event)e;
}

enum http1_event http1_eof(struct http1 *p)
{
	if (p->state == ST_HEAD_DONE && begin_body(p) == HTTP1_END)
		return HTTP1_END;
	if (p->state == ST_UNTIL_EOF || p->state == ST_ENDED) {
		p->state = ST_ENDED;
		return HTTP1_END;
	}
	if (p->state != ST_FAILED)
		http1_fail(p, 400, "the connection was closed in the middle of a message");
	return HTTP1_ERROR;
}
