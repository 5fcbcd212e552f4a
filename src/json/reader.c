/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - see exchange.h. One function a production of RFC 8259.
 *
 * Invariants: p never passes end; depth counts the levels that are open and object[depth] says what
 * the innermost is; want says which productions may stand at p, so commas and colons are checked in
 * one place. A number is copied to a NUL-terminated place before strtod() sees it. */
#include "json/reader.h"

#include "base/text.h"

#define NUMBER_MAX 400 /* bytes; more digits than any double has */

enum want { WANT_VALUE, WANT_FIRST, WANT_KEY, WANT_FIRST_KEY, WANT_MORE, WANT_NOTHING };

void json_reader_init(struct json_reader *r, const char *s, size_t len, size_t text_max)
{
	*r = (struct json_reader){
		.start = s, .p = s, .end = s + len, .want = WANT_VALUE, .text = BUF_INIT(text_max)};
}

void json_reader_done(struct json_reader *r)
{
	buf_done(&r->text);
}

static enum json_read fail(struct json_reader *r, int err)
{
	r->err = r->err ?: err;
	return JSON_READ_BAD;
}

static void skip_space(struct json_reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
}

/* A value is over: what may stand behind it. */
static void value_over(struct json_reader *r)
{
	r->want = r->depth ? WANT_MORE : WANT_NOTHING;
}

static int hex4(struct json_reader *r, uint32_t *ret)
{
	uint32_t v = 0;

	if (r->end - r->p < 4)
		return -EBADMSG;
	for (int i = 0; i < 4; i++, r->p++) {
		char c = *r->p;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint32_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v = v << 4 | (uint32_t)((c | 32) - 'a' + 10);
		else
			return -EBADMSG;
	}
	*ret = v;
	return 0;
}

static void put_utf8(struct buf *b, uint32_t cp)
{
	if (cp < 0x80) {
		buf_putc(b, (char)cp);
		return;
	}
	if (cp < 0x800) {
		buf_putc(b, (char)(0xc0 | cp >> 6));
	} else {
		if (cp < 0x10000) {
			buf_putc(b, (char)(0xe0 | cp >> 12));
		} else {
			buf_putc(b, (char)(0xf0 | cp >> 18));
			buf_putc(b, (char)(0x80 | (cp >> 12 & 0x3f)));
		}
		buf_putc(b, (char)(0x80 | (cp >> 6 & 0x3f)));
	}
	buf_putc(b, (char)(0x80 | (cp & 0x3f)));
}

/* Behind "\u". A lone surrogate is an error: it has no UTF-8. */
static int read_unicode(struct json_reader *r)
{
	uint32_t cp, low;

	if (hex4(r, &cp) < 0 || (cp >= 0xdc00 && cp < 0xe000))
		return -EBADMSG;
	if (cp >= 0xd800 && cp < 0xdc00) {
		if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
			return -EBADMSG;
		r->p += 2;
		if (hex4(r, &low) < 0 || low < 0xdc00 || low >= 0xe000)
			return -EBADMSG;
		cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
	}
	put_utf8(&r->text, cp);
	return 0;
}

static int read_escape(struct json_reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	char c;

	if (r->p == r->end)
		return -EBADMSG;
	c = *r->p++;
	if (c == 'u')
		return read_unicode(r);
	at = c ? strchr(from, c) : NULL;
	if (!at)
		return -EBADMSG;
	buf_putc(&r->text, to[at - from]);
	return 0;
}

/* Bytes from p on that stand for themselves. */
static size_t plain_run(const struct json_reader *r)
{
	const char *p = r->p;

	while (p < r->end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20 &&
		(unsigned char)*p < 0x80)
		p++;
	return (size_t)(p - r->p);
}

/* Behind the opening quote. */
static int read_string(struct json_reader *r)
{
	buf_clear(&r->text);
	for (;;) {
		size_t run = plain_run(r);
		uint32_t cp;
		int n;

		buf_append(&r->text, r->p, run);
		r->p += run;
		if (r->p == r->end || (unsigned char)*r->p < 0x20)
			return -EBADMSG;
		if (*r->p == '"') {
			r->p++;
			return r->text.err;
		}
		if (*r->p == '\\') {
			r->p++;
			n = read_escape(r);
			if (n < 0)
				return n;
			continue;
		}
		n = text_utf8_next(r->p, (size_t)(r->end - r->p), &cp);
		if (n < 0)
			return -EBADMSG;
		buf_append(&r->text, r->p, (size_t)n);
		r->p += n;
	}
}

static size_t digits(const char *p)
{
	return strspn(p, "0123456789");
}

/* The length of the number that @s begins with, 0 if it is none; *ret_real: not a whole one. */
static size_t number_length(const char *s, bool *ret_real)
{
	const char *p = s + (*s == '-');
	size_t n = digits(p);

	if (!n || (n > 1 && *p == '0'))
		return 0;
	p += n;
	*ret_real = *p == '.' || *p == 'e' || *p == 'E';
	if (*p == '.') {
		n = digits(++p);
		if (!n)
			return 0;
		p += n;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		p += *p == '+' || *p == '-';
		n = digits(p);
		if (!n)
			return 0;
		p += n;
	}
	return (size_t)(p - s);
}

static enum json_read read_number(struct json_reader *r)
{
	char text[NUMBER_MAX + 1];
	size_t room = MIN((size_t)(r->end - r->p), (size_t)NUMBER_MAX), len;
	bool real = false;

	memcpy(text, r->p, room);
	text[room] = 0;
	len = number_length(text, &real);
	if (!len || len == NUMBER_MAX)
		return fail(r, -EBADMSG);
	text[len] = 0;
	r->p += len;
	value_over(r);
	errno = 0;
	r->i = strtoll(text, NULL, 10);
	if (!real && errno == 0) {
		r->d = (double)r->i;
		return JSON_READ_INT;
	}
	r->d = strtod(text, NULL);
	return JSON_READ_REAL;
}

static enum json_read read_word(struct json_reader *r)
{
	static const struct {
		const char *word;
		enum json_read token;
		bool b;
	} words[] = {{"null", JSON_READ_NULL, false}, {"true", JSON_READ_BOOL, true},
		{"false", JSON_READ_BOOL, false}};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t len = strlen(words[i].word);

		if ((size_t)(r->end - r->p) < len || memcmp(r->p, words[i].word, len) != 0)
			continue;
		r->p += len;
		r->b = words[i].b;
		value_over(r);
		return words[i].token;
	}
	return fail(r, -EBADMSG);
}

static enum json_read begin(struct json_reader *r, bool object)
{
	if (r->depth == JSON_READ_DEPTH)
		return fail(r, -E2BIG);
	r->p++;
	r->object[++r->depth] = object;
	r->want = object ? WANT_FIRST_KEY : WANT_FIRST;
	return object ? JSON_READ_OBJECT : JSON_READ_ARRAY;
}

static enum json_read finish(struct json_reader *r)
{
	bool object = r->object[r->depth];

	r->p++;
	r->depth--;
	value_over(r);
	return object ? JSON_READ_OBJECT_END : JSON_READ_ARRAY_END;
}

static enum json_read read_value(struct json_reader *r)
{
	int err;

	switch (*r->p) {
	case '{': return begin(r, true);
	case '[': return begin(r, false);
	case '"':
		r->p++;
		err = read_string(r);
		value_over(r);
		return err < 0 ? fail(r, err) : JSON_READ_STRING;
	case '-':
	case '0' ... '9': return read_number(r);
	default: return read_word(r);
	}
}

static enum json_read read_key(struct json_reader *r)
{
	int err;

	if (*r->p != '"')
		return fail(r, -EBADMSG);
	r->p++;
	err = read_string(r);
	if (err < 0)
		return fail(r, err);
	skip_space(r);
	if (r->p == r->end || *r->p != ':')
		return fail(r, -EBADMSG);
	r->p++;
	r->want = WANT_VALUE;
	return JSON_READ_KEY;
}

enum json_read json_read(struct json_reader *r)
{
	bool may_end = r->want == WANT_MORE || r->want == WANT_FIRST || r->want == WANT_FIRST_KEY;

	if (r->err)
		return JSON_READ_BAD;
	skip_space(r);
	if (r->p == r->end)
		return r->want == WANT_NOTHING ? JSON_READ_END : fail(r, -EBADMSG);
	if (r->want == WANT_NOTHING)
		return fail(r, -EBADMSG);
	if (may_end && *r->p == (r->object[r->depth] ? '}' : ']'))
		return finish(r);
	if (r->want == WANT_MORE) {
		if (*r->p != ',')
			return fail(r, -EBADMSG);
		r->p++;
		r->want = r->object[r->depth] ? WANT_KEY : WANT_VALUE;
		skip_space(r);
		if (r->p == r->end)
			return fail(r, -EBADMSG);
	}
	return r->want == WANT_KEY || r->want == WANT_FIRST_KEY ? read_key(r) : read_value(r);
}

bool json_skip(struct json_reader *r, enum json_read token)
{
	unsigned outside = r->depth - 1;

	if (token != JSON_READ_OBJECT && token != JSON_READ_ARRAY)
		return token != JSON_READ_BAD;
	while (r->depth > outside)
		if (json_read(r) == JSON_READ_BAD)
			return false;
	return true;
}

struct json_place json_here(const struct json_reader *r)
{
	return (struct json_place){.p = r->p, .depth = r->depth, .want = r->want};
}

/* What each level up to the place's is stands in object[] still: only deeper ones are overwritten. */
void json_go_to(struct json_reader *r, struct json_place place)
{
	r->p = place.p;
	r->depth = place.depth;
	r->want = place.want;
}

bool json_read_is(const struct json_reader *r, const char *s)
{
	return r->text.len == strlen(s) && memcmp(buf_str(&r->text), s, r->text.len) == 0;
}
