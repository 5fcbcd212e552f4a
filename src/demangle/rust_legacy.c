/* SPDX-License-Identifier: Apache-2.0 */
/* rust_legacy.c - Rust's older mangling: a C++ nested name whose last part is a hash, with what C++
 * cannot hold written as $escapes$. */
#include "demangle/rust_demangle.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"

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
