/* SPDX-License-Identifier: Apache-2.0 */
/* rust_demangle.h - Rust's two manglings: v0 ("_R…") and legacy ("_ZN…17h<16 digits>E"), shown
 * without crate hashes, as `{:#}` of the usual demangler does. */
#pragma once

#include "demangle/cut_text.h"

/* Both append to @out and return how many bytes of @s (@len of them) make up the name: what follows
 * is a suffix of the compiler. -EINVAL if it is no such name; @out may then hold a part of it. A
 * name that fills @out counts as whole. */
int rust_legacy_demangle(const char *s, size_t len, struct cut_text *out);
int rust_v0_demangle(const char *s, size_t len, struct cut_text *out);
