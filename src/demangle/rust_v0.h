/* SPDX-License-Identifier: Apache-2.0 */
/* rust_v0.h - the productions of Rust's v0 mangling that hold one another; for rust_v0.c and
 * rust_const.c only. Each reads from the reader and writes what it means. */
#pragma once

#include "demangle/rust_reader.h"

typedef void rust_production(struct rust_reader *r, bool is_value);

/* @is_value: where an expression stands, so that generic arguments are written "::<…>". */
rust_production rust_path;

/* @is_value: inside another constant, so that no braces are needed around a compound one. */
rust_production rust_const;

/* rust_list - @each until 'E', with @separator between; returns how many there were. */
size_t rust_list(
	struct rust_reader *r, rust_production *each, bool is_value, const char *separator);

/* rust_follow - after a 'B': @production at the place it refers to, then on behind the reference.
 */
void rust_follow(struct rust_reader *r, rust_production *production, bool is_value);
