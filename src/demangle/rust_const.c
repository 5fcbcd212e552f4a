/* SPDX-License-Identifier: Apache-2.0 */
/* rust_const.c - constants in Rust's v0 mangling: the values of const generics. */
#include "demangle/rust_reader.h"

#include "base/text.h"

static uint64_t hex_number(const char *digits, size_t count)
{
	uint64_t n = 0;

	for (size_t i = 0; i < count; i++)
		n = n << 4 | (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
	return n;
}

static void number(struct rust_reader *r)
{
	size_t count;
	const char *digits = rust_hex(r, &count);

	if (r->is_bad || r->is_silent)
		return;
	if (count <= 16) {
		rust_put_number(r, hex_number(digits, count));
	} else {
		rust_put(r, "0x");
		cut_text_put(r->out, digits, count);
	}
}

/* A character between @quote, as Rust's source would have it. */
static void put_escaped(struct rust_reader *r, uint32_t cp, char quote)
{
	switch (cp) {
	case '\t': rust_put(r, "\\t"); return;
	case '\r': rust_put(r, "\\r"); return;
	case '\n': rust_put(r, "\\n"); return;
	case '\\': rust_put(r, "\\\\"); return;
	default: break;
	}
	if (cp == (unsigned char)quote) {
		rust_putc(r, '\\');
		rust_putc(r, quote);
	} else if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) {
		rust_put(r, FORMATTED(16, "\\u{%x}", cp));
	} else if (!r->is_bad && !r->is_silent) {
		cut_text_put_code_point(r->out, cp);
	}
}

static void boolean(struct rust_reader *r)
{
	size_t count;
	const char *digits = rust_hex(r, &count);
	uint64_t value = count <= 1 ? hex_number(digits, count) : 2;

	if (value > 1)
		rust_bad(r);
	rust_put(r, value ? "true" : "false");
}

static void character(struct rust_reader *r)
{
	size_t count;
	const char *digits = rust_hex(r, &count);
	uint64_t cp = count <= 6 ? hex_number(digits, count) : UINT64_MAX;

	if (r->is_bad || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000)) {
		rust_bad(r);
		return;
	}
	rust_putc(r, '\'');
	put_escaped(r, (uint32_t)cp, '\'');
	rust_putc(r, '\'');
}

/* The bytes of a str, two digits each; leading zeros are bytes too, so rust_hex() will not do. */
static void string(struct rust_reader *r)
{
	const char *digits = r->s + r->at;
	char bytes[64]; /* whole characters from the front of what is not written yet */
	size_t have = 0, at = 0, count = 0, ignored;

	rust_hex(r, &ignored);
	if (r->is_bad)
		return;
	count = (size_t)(r->s + r->at - 1 - digits);
	if (count % 2 != 0) {
		rust_bad(r);
		return;
	}
	rust_putc(r, '"');
	while ((at < count || have > 0) && !r->is_bad && !r->out->is_full) {
		uint32_t cp;
		int len;

		while (at < count && have < sizeof(bytes)) {
			bytes[have++] = (char)hex_number(digits + at, 2);
			at += 2;
		}
		len = text_utf8_next(bytes, have, &cp);
		if (len <= 0) {
			rust_bad(r);
			return;
		}
		put_escaped(r, cp, '"');
		have -= (size_t)len;
		memmove(bytes, bytes + len, have);
	}
	rust_putc(r, '"');
}

static void field(struct rust_reader *r, bool is_value)
{
	struct rust_ident name;

	rust_optional62(r, 's');
	name = rust_read_ident(r);
	rust_put_ident(r, &name);
	rust_put(r, ": ");
	rust_const(r, true);
}

/* 'V': a value of a struct or an enumeration. */
static void variant(struct rust_reader *r)
{
	rust_path(r, true);
	switch (rust_next(r)) {
	case 'U': break;
	case 'T':
		rust_putc(r, '(');
		rust_list(r, rust_const, true, ", ");
		rust_putc(r, ')');
		break;
	case 'S':
		rust_put(r, " { ");
		rust_list(r, field, true, ", ");
		rust_put(r, " }");
		break;
	default: rust_bad(r);
	}
}

static void compound(struct rust_reader *r, char tag)
{
	switch (tag) {
	case 'e': /* a str itself: what a string literal points to */
		rust_putc(r, '*');
		string(r);
		break;
	case 'R':
	case 'Q':
		rust_put(r, tag == 'R' ? "&" : "&mut ");
		rust_const(r, true);
		break;
	case 'A':
		rust_putc(r, '[');
		rust_list(r, rust_const, true, ", ");
		rust_putc(r, ']');
		break;
	case 'T':
		rust_putc(r, '(');
		if (rust_list(r, rust_const, true, ", ") == 1)
			rust_putc(r, ',');
		rust_putc(r, ')');
		break;
	case 'V': variant(r); break;
	default: rust_bad(r);
	}
}

static void const_of(struct rust_reader *r, char tag, bool is_value)
{
	if (tag == 'p') {
		rust_putc(r, '_');
	} else if (tag && strchr("htmyoj", tag)) {
		number(r);
	} else if (tag && strchr("aslxni", tag)) {
		if (rust_eat(r, 'n'))
			rust_putc(r, '-');
		number(r);
	} else if (tag == 'b') {
		boolean(r);
	} else if (tag == 'c') {
		character(r);
	} else if (tag == 'B') {
		rust_follow(r, rust_const, is_value);
	} else if (tag == 'R' && rust_eat(r, 'e')) {
		string(r);
	} else {
		rust_put(r, is_value ? "" : "{");
		compound(r, tag);
		rust_put(r, is_value ? "" : "}");
	}
}

void rust_const(struct rust_reader *r, bool is_value)
{
	if (!rust_enter(r))
		return;
	const_of(r, rust_next(r), is_value);
	rust_leave(r);
}
