/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c - see writer.h. Invariants: depth <= JSON_DEPTH_MAX; level[depth] describes the
 * innermost open container; has_key is true only between json_key() and the value that belongs to
 * it. */
#include "json/writer.h"

#include <math.h>
#include <stdio_ext.h>

#include "base/text.h"
#include "json/tree.h"

struct json_writer json_writer_to_buf(struct buf *b)
{
	return (struct json_writer){.buf = b};
}

struct json_writer json_writer_to_file(FILE *f)
{
	return (struct json_writer){.file = f};
}

static void emit(struct json_writer *w, const char *s, size_t len)
{
	if (w->err || w->tree)
		return;
	if (w->buf) {
		buf_append(w->buf, s, len);
		w->err = w->buf->err;
	} else if (fwrite(s, 1, len, w->file) != len) {
		w->err = errno ? -errno : -EIO;
	}
}

static void emit_str(struct json_writer *w, const char *s)
{
	emit(w, s, strlen(s));
}

static void emit_line_break(struct json_writer *w)
{
	if (!w->indent)
		return;
	emit_str(w, "\n");
	for (unsigned i = 0; i < w->depth; i++)
		emit_str(w, "  ");
}

/* How many bytes from @s on stand for themselves. */
static size_t plain_bytes(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

static void emit_quoted(struct json_writer *w, const char *s, size_t len)
{
	char esc[16];
	uint32_t cp;

	emit_str(w, "\"");
	for (size_t i = 0; i < len;) {
		size_t plain = plain_bytes(s + i, len - i);
		int n;

		if (plain) {
			emit(w, s + i, plain);
			i += plain;
			continue;
		}
		n = text_utf8_next(s + i, len - i, &cp);
		if (n < 0) {
			emit_str(w, "\xef\xbf\xbd");
			i++;
			continue;
		}
		if (cp == '"' || cp == '\\') {
			snprintf(esc, sizeof(esc), "\\%c", (char)cp);
			emit_str(w, esc);
		} else if (cp >= 0x10000 && text_is_deceptive(cp)) {
			snprintf(esc, sizeof(esc), "\\u%04x\\u%04x", 0xd7c0 + (cp >> 10),
				0xdc00 + (cp & 0x3ff));
			emit_str(w, esc);
		} else if (cp < 0x20 || cp == 0x7f || text_is_deceptive(cp)) {
			snprintf(esc, sizeof(esc), "\\u%04x", cp);
			emit_str(w, esc);
		} else {
			emit(w, s + i, (size_t)n);
		}
		i += (size_t)n;
	}
	emit_str(w, "\"");
}

/* Separator and order check before a value or a container; false if it may not stand here. */
static bool begin_value(struct json_writer *w)
{
	bool object = w->level[w->depth].object;

	if (!w->err &&
		(object ? !w->level[w->depth].has_key : w->depth == 0 && w->level[0].has_member))
		w->err = -EINVAL;
	if (w->err)
		return false;
	if (!object && w->depth > 0) {
		if (w->level[w->depth].has_member)
			emit_str(w, ",");
		emit_line_break(w);
	}
	w->level[w->depth].has_key = false;
	w->level[w->depth].has_member = true;
	return true;
}

/* put_tree - @v is the next value; false: it is text that is written. */
#define put_tree(w, v) ((w)->tree && put_value(w, v))
static bool put_value(struct json_writer *w, json_t *v)
{
	if (begin_value(w))
		w->err = json_builder_put(w->tree, w->depth, v);
	else
		json_decref(v);
	return true;
}

static void begin_container(struct json_writer *w, bool object)
{
	if (!begin_value(w))
		return;
	if (w->depth == JSON_DEPTH_MAX) {
		w->err = -E2BIG;
		return;
	}
	if (w->tree)
		w->err = json_builder_open(w->tree, w->depth, object);
	emit_str(w, object ? "{" : "[");
	w->depth++;
	w->level[w->depth].object = object;
	w->level[w->depth].has_key = false;
	w->level[w->depth].has_member = false;
}

static void end_container(struct json_writer *w, bool object)
{
	bool has_member = w->level[w->depth].has_member;

	if (!w->err && (w->depth == 0 || w->level[w->depth].object != object ||
			       w->level[w->depth].has_key))
		w->err = -EINVAL;
	if (w->err)
		return;
	w->depth--;
	if (has_member)
		emit_line_break(w);
	emit_str(w, object ? "}" : "]");
}

void json_begin_object(struct json_writer *w)
{
	begin_container(w, true);
}

void json_end_object(struct json_writer *w)
{
	end_container(w, true);
}

void json_begin_array(struct json_writer *w)
{
	begin_container(w, false);
}

void json_end_array(struct json_writer *w)
{
	end_container(w, false);
}

void json_key(struct json_writer *w, const char *key)
{
	if (!w->err && (!w->level[w->depth].object || w->level[w->depth].has_key))
		w->err = -EINVAL;
	if (w->err)
		return;
	if (w->level[w->depth].has_member)
		emit_str(w, ",");
	emit_line_break(w);
	if (w->tree)
		json_builder_key(w->tree, key);
	else
		emit_quoted(w, key, strlen(key));
	emit_str(w, w->indent ? ": " : ":");
	w->level[w->depth].has_key = true;
	w->level[w->depth].has_member = true;
}

void json_put_string_len(struct json_writer *w, const char *s, size_t len)
{
	if (!begin_value(w))
		return;
	if (w->tree)
		w->err = json_builder_text(w->tree, w->depth, s, len);
	else
		emit_quoted(w, s, len);
}

void json_put_string(struct json_writer *w, const char *s)
{
	if (!s)
		json_put_null(w);
	else
		json_put_string_len(w, s, strlen(s));
}

/* The digits of @v before @end; returns where they begin. snprintf() takes ten times as long. */
static char *put_digits(char *end, uint64_t v)
{
	do
		*--end = (char)('0' + v % 10);
	while (v /= 10);
	return end;
}

void json_put_int(struct json_writer *w, int64_t v)
{
	char text[24], *end = text + sizeof(text);
	char *p = put_digits(end, v < 0 ? -(uint64_t)v : (uint64_t)v);

	if (v < 0)
		*--p = '-';
	if (!put_tree(w, json_integer(v)) && begin_value(w))
		emit(w, p, (size_t)(end - p));
}

void json_put_uint(struct json_writer *w, uint64_t v)
{
	char text[24], *end = text + sizeof(text);
	char *p;

	if (v > INT64_MAX)
		*--end = '"';
	p = put_digits(end, v);
	if (v > INT64_MAX) {
		*--p = '"';
		end++;
	}
	if (!put_tree(
		    w, v > INT64_MAX ? json_sprintf("%" PRIu64, v) : json_integer((json_int_t)v)) &&
		begin_value(w))
		emit(w, p, (size_t)(end - p));
}

void json_put_double(struct json_writer *w, double v)
{
	char text[TEXT_MAX];

	if (!isfinite(v)) {
		json_put_null(w);
		return;
	}
	if (!put_tree(w, json_real(v)) && begin_value(w))
		emit_str(w, text_format_double(text, v));
}

void json_put_thousandths(struct json_writer *w, int64_t v)
{
	uint64_t size = v < 0 ? -(uint64_t)v : (uint64_t)v;
	char text[32];
	int len = snprintf(text, sizeof(text), "%s%" PRIu64 ".%03u", v < 0 ? "-" : "", size / 1000,
		(unsigned)(size % 1000));

	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	if (!put_tree(w, json_real((double)v / 1000)) && begin_value(w))
		emit(w, text, (size_t)len);
}

void json_put_bool(struct json_writer *w, bool v)
{
	if (!put_tree(w, json_boolean(v)) && begin_value(w))
		emit_str(w, v ? "true" : "false");
}

void json_put_null(struct json_writer *w)
{
	if (!put_tree(w, json_null()) && begin_value(w))
		emit_str(w, "null");
}

#define MEMBER(kind, type)                                                                         \
	void json_##kind##_member(struct json_writer *w, const char *key, type v)                  \
	{                                                                                          \
		json_key(w, key);                                                                  \
		json_put_##kind(w, v);                                                             \
	}

MEMBER(string, const char *)
MEMBER(int, int64_t)
MEMBER(uint, uint64_t)
MEMBER(thousandths, int64_t)
MEMBER(double, double)
MEMBER(bool, bool)

void json_known_member(struct json_writer *w, const char *key, bool is_known, int64_t v)
{
	json_key(w, key);
	is_known ? json_put_int(w, v) : json_put_null(w);
}

void json_null_member(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_put_null(w);
}

void json_begin_object_member(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_begin_object(w);
}

void json_begin_array_member(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_begin_array(w);
}

/* A full buffer is written wherever a line is at that moment; what another descriptor of the same file gets meanwhile, as
 * stderr does of 2>&1, would stand inside that line. */
static void flush_lines(struct json_writer *w)
{
	if (!w->err && w->file && __fpending(w->file) > __fbufsize(w->file) / 2 && fflush(w->file))
		w->err = errno ? -errno : -EIO;
}

void json_put_members(struct json_writer *w, const struct json_member *m)
{
	for (; m->key; m++) {
		json_key(w, m->key);
		switch (m->type) {
		case JSON_MEMBER_TEXT: json_put_string(w, m->s); break;
		case JSON_MEMBER_INT: json_put_int(w, m->i); break;
		case JSON_MEMBER_UINT: json_put_uint(w, m->u); break;
		case JSON_MEMBER_REAL: json_put_double(w, m->d); break;
		case JSON_MEMBER_BOOL: json_put_bool(w, m->b); break;
		case JSON_MEMBER_NULL: json_put_null(w); break;
		}
	}
}

void json_put_object(struct json_writer *w, const char *key, const struct json_member *m)
{
	if (key)
		json_key(w, key);
	json_begin_object(w);
	json_put_members(w, m);
	json_end_object(w);
}

int json_finish(struct json_writer *w)
{
	if (!w->err && (w->depth > 0 || !w->level[0].has_member))
		w->err = -EINVAL;
	emit_str(w, "\n");
	flush_lines(w);
	if (w->err)
		return w->err;
	w->level[0].has_member = false;
	return 0;
}
