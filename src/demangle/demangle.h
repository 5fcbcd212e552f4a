/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.h - a linker's name as people wrote it: C++ (Itanium ABI), Rust (legacy and v0).
 *
 * Clones are shown as such: "f(int) [clone .cold]". What is no mangled name, or a bad one, stays as
 * it is. The input is foreign: depth, size and time have ceilings. */
#pragma once

#include <stddef.h>

#include "demangle/cut_text.h"

/* demangle - writes the name into @out, cut with "…" at @size; returns @out. */
const char *demangle(const char *mangled, char *out, size_t size);

/* Rust's two manglings: v0 ("_R…") and legacy ("_ZN…17h<16 digits>E"), shown
 * without crate hashes, as `{:#}` of the usual demangler does. */

/* Both append to @out and return how many bytes of @s (@len of them) make up the name: what follows
 * is a suffix of the compiler. -EINVAL if it is no such name; @out may then hold a part of it. A
 * name that fills @out counts as whole. */
int rust_legacy_demangle(const char *s, size_t len, struct cut_text *out);
int rust_v0_demangle(const char *s, size_t len, struct cut_text *out);
