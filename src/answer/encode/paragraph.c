/* SPDX-License-Identifier: Apache-2.0 */
/* paragraph.c - see paragraph.h. */
#include "answer/encode/paragraph.h"

#include <string.h>

#include "base/text.h"

/* Columns of a UTF-8 text: continuation bytes take none. */
static size_t columns(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/* The text is escaped first, so that a break never falls into an escaped byte. */
void paragraph_wrap(struct buf *b, size_t indent, size_t width, const char *text)
{
	_cleanup_buf_ struct buf clean = BUF_INIT(1 << 16);
	size_t column = indent;

	text_escape_terminal(&clean, text);
	for (const char *s = buf_str(&clean); *s;) {
		size_t len = strcspn(s, " "), word = columns(s, len);

		if (column > indent && column + 1 + word > width) {
			buf_printf(b, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			buf_putc(b, ' ');
			column++;
		}
		buf_append(b, s, len);
		column += word;
		s += len + strspn(s + len, " ");
	}
	buf_putc(b, '\n');
}

void paragraph_put(struct buf *b, size_t width, const char *label, const char *text)
{
	buf_puts(b, label);
	paragraph_wrap(b, strlen(label), width, text);
}
