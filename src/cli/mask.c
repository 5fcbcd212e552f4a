/* SPDX-License-Identifier: Apache-2.0 */
/* mask.c - see mask.h. By lines, not by YAML, so that also a file that is not valid can be shown: what
 * is in doubt is masked. */
#include "cli/mask.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define MASK "***"

static bool ends_with(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !strncasecmp(s + len - n, end, n);
}

static bool is_secret(const char *key, size_t len)
{
	static const char *const words[] = {"token", "secret", "password", "passwd", "key",
		"bearer", "auth", "credential", "header"};
	static const char *const names[] = {"_file", "_env", "_cert", "client_key", "tls_key"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (ends_with(key, len, names[i]))
			return false; /* where it is, not what it is */
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (size_t at = 0; at + strlen(words[i]) <= len; at++)
			if (!strncasecmp(key + at, words[i], strlen(words[i])))
				return true;
	return false;
}

/* The value, with what may be secret in URLs masked: "//user:password@" and "?query". */
static void put_value(struct buf *b, const char *s, size_t len)
{
	const char *end = s + len, *slashes = memmem(s, len, "//", 2);
	const char *at = slashes ? memchr(slashes, '@', (size_t)(end - slashes)) : NULL;
	const char *query;

	if (at) {
		buf_append(b, s, (size_t)(slashes + 2 - s));
		buf_puts(b, MASK);
		s = at;
	}
	query = slashes ? memchr(s, '?', (size_t)(end - s)) : NULL;
	buf_append(b, s, (size_t)((query ? query : end) - s));
	if (query)
		buf_puts(b, "?" MASK);
}

/* Where a comment begins: '#' at the start or after a blank. In quotes too: what is cut off is not shown. */
static size_t without_comment(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] == '#' && (i == 0 || isblank((unsigned char)s[i - 1])))
			return i;
	return len;
}

/* What stands deeper than a secret key is its value, on lines of its own. */
void mask_yaml(struct buf *b, const char *text)
{
	size_t hidden_below = SIZE_MAX;

	while (*text) {
		size_t whole = strcspn(text, "\n"), len = without_comment(text, whole);
		size_t indent = strspn(text, " -"), key;
		const char *colon;

		colon = len > indent ? memchr(text + indent, ':', len - indent) : NULL;
		key = colon ? (size_t)(colon - text) - indent : 0;
		if (indent < len && indent <= hidden_below)
			hidden_below = SIZE_MAX;
		if (hidden_below != SIZE_MAX && indent < len) {
			buf_append(b, text, indent);
			buf_puts(b, MASK);
		} else if (key && is_secret(text + indent, key)) {
			buf_append(b, text, (size_t)(colon + 1 - text));
			buf_puts(b, " " MASK);
			hidden_below = indent;
		} else {
			put_value(b, text, len);
		}
		buf_putc(b, '\n');
		text += whole + (text[whole] == '\n');
	}
}
