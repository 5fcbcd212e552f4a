/* SPDX-License-Identifier: Apache-2.0 */
/* http1.c - see http1.h. A message is read line by line up to its body; a body is passed through.
 *
 * Invariants:
 *  1. p->text holds the start line and the fields, each ended by NUL, and does not change between
 *     HTTP1_HEAD and http1_next(): p->method, p->target and p->head point into it. Lines that come
 *     after the head (chunk sizes, trailers) lie in p->line.
 *  2. A line is refused as soon as it is over its ceiling, complete or not.
 *  3. ST_FAILED is never left. */
#include "net/http1.h"

#include <ctype.h>
#include <strings.h>

#define TEXT_KEPT      4096 /* a longer buffer is given back between messages */
#define CHUNK_LINE_MAX 256
#define LENGTH_DIGITS  15

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

/* The start line and the fields of a message, and what they say about its form. See
 * http1.h; the invariants are in http1.c. */

static int fail(struct http1 *p, int status, const char *why)
{
	p->state = ST_FAILED;
	p->error_status = status;
	p->error = why;
	return HTTP1_ERROR;
}

static bool is_token_char(unsigned char c)
{
	return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *s, size_t len)
{
	return !EXISTS(i, len, !is_token_char((unsigned char)s[i])) && len > 0;
}

static bool is_text(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool http1_has_token(const char *list, const char *token)
{
	size_t want = strlen(token);

	while (*list) {
		size_t len = strcspn(list, ","), skip = strspn(list, " \t"), used = len;

		if (skip < len) {
			len -= skip;
			while (len && strchr(" \t", list[skip + len - 1]))
				len--;
			if (len == want && strncasecmp(list + skip, token, want) == 0)
				return true;
		}
		list += used;
		list += *list == ',';
	}
	return false;
}

static int parse_version(struct http1 *p, const char *s, size_t len)
{
	if (len != 8 || memcmp(s, "HTTP/", 5) != 0 || !isdigit((unsigned char)s[5]) ||
		s[6] != '.' || !isdigit((unsigned char)s[7]))
		return fail(p, 400, "the first line has no HTTP version");
	if (s[5] != '1')
		return fail(p, 505, "unsupported HTTP version");
	p->minor = s[7] - '0';
	return GO_ON;
}

/* "GET /path HTTP/1.1" */
static int parse_request_line(struct http1 *p, char *s, size_t len)
{
	char *target, *version;
	size_t method_len;

	target = memchr(s, ' ', len);
	if (!target)
		return fail(p, 400, "invalid request line");
	method_len = (size_t)(target - s);
	target++;
	version = memchr(target, ' ', len - method_len - 1);
	if (!version || !is_token(s, method_len) || version == target)
		return fail(p, 400, "invalid request line");
	for (const char *c = target; c < version; c++)
		if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f)
			return fail(p, 400, "the path contains a character that must be escaped");
	s[method_len] = 0;
	*version++ = 0;
	return parse_version(p, version, len - (size_t)(version - s));
}

/* "HTTP/1.1 200 OK" */
static int parse_status_line(struct http1 *p, char *s, size_t len)
{
	int r = parse_version(p, s, MIN(len, (size_t)8));

	if (r != GO_ON)
		return r;
	if (len < 12 || s[8] != ' ' || (len > 12 && s[12] != ' ') || !is_text(s, len))
		return fail(p, 400, "invalid status line");
	for (int i = 9; i < 12; i++) {
		if (!isdigit((unsigned char)s[i]))
			return fail(p, 400, "invalid status line");
		p->status = p->status * 10 + (s[i] - '0');
	}
	return p->status < 100 ? fail(p, 400, "invalid status line") : GO_ON;
}

static int parse_start(struct http1 *p, char *s, size_t len)
{
	int r;

	if (len == 0) { /* one empty line may be left over from the message before */
		if (p->blank_seen || p->kind == HTTP1_RESPONSE)
			return fail(p, 400, "the first line is empty");
		p->blank_seen = true;
		buf_clear(&p->text);
		return GO_ON;
	}
	r = p->kind == HTTP1_REQUEST ? parse_request_line(p, s, len) : parse_status_line(p, s, len);
	if (r == GO_ON) {
		p->line_start = p->text.len;
		p->state = ST_FIELDS;
	}
	return r;
}

static int parse_field(struct http1 *p, char *s, size_t len, size_t *ret_value)
{
	char *colon = memchr(s, ':', len);
	size_t begin, end = len;

	if (s[0] == ' ' || s[0] == '\t')
		return fail(p, 400, "obsolete line folding in a header field");
	if (!colon || !is_token(s, (size_t)(colon - s)))
		return fail(p, 400, "invalid header field name");
	if (!is_text(colon, len - (size_t)(colon - s)))
		return fail(p, 400, "control character in a header field");
	for (char *c = s; c < colon; c++)
		*c = (char)tolower((unsigned char)*c);
	*colon = 0;
	begin = (size_t)(colon - s) + 1;
	while (begin < end && (s[begin] == ' ' || s[begin] == '\t'))
		begin++;
	while (end > begin && (s[end - 1] == ' ' || s[end - 1] == '\t'))
		end--;
	s[end] = 0;
	*ret_value = begin;
	return GO_ON;
}

static int parse_length(struct http1 *p, const char *value)
{
	if (p->content_length >= 0)
		return fail(p, 400, "duplicate Content-Length");
	if (!*value || strspn(value, "0123456789") != strlen(value))
		return fail(p, 400, "Content-Length is not a number");
	p->content_length = 0;
	for (value += strspn(value, "0"); *value; value++) {
		if (p->content_length >= INT64_MAX / 10 - 1)
			return fail(p, 413, "the body is too long");
		p->content_length = p->content_length * 10 + (*value - '0');
	}
	return GO_ON;
}

static int parse_encoding(struct http1 *p, const char *value)
{
	if (p->chunked)
		return fail(p, 400, "duplicate Transfer-Encoding");
	if (p->minor < 1)
		return fail(p, 400, "HTTP/1.0 has no Transfer-Encoding");
	if (strcasecmp(value, "chunked") != 0)
		return fail(p, 501, "unsupported Transfer-Encoding: only chunked is supported");
	p->chunked = true;
	return GO_ON;
}

/* What the fields say about the message's own form. */
static int read_fields(struct http1 *p)
{
	bool asks_close = false, asks_keep = false, has_host = false;

	for (size_t i = 0; i < p->head.count; i++) {
		const struct http_field *f = &p->head.field[i];
		int r = GO_ON;

		if (strcmp(f->name, "content-length") == 0) {
			r = parse_length(p, f->value);
		} else if (strcmp(f->name, "transfer-encoding") == 0) {
			r = parse_encoding(p, f->value);
		} else if (strcmp(f->name, "connection") == 0) {
			asks_close |= http1_has_token(f->value, "close");
			asks_keep |= http1_has_token(f->value, "keep-alive");
		} else if (strcmp(f->name, "expect") == 0) {
			p->expects_continue = strcasecmp(f->value, "100-continue") == 0;
		} else if (strcmp(f->name, "host") == 0) {
			if (has_host)
				return fail(p, 400, "duplicate Host");
			has_host = true;
		}
		if (r != GO_ON)
			return r;
	}
	if (p->chunked && p->content_length >= 0)
		return fail(p, 400, "both Content-Length and Transfer-Encoding are given");
	if (p->kind == HTTP1_REQUEST && p->minor >= 1 && !has_host)
		return fail(p, 400, "missing Host");
	p->keep_alive = !asks_close && (p->minor >= 1 || asks_keep);
	return GO_ON;
}

static int finish_head(struct http1 *p)
{
	int r;

	for (size_t i = 0; i < p->head.count; i++) {
		p->head.field[i].name = p->text.data + p->name_at[i];
		p->head.field[i].value = p->text.data + p->value_at[i];
	}
	if (p->kind == HTTP1_REQUEST) {
		p->method = p->text.data;
		p->target = p->method + strlen(p->method) + 1;
	}
	r = read_fields(p);
	if (r != GO_ON)
		return r;
	p->state = ST_HEAD_DONE;
	return HTTP1_HEAD;
}

static int parse_head_field(struct http1 *p, char *s, size_t len)
{
	size_t value, n = p->head.count;
	int r;

	if (len == 0)
		return finish_head(p);
	if (n == HTTP_FIELDS_MAX)
		return fail(p, 431, "too many header fields");
	r = parse_field(p, s, len, &value);
	if (r != GO_ON)
		return r;
	p->name_at[n] = (uint32_t)p->line_start;
	p->value_at[n] = (uint32_t)(p->line_start + value);
	p->head.count++;
	p->line_start = p->text.len;
	return GO_ON;
}

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
			return fail(p, 400, "invalid chunk size");
		p->left = p->left * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	/* What stands behind a semicolon is an extension, which nobody uses. */
	if (digits == 0 || (digits < len && s[digits] != ';') || !is_text(s, len))
		return fail(p, 400, "invalid chunk size");
	if (p->left > p->body_max - p->body_bytes)
		return fail(p, 413, "the body is too long");
	p->state = p->left ? ST_CHUNK : ST_TRAILERS;
	p->fields_bytes = 0;
	return GO_ON;
}

static int parse_trailer(struct http1 *p, char *s, size_t len)
{
	size_t value;

	if (len)
		return parse_field(p, s, len, &value); /* proper, and not used */
	p->state = ST_ENDED;
	return HTTP1_END;
}

/* parse_line - @s has @len bytes without CRLF and is writable up to s[len]. */
static int parse_line(struct http1 *p, char *s, size_t len)
{
	switch (p->state) {
	case ST_START: return parse_start(p, s, len);
	case ST_FIELDS: return parse_head_field(p, s, len);
	case ST_CHUNK_SIZE: return parse_chunk_size(p, s, len);
	case ST_TRAILERS: return parse_trailer(p, s, len);
	default: /* ST_CHUNK_END */
		if (len)
			return fail(p, 400, "the chunk is longer than its size");
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
			return fail(p, 414, "the request line is too long");
		break;
	case ST_CHUNK_SIZE:
		if (len > CHUNK_LINE_MAX)
			return fail(p, 400, "invalid chunk size");
		break;
	case ST_CHUNK_END:
		if (len > 2)
			return fail(p, 400, "the chunk is longer than its size");
		break;
	default:
		p->fields_bytes += added;
		if (p->fields_bytes > HTTP_HEAD_MAX)
			return fail(p, 431, "the header fields are too long");
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
		!is_token_char((unsigned char)data[0]))
		return fail(p, 400, "not an HTTP message");
	r = check_ceiling(p, b->len - start + n, n);
	if (r != GO_ON)
		return r;
	buf_append(b, data, n);
	if (b->err == -ENOMEM)
		return fail(p, 503, "out of memory");
	if (b->err)
		return fail(p, 431, "the header fields are too long");
	*ret_used = n;
	if (!end)
		return HTTP1_MORE;
	n = b->len - start;
	if (n < 2 || b->data[b->len - 2] != '\r')
		return fail(p, 400, "a line does not end in CRLF");
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
		return fail(p, 413, "the body is too long");
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
			return fail(p, 413, "the body is too long");
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
		fail(p, 400, "the connection was closed in the middle of a message");
	return HTTP1_ERROR;
}
