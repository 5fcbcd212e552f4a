/* SPDX-License-Identifier: Apache-2.0 */
/* python_text.c - a str object's characters as UTF-8. Python keeps them in 1, 2 or 4 bytes each,
 * whichever the widest needs; surrogates stand alone in it, so that they are no characters here. */
#include <string.h>

#include "record/python/python.h"

#define REPLACEMENT 0xfffd

static void utf8_put(uint32_t c, struct buf *out)
{
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		c = REPLACEMENT;
	if (c < 0x80) {
		buf_putc(out, (char)c);
	} else if (c < 0x800) {
		buf_putc(out, (char)(0xc0 | c >> 6));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_putc(out, (char)(0xe0 | c >> 12));
		buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_putc(out, (char)(0xf0 | c >> 18));
		buf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	}
}

int python_text(const uint8_t *data, size_t bytes, unsigned kind, struct buf *out)
{
	if (kind != 1 && kind != 2 && kind != 4) { /* nothing is known of it but that it is there */
		utf8_put(REPLACEMENT, out);
		return out->err;
	}
	for (size_t i = 0; i + kind <= bytes; i += kind) {
		uint32_t c = 0;

		memcpy(&c, data + i, kind); /* the process has this machine's byte order: little */
		utf8_put(c, out);
	}
	return out->err;
}
