/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.h - a linker's name as people wrote it: C++ (Itanium ABI), Rust (legacy and v0).
 *
 * Clones are shown as such: "f(int) [clone .cold]". What is no mangled name, or a bad one, stays as
 * it is. The input is foreign: depth, size and time have ceilings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text written piece by piece into a buffer of fixed size, which ends in "…" if it did
 * not fit.
 *
 * The content is always a string. Once something did not fit, is_full is set and nothing more is
 * taken, so that a writer may go on without harm and stop when it sees that. */

struct cut_text {
	char *data;
	size_t size, len; /* len < size */
	bool is_full;
};

/* cut_text_on - empty text in @out, @size at least 1. */
struct cut_text cut_text_on(char *out, size_t size);
void cut_text_clear(struct cut_text *t);
void cut_text_put(struct cut_text *t, const char *s, size_t len);
void cut_text_puts(struct cut_text *t, const char *s);
void cut_text_putc(struct cut_text *t, char c);
void cut_text_put_number(struct cut_text *t, uint64_t n);
void cut_text_put_code_point(struct cut_text *t, uint32_t cp); /* as UTF-8; at most 0x10ffff */

/* demangle - writes the name into @out, cut with "…" at @size; returns @out. */
const char *demangle(const char *mangled, char *out, size_t size);

/* Rust's two manglings: v0 ("_R…") and legacy ("_ZN…17h<16 digits>E"), shown
 * without crate hashes, as `{:#}` of the usual demangler does. */

/* Both append to @out and return how many bytes of @s (@len of them) make up the name: what follows
 * is a suffix of the compiler. -EINVAL if it is no such name; @out may then hold a part of it. A
 * name that fills @out counts as whole. */
int rust_legacy_demangle(const char *s, size_t len, struct cut_text *out);
int rust_v0_demangle(const char *s, size_t len, struct cut_text *out);
