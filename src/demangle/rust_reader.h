/* SPDX-License-Identifier: Apache-2.0 */
/* rust_reader.h - the words of Rust's v0 mangling: numbers, identifiers, and the state of one
 * reading. For rust_v0.c and rust_const.c only.
 *
 * The first error sticks in is_bad; from then on nothing is read (every peek is 0) and nothing
 * written, so that the productions need not look at it one by one. */
#pragma once

#include "demangle/demangle.h"

#define RUST_DEPTH_MAX 200   /* productions inside one another, back references included */
#define RUST_STEPS_MAX 20000 /* productions in all: back references can repeat one without end */

struct rust_reader {
	const char *s; /* the name after "_R": back references count from here */
	size_t len, at;
	struct cut_text *out;
	bool is_bad;
	bool is_silent; /* read, but write nothing and follow no back reference */
	unsigned depth, steps;
	uint64_t bound_lifetimes; /* of the binders around */
};

struct rust_ident {
	const char *ascii;
	size_t ascii_len;
	const char *punycode; /* NULL: the name is plain */
	size_t punycode_len;
};

char rust_peek(const struct rust_reader *r); /* 0: nothing is left */
char rust_next(struct rust_reader *r);       /* bad at the end */
bool rust_eat(struct rust_reader *r, char c);
void rust_bad(struct rust_reader *r);

/* rust_enter, rust_leave - around every production that can hold itself; false: it is too deep, too
 * long, or the output is full. */
bool rust_enter(struct rust_reader *r);
void rust_leave(struct rust_reader *r);

uint64_t rust_number62(struct rust_reader *r);
uint64_t rust_optional62(struct rust_reader *r, char tag); /* 0 without @tag, else from 1 */
struct rust_ident rust_read_ident(struct rust_reader *r);  /* without a disambiguator */

/* rust_hex - hexadecimal digits up to '_'; *ret_digits without leading zeros. */
const char *rust_hex(struct rust_reader *r, size_t *ret_digits);

void rust_put(struct rust_reader *r, const char *s);
void rust_putc(struct rust_reader *r, char c);
void rust_put_number(struct rust_reader *r, uint64_t n);
void rust_put_ident(struct rust_reader *r, const struct rust_ident *i);

/* rust_back_reference - after its 'B': where it leads to, always before itself. SIZE_MAX: it is not
 * to be followed (an error, or nothing is written). */
size_t rust_back_reference(struct rust_reader *r);

/* The productions of Rust's v0 mangling that hold one another; for rust_v0.c and
 * rust_const.c only. Each reads from the reader and writes what it means. */

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
