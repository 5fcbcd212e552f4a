/* SPDX-License-Identifier: Apache-2.0 */
/* pb_writer.c - see pb_writer.h.
 *
 * Invariants:
 *  1. A nested message begins with one byte kept for its length; lengths of 128 and more move the
 *     content up. Most messages are short, and a length written in its shortest form is what other
 *     writers make too.
 *  2. After the buffer failed nothing is touched: marks may then point past its content. */
#include "protobuf/pb_writer.h"

#include "base/text.h"

enum wire_type { TYPE_VARINT = 0, TYPE_FIXED64 = 1, TYPE_LENGTH = 2, TYPE_FIXED32 = 5 };

#define VARINT_MAX  10
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static size_t varint_encode(unsigned char out[VARINT_MAX], uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (unsigned char)(v | 0x80);
	out[n++] = (unsigned char)v;
	return n;
}

static void put_varint(struct buf *b, uint64_t v)
{
	unsigned char bytes[VARINT_MAX];

	buf_append(b, bytes, varint_encode(bytes, v));
}

static void put_key(struct buf *b, uint32_t field, enum wire_type type)
{
	put_varint(b, (uint64_t)field << 3 | type);
}

void pb_put_varint(struct buf *b, uint32_t field, uint64_t v)
{
	unsigned char bytes[2 * VARINT_MAX];
	size_t n = varint_encode(bytes, (uint64_t)field << 3 | TYPE_VARINT);

	buf_append(b, bytes, n + varint_encode(bytes + n, v));
}

void pb_put_sint(struct buf *b, uint32_t field, int64_t v)
{
	pb_put_varint(b, field, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

static void put_little(struct buf *b, uint64_t v, size_t size)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(v >> (8 * i));
	buf_append(b, bytes, size);
}

static void put_fixed64(struct buf *b, uint64_t v)
{
	put_little(b, v, 8);
}

static void put_double(struct buf *b, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_little(b, bits, 8);
}

void pb_put_fixed64(struct buf *b, uint32_t field, uint64_t v)
{
	put_key(b, field, TYPE_FIXED64);
	put_little(b, v, 8);
}

void pb_put_fixed32(struct buf *b, uint32_t field, uint32_t v)
{
	put_key(b, field, TYPE_FIXED32);
	put_little(b, v, 4);
}

void pb_put_double(struct buf *b, uint32_t field, double v)
{
	put_key(b, field, TYPE_FIXED64);
	put_double(b, v);
}

void pb_put_bytes(struct buf *b, uint32_t field, const void *data, size_t len)
{
	put_key(b, field, TYPE_LENGTH);
	put_varint(b, len);
	buf_append(b, data, len);
}

static void put_utf8(struct buf *b, const char *s, size_t len)
{
	size_t good = 0; /* of the bytes at s, not appended yet */
	uint32_t cp;

	while (good < len) {
		int n = text_utf8_next(s + good, len - good, &cp);

		if (n > 0) {
			good += (size_t)n;
			continue;
		}
		buf_append(b, s, good);
		buf_puts(b, REPLACEMENT);
		s += good + 1;
		len -= good + 1;
		good = 0;
	}
	buf_append(b, s, good);
}

void pb_put_string_len(struct buf *b, uint32_t field, const char *s, size_t len)
{
	size_t mark = pb_put_begin(b, field);

	put_utf8(b, s, len);
	pb_put_end(b, mark);
}

void pb_put_string(struct buf *b, uint32_t field, const char *s)
{
	pb_put_string_len(b, field, s, strlen(s));
}

size_t pb_put_begin(struct buf *b, uint32_t field)
{
	put_key(b, field, TYPE_LENGTH);
	buf_putc(b, 0);
	return b->len;
}

void pb_put_end(struct buf *b, size_t mark)
{
	unsigned char bytes[VARINT_MAX];
	size_t len, n;

	if (b->err)
		return;
	len = b->len - mark;
	n = varint_encode(bytes, len);
	if (n > 1) {
		buf_append(b, bytes, n - 1); /* room; its content does not count yet */
		if (b->err)
			return;
		memmove(b->data + mark + n - 1, b->data + mark, len);
	}
	memcpy(b->data + mark - 1, bytes, n);
}

void pb_put_packed_fixed64(struct buf *b, uint32_t field, const uint64_t *v, size_t count)
{
	if (!count)
		return;
	put_key(b, field, TYPE_LENGTH);
	put_varint(b, count * sizeof(*v));
	for (size_t i = 0; i < count; i++)
		put_fixed64(b, v[i]);
}

void pb_put_packed_double(struct buf *b, uint32_t field, const double *v, size_t count)
{
	if (!count)
		return;
	put_key(b, field, TYPE_LENGTH);
	put_varint(b, count * sizeof(*v));
	for (size_t i = 0; i < count; i++)
		put_double(b, v[i]);
}
