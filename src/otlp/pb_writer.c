/* SPDX-License-Identifier: Apache-2.0 */
/* pb_writer.c - see pb_writer.h. Wire format: each field is a varint (number << 3 | type) and its
 * value; types used here are 0 (varint), 1 (eight bytes, little-endian) and 2 (length and bytes).
 *
 * One byte is kept free for a message's length. Most messages are shorter than 128 bytes, so it is
 * enough; a longer one is moved by the few bytes that its length needs more. */
#include "otlp/pb_writer.h"

#include <endian.h>
#include <string.h>

#define VARINT_MAX 10

enum { TYPE_VARINT = 0, TYPE_FIXED64 = 1, TYPE_BYTES = 2 };

static size_t varint_make(uint8_t out[VARINT_MAX], uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	return n;
}

static void varint_put(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];

	buf_append(b, bytes, varint_make(bytes, v));
}

static void tag_put(struct buf *b, unsigned field, unsigned type)
{
	varint_put(b, (uint64_t)field << 3 | type);
}

size_t pb_begin(struct buf *b, unsigned field)
{
	tag_put(b, field, TYPE_BYTES);
	buf_putc(b, 0);
	return b->len;
}

void pb_end(struct buf *b, size_t begun)
{
	static const uint8_t room[VARINT_MAX];
	uint8_t bytes[VARINT_MAX];
	size_t len, more;

	if (b->err)
		return;
	len = b->len - begun;
	more = varint_make(bytes, len) - 1;
	buf_append(b, room, more);
	if (b->err)
		return;
	memmove(b->data + begun + more, b->data + begun, len);
	memcpy(b->data + begun - 1, bytes, more + 1);
}

void pb_put_varint(struct buf *b, unsigned field, uint64_t v)
{
	tag_put(b, field, TYPE_VARINT);
	varint_put(b, v);
}

void pb_put_fixed64(struct buf *b, unsigned field, uint64_t v)
{
	uint64_t le = htole64(v);

	tag_put(b, field, TYPE_FIXED64);
	buf_append(b, &le, sizeof(le));
}

void pb_put_double(struct buf *b, unsigned field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	pb_put_fixed64(b, field, bits);
}

void pb_put_bytes(struct buf *b, unsigned field, const void *data, size_t len)
{
	tag_put(b, field, TYPE_BYTES);
	varint_put(b, len);
	buf_append(b, data, len);
}

void pb_put_string(struct buf *b, unsigned field, const char *s)
{
	pb_put_bytes(b, field, s, strlen(s));
}

void pb_put_packed_fixed64(struct buf *b, unsigned field, const uint64_t *v, size_t count)
{
	if (!count)
		return;
	tag_put(b, field, TYPE_BYTES);
	varint_put(b, count * sizeof(*v));
	for (size_t i = 0; i < count; i++) {
		uint64_t le = htole64(v[i]);

		buf_append(b, &le, sizeof(le));
	}
}

void pb_put_packed_double(struct buf *b, unsigned field, const double *v, size_t count)
{
	if (!count)
		return;
	tag_put(b, field, TYPE_BYTES);
	varint_put(b, count * sizeof(*v));
	for (size_t i = 0; i < count; i++) {
		uint64_t bits;

		memcpy(&bits, &v[i], sizeof(bits));
		bits = htole64(bits);
		buf_append(b, &bits, sizeof(bits));
	}
}
