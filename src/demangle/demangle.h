/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.h - a linker's name as people wrote it: C++ (Itanium ABI), Rust (legacy and v0).
 *
 * Clones are shown as such: "f(int) [clone .cold]". What is no mangled name, or a bad one, stays as
 * it is. The input is foreign: depth, size and time have ceilings. */
#pragma once

#include <stddef.h>

/* demangle - writes the name into @out, cut with "…" at @size; returns @out. */
const char *demangle(const char *mangled, char *out, size_t size);
