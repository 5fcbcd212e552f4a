/* SPDX-License-Identifier: Apache-2.0 */
/* cut_text.c - see cut_text.h. Invariants: len < size; data[len] == 0; is_full never goes back to
 * false but by cut_text_clear(). UTF-8 that came in whole goes out whole: a cut never leaves the
 * first bytes of a character behind. */
#include "demangle/cut_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"

#define ELLIPSIS "…"

struct cut_text cut_text_on(char *out, size_t size)
{
	out[0] = 0;
	return (struct cut_text){.data = out, .size = size};
}

void cut_text_clear(struct cut_text *t)
{
	t->len = 0;
	t->is_full = false;
	t->data[0] = 0;
}

/* The bytes [0, len) of @s without a character that is cut at their end. */
static size_t whole_characters(const char *s, size_t len, char next)
{
	if (((unsigned char)next & 0xc0) != 0x80)
		return len;
	while (len > 0 && ((unsigned char)s[len - 1] & 0xc0) == 0x80)
		len--;
	return len > 0 ? len - 1 : 0;
}

/* The buffer is full to its last byte. */
static void end_in_ellipsis(struct cut_text *t)
{
	const size_t mark = sizeof(ELLIPSIS) - 1;

	t->is_full = true;
	t->len = 0;
	if (t->size > mark) {
		size_t keep = t->size - 1 - mark;

		t->len = whole_characters(t->data, keep, t->data[keep]);
		memcpy(t->data + t->len, ELLIPSIS, mark);
		t->len += mark;
	}
	t->data[t->len] = 0;
}

void cut_text_put(struct cut_text *t, const char *s, size_t len)
{
	size_t room = t->size - 1 - t->len;

	if (t->is_full)
		return;
	memcpy(t->data + t->len, s, MIN(len, room));
	t->len += MIN(len, room);
	t->data[t->len] = 0;
	if (len > room)
		end_in_ellipsis(t);
}

void cut_text_puts(struct cut_text *t, const char *s)
{
	cut_text_put(t, s, strlen(s));
}

void cut_text_putc(struct cut_text *t, char c)
{
	cut_text_put(t, &c, 1);
}

void cut_text_put_number(struct cut_text *t, uint64_t n)
{
	char digits[24];

	cut_text_put(t, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n));
}

void cut_text_put_code_point(struct cut_text *t, uint32_t cp)
{
	char s[4];
	size_t len = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = len; i-- > 1; cp >>= 6)
		s[i] = (char)(0x80 | (cp & 0x3f));
	s[0] = (char)(lead[len] | cp);
	cut_text_put(t, s, len);
}
