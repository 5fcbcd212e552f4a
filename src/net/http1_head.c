/* SPDX-License-Identifier: Apache-2.0 */
/* http1_head.c - the start line and the fields of a message, and what they say about its form. See
 * http1.h; the invariants are in http1.c. */
#include "net/http1_private.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

int http1_fail(struct http1 *p, int status, const char *why)
{
	p->state = ST_FAILED;
	p->error_status = status;
	p->error = why;
	return HTTP1_ERROR;
}

bool http1_is_token_char(unsigned char c)
{
	return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!http1_is_token_char((unsigned char)s[i]))
			return false;
	return len > 0;
}

bool http1_is_text(const char *s, size_t len)
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
		return http1_fail(p, 400, "the first line has no HTTP version");
	if (s[5] != '1')
		return http1_fail(p, 505, "unsupported HTTP version");
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
		return http1_fail(p, 400, "invalid request line");
	method_len = (size_t)(target - s);
	target++;
	version = memchr(target, ' ', len - method_len - 1);
	if (!version || !is_token(s, method_len) || version == target)
		return http1_fail(p, 400, "invalid request line");
	for (const char *c = target; c < version; c++)
		if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f)
			return http1_fail(
				p, 400, "the path contains a character that must be escaped");
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
	if (len < 12 || s[8] != ' ' || (len > 12 && s[12] != ' ') || !http1_is_text(s, len))
		return http1_fail(p, 400, "invalid status line");
	for (int i = 9; i < 12; i++) {
		if (!isdigit((unsigned char)s[i]))
			return http1_fail(p, 400, "invalid status line");
		p->status = p->status * 10 + (s[i] - '0');
	}
	return p->status < 100 ? http1_fail(p, 400, "invalid status line") : GO_ON;
}

int http1_parse_start(struct http1 *p, char *s, size_t len)
{
	int r;

	if (len == 0) { /* one empty line may be left over from the message before */
		if (p->blank_seen || p->kind == HTTP1_RESPONSE)
			return http1_fail(p, 400, "the first line is empty");
		p->blank_seen = true;
		buf_clear(&p->text);
		return GO_ON;
	}
	if (p->kind == HTTP1_REQUEST)
		r = parse_request_line(p, s, len);
	else
		r = parse_status_line(p, s, len);
	if (r == GO_ON) {
		p->line_start = p->text.len;
		p->state = ST_FIELDS;
	}
	return r;
}

int http1_parse_field(struct http1 *p, char *s, size_t len, size_t *ret_value)
{
	char *colon = memchr(s, ':', len);
	size_t begin, end = len;

	if (s[0] == ' ' || s[0] == '\t')
		return http1_fail(p, 400, "obsolete line folding in a header field");
	if (!colon || !is_token(s, (size_t)(colon - s)))
		return http1_fail(p, 400, "invalid header field name");
	if (!http1_is_text(colon, len - (size_t)(colon - s)))
		return http1_fail(p, 400, "control character in a header field");
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
		return http1_fail(p, 400, "duplicate Content-Length");
	if (!*value || strspn(value, "0123456789") != strlen(value))
		return http1_fail(p, 400, "Content-Length is not a number");
	p->content_length = 0;
	for (value += strspn(value, "0"); *value; value++) {
		if (p->content_length >= INT64_MAX / 10 - 1)
			return http1_fail(p, 413, "the body is too long");
		p->content_length = p->content_length * 10 + (*value - '0');
	}
	return GO_ON;
}

static int parse_encoding(struct http1 *p, const char *value)
{
	if (p->chunked)
		return http1_fail(p, 400, "duplicate Transfer-Encoding");
	if (p->minor < 1)
		return http1_fail(p, 400, "HTTP/1.0 has no Transfer-Encoding");
	if (strcasecmp(value, "chunked") != 0)
		return http1_fail(
			p, 501, "unsupported Transfer-Encoding: only chunked is supported");
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
				return http1_fail(p, 400, "duplicate Host");
			has_host = true;
		}
		if (r != GO_ON)
			return r;
	}
	if (p->chunked && p->content_length >= 0)
		return http1_fail(p, 400, "both Content-Length and Transfer-Encoding are given");
	if (p->kind == HTTP1_REQUEST && p->minor >= 1 && !has_host)
		return http1_fail(p, 400, "missing Host");
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

int http1_parse_head_field(struct http1 *p, char *s, size_t len)
{
	size_t value, n = p->head.count;
	int r;

	if (len == 0)
		return finish_head(p);
	if (n == HTTP_FIELDS_MAX)
		return http1_fail(p, 431, "too many header fields");
	r = http1_parse_field(p, s, len, &value);
	if (r != GO_ON)
		return r;
	p->name_at[n] = (uint32_t)p->line_start;
	p->value_at[n] = (uint32_t)(p->line_start + value);
	p->head.count++;
	p->line_start = p->text.len;
	return GO_ON;
}
