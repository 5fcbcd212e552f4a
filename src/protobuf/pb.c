/* SPDX-License-Identifier: Apache-2.0 */
/* pb.c - see pb.h.
 *
 * Invariants: at <= end, both in the message that pb_reader_of() was given; after a fault at ==
 * end. Each call of pb_next() that returns true has moved `at`, so every walk ends. */
#include "protobuf/pb.h"

#include <endian.h>

#include "base/text.h"

#define NUMBER_MAX ((1u << 29) - 1)

struct pb_reader pb_reader_of(const void *data, size_t len)
{
	const uint8_t *at = data;

	return (struct pb_reader){.at = at, .end = at ? at + len : at};
}

static bool fault(struct pb_reader *r, int err)
{
	r->err = r->err ?: err;
	r->at = r->end;
	return false;
}

static bool varint_get(struct pb_reader *r, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (r->at == r->end)
			return fault(r, -EBADMSG);
		byte = *r->at++;
		if (shift == 63 && byte > 1)
			return fault(r, -EBADMSG); /* more than 64 bits */
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return fault(r, -EBADMSG);
}

static bool fixed_get(struct pb_reader *r, size_t size, uint64_t *ret)
{
	uint64_t le = 0;

	if ((size_t)(r->end - r->at) < size)
		return fault(r, -EBADMSG);
	memcpy(&le, r->at, size);
	r->at += size;
	*ret = le64toh(le); /* the upper bytes of a shorter one are 0 in this order */
	return true;
}

static bool bytes_get(struct pb_reader *r, struct pb_field *f)
{
	uint64_t len;

	if (!varint_get(r, &len))
		return false;
	if (len > (size_t)(r->end - r->at))
		return fault(r, -EBADMSG);
	f->data = r->at;
	f->len = (size_t)len;
	r->at += len;
	return true;
}

bool pb_next(struct pb_reader *r, struct pb_field *ret)
{
	struct pb_field f = {0};
	uint64_t tag;
	bool ok;

	if (r->err || r->at == r->end)
		return false;
	if (!varint_get(r, &tag))
		return false;
	if (!(tag >> 3) || tag >> 3 > NUMBER_MAX)
		return fault(r, -EBADMSG);
	f.number = (uint32_t)(tag >> 3);
	f.type = (enum pb_type)(tag & 7);
	switch (f.type) {
	case PB_VARINT: ok = varint_get(r, &f.value); break;
	case PB_FIXED64: ok = fixed_get(r, 8, &f.value); break;
	case PB_BYTES: ok = bytes_get(r, &f); break;
	case PB_FIXED32: ok = fixed_get(r, 4, &f.value); break;
	default: ok = fault(r, -EBADMSG); /* groups, which nest without a length */
	}
	if (ok)
		*ret = f;
	return ok;
}

struct pb_reader pb_enter(struct pb_reader *r, const struct pb_field *f)
{
	struct pb_reader inner = {.depth = r->depth + 1};

	if (f->type != PB_BYTES)
		fault(&inner, -EBADMSG);
	else if (inner.depth > PB_DEPTH_MAX)
		fault(&inner, -E2BIG);
	if (inner.err) {
		fault(r, inner.err);
		return inner;
	}
	inner.at = f->data;
	inner.end = f->data + f->len;
	return inner;
}

void pb_leave(struct pb_reader *r, const struct pb_reader *inner)
{
	if (inner->err)
		fault(r, inner->err);
}

static bool is_type(struct pb_reader *r, const struct pb_field *f, enum pb_type type)
{
	return f->type == type || fault(r, -EBADMSG);
}

int64_t pb_int(struct pb_reader *r, const struct pb_field *f)
{
	return is_type(r, f, PB_VARINT) ? (int64_t)f->value : 0;
}

uint64_t pb_fixed64(struct pb_reader *r, const struct pb_field *f)
{
	return is_type(r, f, PB_FIXED64) ? f->value : 0;
}

double pb_double(struct pb_reader *r, const struct pb_field *f)
{
	uint64_t bits = pb_fixed64(r, f);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

const char *pb_string(struct pb_reader *r, const struct pb_field *f, size_t *ret_len)
{
	const char *s = (const char *)f->data;
	uint32_t cp;
	int n;

	if (!is_type(r, f, PB_BYTES))
		return NULL;
	for (size_t i = 0; i < f->len; i += (size_t)n) {
		n = f->data[i] < 0x80 ? 1 : text_utf8_next(s + i, f->len - i, &cp);
		if (n < 0) {
			fault(r, -EBADMSG);
			return NULL;
		}
	}
	*ret_len = f->len;
	return s;
}

/* ---- writing
 *
 * Invariants:
 *  1. A nested message begins with one byte kept for its length; lengths of 128 and more move the
 *     content up. Most messages are short, and a length written in its shortest form is what other
 *     writers make too.
 *  2. After the buffer failed nothing is touched: marks may then point past its content. */

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

static void put_little(struct buf *b, uint64_t v, size_t size)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(v >> (8 * i));
	buf_append(b, bytes, size);
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
		put_little(b, v[i], 8);
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
