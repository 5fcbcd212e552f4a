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
#include <string.h>

#include "demangle/cut_text.h"
#include "demangle/rust_demangle.h"
#include "base/macros.h"

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
	int r;

	r = s[1] == 'R' ? rust_v0_demangle(s, len, out) : rust_legacy_demangle(s, len, out);
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
