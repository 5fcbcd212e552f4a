/* SPDX-License-Identifier: Apache-2.0 */
/* pb_reader.c - see pb_reader.h.
 *
 * Invariants: at <= end, both in the message that pb_reader_of() was given; after a fault at ==
 * end. Each call of pb_next() that returns true has moved `at`, so every walk ends. */
#include "protobuf/pb_reader.h"

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
	if (!r->err)
		r->err = err;
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

size_t pb_packed(struct pb_reader *r, const struct pb_field *f)
{
	if (f->type == PB_FIXED64)
		return 1;
	if (!is_type(r, f, PB_BYTES))
		return 0;
	if (f->len % 8) {
		fault(r, -EBADMSG);
		return 0;
	}
	return f->len / 8;
}

uint64_t pb_packed_at(const struct pb_field *f, size_t i)
{
	uint64_t le;

	if (f->type == PB_FIXED64)
		return f->value;
	memcpy(&le, f->data + 8 * i, sizeof(le));
	return le64toh(le);
}
