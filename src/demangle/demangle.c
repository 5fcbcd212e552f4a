/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.c - see demangle.h. C++ is read by the compiler's own run-time library.
 *
 * Its form with a callback is used, not __cxa_demangle(): substitutions let a name of 700 bytes
 * stand for 2^60 bytes of text, which __cxa_demangle() would try to allocate. The callback leaves
 * by longjmp() once the buffer is full. That is sound because everything between is C that keeps
 * its state on the stack and allocates nothing.
 *
 * The library refuses names beyond 1 KiB, lest they exhaust the stack. Templates do make such
 * names, so for those the scope in front of the first template argument is read here: "a::b::f<…>".
 */
#include "demangle/demangle.h"

#include <setjmp.h>

#include "base/macros.h"

/* Rust's older mangling: a C++ nested name whose last part is a hash, with what C++
 * cannot hold written as $escapes$. */

#define HASH_LEN 17 /* 'h' and 16 hexadecimal digits */

static int hex_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hash(const char *s, size_t len)
{
	if (len != HASH_LEN || s[0] != 'h')
		return false;
	for (size_t i = 1; i < len; i++)
		if (hex_value(s[i]) < 0)
			return false;
	return true;
}

/* One "<length><bytes>" at @s; the length of both, or 0 if there is none. */
static size_t part_at(const char *s, size_t len, const char **ret_part, size_t *ret_part_len)
{
	size_t digits = 0, n = 0;

	while (digits < len && s[digits] >= '0' && s[digits] <= '9' && n <= len)
		n = n * 10 + (size_t)(s[digits++] - '0');
	if (digits == 0 || n == 0 || n > len - digits)
		return 0;
	*ret_part = s + digits;
	*ret_part_len = n;
	return digits + n;
}

/* "$u7e$": a code point in lower-case hexadecimal digits. */
static bool put_code_point(const char *digits, size_t len, struct cut_text *out)
{
	uint32_t cp = 0;

	if (len == 0 || len > 6)
		return false;
	for (size_t i = 0; i < len; i++) {
		int value = hex_value(digits[i]);

		if (value < 0)
			return false;
		cp = cp * 16 + (uint32_t)value;
	}
	if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp > 0x10ffff ||
		(cp >= 0xd800 && cp < 0xe000))
		return false;
	cut_text_put_code_point(out, cp);
	return true;
}

static const struct {
	const char *name, *text;
} ESCAPES[] = {{"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"}, {"GT", ">"}, {"LP", "("},
	{"RP", ")"}, {"C", ","}};

/* The escape at @s, which begins with '$'; its length, or 0 if it is none that is known. */
static size_t put_escape(const char *s, size_t len, struct cut_text *out)
{
	const char *end = memchr(s + 1, '$', len - 1);
	size_t name_len;

	if (!end)
		return 0;
	name_len = (size_t)(end - s) - 1;
	for (size_t i = 0; i < ARRAY_SIZE(ESCAPES); i++)
		if (name_len == strlen(ESCAPES[i].name) &&
			memcmp(s + 1, ESCAPES[i].name, name_len) == 0) {
			cut_text_puts(out, ESCAPES[i].text);
			return name_len + 2;
		}
	if (name_len > 1 && s[1] == 'u' && put_code_point(s + 2, name_len - 1, out))
		return name_len + 2;
	return 0;
}

static void put_part(const char *s, size_t len, struct cut_text *out)
{
	/* A part that would begin with an escape has a '_' before it, since C++'s cannot. */
	size_t at = len >= 2 && s[0] == '_' && s[1] == '$' ? 1 : 0;

	while (at < len) {
		size_t plain = at, escape;

		while (plain < len && s[plain] != '$' && s[plain] != '.')
			plain++;
		cut_text_put(out, s + at, plain - at);
		at = plain;
		if (at == len)
			break;
		if (s[at] == '.') {
			bool is_double = at + 1 < len && s[at + 1] == '.';

			cut_text_puts(out, is_double ? "::" : ".");
			at += is_double ? 2 : 1;
			continue;
		}
		escape = put_escape(s + at, len - at, out);
		if (escape == 0) { /* not one of ours: the rest as it stands */
			cut_text_put(out, s + at, len - at);
			break;
		}
		at += escape;
	}
}

/* Whether @s is such a name, and where its last part begins and all of it ends. */
static bool find_hash(const char *s, size_t len, size_t *ret_hash_at, size_t *ret_end)
{
	const char *part = NULL;
	size_t at = 3, part_len = 0, parts = 0, last_at = 0;

	if (len < 4 || memcmp(s, "_ZN", 3) != 0)
		return false;
	while (at < len && s[at] != 'E') {
		size_t read = part_at(s + at, len - at, &part, &part_len);

		if (read == 0)
			return false;
		last_at = at;
		at += read;
		parts++;
	}
	if (at == len || parts < 2 || !is_hash(part, part_len))
		return false;
	*ret_hash_at = last_at;
	*ret_end = at + 1;
	return true;
}

int rust_legacy_demangle(const char *s, size_t len, struct cut_text *out)
{
	size_t hash_at, end;

	if (!find_hash(s, len, &hash_at, &end))
		return -EINVAL;
	for (size_t at = 3; at < hash_at;) {
		const char *part;
		size_t part_len;

		if (at > 3)
			cut_text_puts(out, "::");
		at += part_at(s + at, len - at, &part, &part_len);
		put_part(part, part_len, out);
	}
	return (int)end;
}

#define MANGLED_MAX  (8u << 10) /* longer names stay as they are */
#define CXX_FULL_MAX 1024       /* what the library reads, see above */

extern int __gcclibcxx_demangle_callback(
	const char *mangled, void (*callback)(const char *piece, size_t len, void *arg), void *arg);

struct cxx_writer {
	struct cut_text *out;
	jmp_buf full;
};

static void cxx_put(const char *piece, size_t len, void *arg)
{
	struct cxx_writer *w = arg;

	cut_text_put(w->out, piece, len);
	if (w->out->is_full)
		longjmp(w->full, 1);
}

static bool cxx_whole(const char *name, struct cut_text *out)
{
	struct cxx_writer w = {.out = out};

	if (setjmp(w.full) != 0)
		return true;
	return __gcclibcxx_demangle_callback(name, cxx_put, &w) == 0;
}

/* "<length><name>" at the front of @s; its length, 0 if there is none. */
static size_t source_name(const char *s, struct cut_text *out)
{
	size_t digits = 0, len = 0, left = strlen(s);

	while (s[digits] >= '0' && s[digits] <= '9' && len <= left)
		len = len * 10 + (size_t)(s[digits++] - '0');
	if (len == 0 || len > left - digits)
		return 0;
	if (strncmp(s + digits, "_GLOBAL__N_", strlen("_GLOBAL__N_")) == 0)
		cut_text_puts(out, "(anonymous namespace)");
	else
		cut_text_put(out, s + digits, len);
	return digits + len;
}

/* The names up to the first template argument, or whatever else is not a plain name. */
static bool cxx_scope(const char *name, struct cut_text *out)
{
	const char *s = name + 2;
	bool is_nested = *s == 'N', is_empty = true;

	s += is_nested;
	while (is_nested && *s && strchr("rVKRO", *s))
		s++;
	if (s[0] == 'S' && s[1] == 't') {
		cut_text_puts(out, "std");
		s += 2;
		is_empty = false;
	}
	for (;;) {
		size_t read;

		if (!(*s >= '0' && *s <= '9'))
			break;
		if (!is_empty)
			cut_text_puts(out, "::");
		read = source_name(s, out);
		if (read == 0)
			return false;
		s += read;
		is_empty = false;
	}
	cut_text_puts(out, *s == 'I' ? "<…>" : "…");
	return !is_empty;
}

static bool cxx_demangle(const char *name, size_t len, struct cut_text *out)
{
	char copy[MANGLED_MAX + 1];

	memcpy(copy, name, len);
	copy[len] = 0;
	return len <= CXX_FULL_MAX ? cxx_whole(copy, out) : cxx_scope(copy, out);
}

/* ".constprop.0.isra.1" as " [clone .constprop.0] [clone .isra.1]". */
static void put_clones(const char *suffix, size_t len, struct cut_text *out)
{
	size_t at = 0;

	while (at < len && !out->is_full) {
		size_t end = at + 1;

		while (end < len &&
			(suffix[end] != '.' || (end + 1 < len && suffix[end + 1] >= '0' &&
						       suffix[end + 1] <= '9')))
			end++;
		cut_text_puts(out, " [clone ");
		cut_text_put(out, suffix + at, end - at);
		cut_text_putc(out, ']');
		at = end;
	}
}

/* The bytes of @s that were a mangled name and now stand in @out; negative if it is none. */
static int put_demangled(const char *s, size_t len, struct cut_text *out)
{
	const char *dot;
	size_t name_len;
	int r = s[1] == 'R' ? rust_v0_demangle(s, len, out) : rust_legacy_demangle(s, len, out);

	if (r > 0 || s[1] == 'R')
		return r;
	dot = memchr(s, '.', len);
	name_len = dot ? (size_t)(dot - s) : len;
	return cxx_demangle(s, name_len, out) ? (int)name_len : -1;
}

const char *demangle(const char *mangled, char *out, size_t size)
{
	size_t len = strnlen(mangled, MANGLED_MAX + 1);
	struct cut_text text;
	int read = -1;

	if (size == 0)
		return out;
	text = cut_text_on(out, size);
	if (len > 2 && len <= MANGLED_MAX && mangled[0] == '_' &&
		(mangled[1] == 'Z' || mangled[1] == 'R'))
		read = put_demangled(mangled, len, &text);
	if (read > 0) {
		put_clones(mangled + read, len - (size_t)read, &text);
		return out;
	}
	cut_text_clear(&text);
	cut_text_put(&text, mangled, strnlen(mangled, size));
	return out;
}

/* See demangle.h. Invariants: len < size; data[len] == 0; is_full never goes back to
 * false but by cut_text_clear(). UTF-8 that came in whole goes out whole: a cut never leaves the
 * first bytes of a character behind. */

#define ELLIPSIS "…"

struct cut_text cut_text_on(char *out, size_t size)
{
	out[0] = 0;
	return (struct cut_text){.data = out, .size = size};
}

void cut_text_clear(struct cut_text *t)
{
	t->len = 0;
	t->is_full = false;
	t->data[0] = 0;
}

/* The bytes [0, len) of @s without a character that is cut at their end. */
static size_t whole_characters(const char *s, size_t len, char next)
{
	if (((unsigned char)next & 0xc0) != 0x80)
		return len;
	while (len > 0 && ((unsigned char)s[len - 1] & 0xc0) == 0x80)
		len--;
	return len > 0 ? len - 1 : 0;
}

/* The buffer is full to its last byte. */
static void end_in_ellipsis(struct cut_text *t)
{
	const size_t mark = sizeof(ELLIPSIS) - 1;

	t->is_full = true;
	t->len = 0;
	if (t->size > mark) {
		size_t keep = t->size - 1 - mark;

		t->len = whole_characters(t->data, keep, t->data[keep]);
		memcpy(t->data + t->len, ELLIPSIS, mark);
		t->len += mark;
	}
	t->data[t->len] = 0;
}

void cut_text_put(struct cut_text *t, const char *s, size_t len)
{
	size_t room = t->size - 1 - t->len;

	if (t->is_full)
		return;
	memcpy(t->data + t->len, s, MIN(len, room));
	t->len += MIN(len, room);
	t->data[t->len] = 0;
	if (len > room)
		end_in_ellipsis(t);
}

void cut_text_puts(struct cut_text *t, const char *s)
{
	cut_text_put(t, s, strlen(s));
}

void cut_text_putc(struct cut_text *t, char c)
{
	cut_text_put(t, &c, 1);
}

void cut_text_put_number(struct cut_text *t, uint64_t n)
{
	char digits[24];

	cut_text_put(t, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n));
}

void cut_text_put_code_point(struct cut_text *t, uint32_t cp)
{
	char s[4];
	size_t len = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = len; i-- > 1; cp >>= 6)
		s[i] = (char)(0x80 | (cp & 0x3f));
	s[0] = (char)(lead[len] | cp);
	cut_text_put(t, s, len);
}
