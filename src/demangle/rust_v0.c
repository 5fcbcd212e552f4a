/* SPDX-License-Identifier: Apache-2.0 */
/* rust_v0.c - paths and types of Rust's v0 mangling (RFC 2603), one function for each production.
 *
 * The name is foreign: every production that can hold itself goes through rust_enter(), which
 * bounds depth and number; a back reference leads backwards only, and output has the size of its
 * buffer. */
#include "demangle/rust_reader.h"

#include "base/macros.h"

#define BINDER_MAX 64 /* lifetimes that one "for<…>" may bring */

static rust_production type;

/* "i32" for 'l'; NULL if the letter is none. */
static const char *rust_basic_type(char tag)
{
	static const char *const names[] = {['a'] = "i8",
		['b'] = "bool",
		['c'] = "char",
		['d'] = "f64",
		['e'] = "str",
		['f'] = "f32",
		['h'] = "u8",
		['i'] = "isize",
		['j'] = "usize",
		['l'] = "i32",
		['m'] = "u32",
		['n'] = "i128",
		['o'] = "u128",
		['p'] = "_",
		['s'] = "i16",
		['t'] = "u16",
		['u'] = "()",
		['v'] = "...",
		['x'] = "i64",
		['y'] = "u64",
		['z'] = "!"};

	return (unsigned char)tag < ARRAY_SIZE(names) ? names[(unsigned char)tag] : NULL;
}

size_t rust_list(struct rust_reader *r, rust_production *each, bool is_value, const char *separator)
{
	size_t count = 0;

	while (!r->is_bad && !r->out->is_full && !rust_eat(r, 'E')) {
		if (count++ > 0)
			rust_put(r, separator);
		each(r, is_value);
	}
	return count;
}

void rust_follow(struct rust_reader *r, rust_production *production, bool is_value)
{
	size_t to = rust_back_reference(r), behind = r->at;

	if (to == SIZE_MAX)
		return;
	r->at = to;
	production(r, is_value);
	r->at = behind;
}

/* Lifetimes are numbered from the innermost binder outwards; names go from the outermost on. */
static void lifetime(struct rust_reader *r, uint64_t index)
{
	uint64_t depth;

	if (index > r->bound_lifetimes) {
		if (!r->is_silent)
			rust_bad(r);
		return;
	}
	rust_putc(r, '\'');
	if (index == 0) {
		rust_putc(r, '_');
		return;
	}
	depth = r->bound_lifetimes - index;
	if (depth < 26) {
		rust_putc(r, (char)('a' + depth));
	} else {
		rust_putc(r, '_');
		rust_put_number(r, depth);
	}
}

/* [binder]: returns how many lifetimes it brings, to be taken away again behind what it binds. */
static uint64_t binder(struct rust_reader *r)
{
	uint64_t count = rust_optional62(r, 'G');

	if (count > BINDER_MAX)
		rust_bad(r);
	if (r->is_bad || count == 0)
		return 0;
	rust_put(r, "for<");
	for (uint64_t i = 0; i < count; i++) {
		if (i > 0)
			rust_put(r, ", ");
		r->bound_lifetimes++;
		lifetime(r, 1);
	}
	rust_put(r, "> ");
	return count;
}

static void generic_argument(struct rust_reader *r, bool is_value)
{
	if (rust_eat(r, 'L'))
		lifetime(r, rust_number62(r));
	else if (rust_eat(r, 'K'))
		rust_const(r, false);
	else
		type(r, false);
}

/* 'N': closures and shims are counted and may have no name; ordinary names are just that. */
static void nested_path(struct rust_reader *r, bool is_value)
{
	char space = rust_next(r);
	bool is_special = space >= 'A' && space <= 'Z';
	uint64_t disambiguator;
	struct rust_ident name;

	if (!is_special && !(space >= 'a' && space <= 'z'))
		rust_bad(r);
	rust_path(r, is_value);
	disambiguator = rust_optional62(r, 's');
	name = rust_read_ident(r);
	if (!is_special) {
		if (name.ascii_len > 0 || name.punycode)
			rust_put(r, "::");
		rust_put_ident(r, &name);
		return;
	}
	rust_put(r, "::{");
	if (space == 'C')
		rust_put(r, "closure");
	else if (space == 'S')
		rust_put(r, "shim");
	else
		rust_putc(r, space);
	if (name.ascii_len > 0 || name.punycode) {
		rust_putc(r, ':');
		rust_put_ident(r, &name);
	}
	rust_putc(r, '#');
	rust_put_number(r, disambiguator);
	rust_putc(r, '}');
}

/* 'M', 'X', 'Y': "<Type>", "<Type as Trait>". Where the implementation stands is not shown. */
static void implementation_path(struct rust_reader *r, char tag)
{
	if (tag != 'Y') {
		bool was_silent = r->is_silent;

		rust_optional62(r, 's');
		r->is_silent = true;
		rust_path(r, false);
		r->is_silent = was_silent;
	}
	rust_putc(r, '<');
	type(r, false);
	if (tag != 'M') {
		rust_put(r, " as ");
		rust_path(r, false);
	}
	rust_putc(r, '>');
}

static void path_of(struct rust_reader *r, char tag, bool is_value)
{
	struct rust_ident name;

	switch (tag) {
	case 'C':
		rust_optional62(r, 's');
		name = rust_read_ident(r);
		rust_put_ident(r, &name);
		break;
	case 'N': nested_path(r, is_value); break;
	case 'M':
	case 'X':
	case 'Y': implementation_path(r, tag); break;
	case 'I':
		rust_path(r, is_value);
		rust_put(r, is_value ? "::<" : "<");
		rust_list(r, generic_argument, false, ", ");
		rust_putc(r, '>');
		break;
	case 'B': rust_follow(r, rust_path, is_value); break;
	default: rust_bad(r);
	}
}

void rust_path(struct rust_reader *r, bool is_value)
{
	if (!rust_enter(r))
		return;
	path_of(r, rust_next(r), is_value);
	rust_leave(r);
}

/* 'F' */
static void function_type(struct rust_reader *r)
{
	uint64_t bound = binder(r);

	if (rust_eat(r, 'U'))
		rust_put(r, "unsafe ");
	if (rust_eat(r, 'K')) {
		struct rust_ident abi = {.ascii = "C", .ascii_len = 1};

		if (!rust_eat(r, 'C'))
			abi = rust_read_ident(r);
		if (abi.punycode || abi.ascii_len == 0)
			rust_bad(r);
		rust_put(r, "extern \"");
		for (size_t i = 0; i < abi.ascii_len; i++)
			rust_putc(r, abi.ascii[i] == '_' ? '-' : abi.ascii[i]);
		rust_put(r, "\" ");
	}
	rust_put(r, "fn(");
	rust_list(r, type, false, ", ");
	rust_putc(r, ')');
	if (!rust_eat(r, 'u')) {
		rust_put(r, " -> ");
		type(r, false);
	}
	r->bound_lifetimes -= bound;
}

/* The path of a trait, its generic arguments left open for the bindings that follow; the flag is
 * whether there were any. */
static bool open_trait_path(struct rust_reader *r)
{
	bool is_open = false;

	if (!rust_enter(r))
		return false;
	if (rust_eat(r, 'B')) {
		size_t to = rust_back_reference(r), behind = r->at;

		if (to != SIZE_MAX) {
			r->at = to;
			is_open = open_trait_path(r);
			r->at = behind;
		}
	} else if (rust_eat(r, 'I')) {
		rust_path(r, false);
		rust_putc(r, '<');
		rust_list(r, generic_argument, false, ", ");
		is_open = true;
	} else {
		rust_path(r, false);
	}
	rust_leave(r);
	return is_open;
}

static void dyn_trait(struct rust_reader *r, bool is_value)
{
	bool is_open = open_trait_path(r);

	while (rust_eat(r, 'p')) {
		struct rust_ident name = rust_read_ident(r);

		rust_put(r, is_open ? ", " : "<");
		is_open = true;
		rust_put_ident(r, &name);
		rust_put(r, " = ");
		type(r, false);
	}
	if (is_open)
		rust_putc(r, '>');
}

/* 'D' */
static void dyn_type(struct rust_reader *r)
{
	uint64_t bound, index;

	rust_put(r, "dyn ");
	bound = binder(r);
	rust_list(r, dyn_trait, false, " + ");
	r->bound_lifetimes -= bound;
	if (!rust_eat(r, 'L')) {
		rust_bad(r);
		return;
	}
	index = rust_number62(r);
	if (index != 0) {
		rust_put(r, " + ");
		lifetime(r, index);
	}
}

/* 'R', 'Q': a lifetime that is left out or '_' is not shown. */
static void reference_type(struct rust_reader *r, bool is_mutable)
{
	rust_putc(r, '&');
	if (rust_eat(r, 'L')) {
		uint64_t index = rust_number62(r);

		if (index != 0) {
			lifetime(r, index);
			rust_putc(r, ' ');
		}
	}
	if (is_mutable)
		rust_put(r, "mut ");
	type(r, false);
}

static void type_of(struct rust_reader *r, char tag)
{
	switch (tag) {
	case 'R':
	case 'Q': reference_type(r, tag == 'Q'); break;
	case 'P':
	case 'O':
		rust_put(r, tag == 'P' ? "*const " : "*mut ");
		type(r, false);
		break;
	case 'A':
	case 'S':
		rust_putc(r, '[');
		type(r, false);
		if (tag == 'A') {
			rust_put(r, "; ");
			rust_const(r, true);
		}
		rust_putc(r, ']');
		break;
	case 'T':
		rust_putc(r, '(');
		if (rust_list(r, type, false, ", ") == 1)
			rust_putc(r, ',');
		rust_putc(r, ')');
		break;
	case 'F': function_type(r); break;
	case 'D': dyn_type(r); break;
	case 'B': rust_follow(r, type, false); break;
	default: path_of(r, tag, false);
	}
}

static void type(struct rust_reader *r, bool is_value)
{
	const char *basic;
	char tag;

	if (!rust_enter(r))
		return;
	tag = rust_next(r);
	basic = rust_basic_type(tag);
	if (basic)
		rust_put(r, basic);
	else
		type_of(r, tag);
	rust_leave(r);
}

int rust_v0_demangle(const char *s, size_t len, struct cut_text *out)
{
	struct rust_reader r = {.out = out};

	/* A digit in the third place is the version of a later encoding. */
	if (len < 3 || memcmp(s, "_R", 2) != 0 || s[2] < 'A' || s[2] > 'Z')
		return -EINVAL;
	r.s = s + 2;
	r.len = len - 2;
	rust_path(&r, true);
	if (out->is_full)
		return (int)len;
	if (rust_peek(&r) >= 'A' && rust_peek(&r) <= 'Z') { /* the crate that instantiated it */
		r.is_silent = true;
		rust_path(&r, false);
	}
	if (r.is_bad || (r.at < r.len && r.s[r.at] != '.' && r.s[r.at] != '$'))
		return -EINVAL;
	return (int)(r.at + 2);
}
