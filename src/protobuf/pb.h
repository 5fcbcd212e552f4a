/* SPDX-License-Identifier: Apache-2.0 */
/* pb.h - protobuf: reading foreign messages, field by field, without copying; writing, below.
 *
 *	struct pb_reader r = pb_reader_of(data, len);
 *	struct pb_field f;
 *
 *	while (pb_next(&r, &f))
 *		switch (f.number) {
 *		case 1: {
 *			struct pb_reader inner = pb_enter(&r, &f);
 *			… pb_next(&inner, …) …
 *			pb_leave(&r, &inner);
 *			break;
 *		}
 *		case 2: value = pb_int(&r, &f); break;
 *		}
 *	if (r.err)
 *		return r.err;
 *
 * Nothing is read beyond the message. The first fault ends the walk and stays in err, so that a
 * caller looks once at its end: -EBADMSG (cut off, bad varint, group, field 0, a type other than
 * the one asked for), -E2BIG (messages nested deeper than PB_DEPTH_MAX). Unknown fields are
 * skipped by whoever does not look at them. */
#pragma once

#include "base/buf.h"

#define PB_DEPTH_MAX 16

enum pb_type { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_reader {
	const uint8_t *at, *end;
	unsigned depth;
	int err;
};

struct pb_field {
	uint32_t number;
	enum pb_type type;
	uint64_t value;      /* all types but PB_BYTES */
	const uint8_t *data; /* PB_BYTES: in the message */
	size_t len;
};

struct pb_reader pb_reader_of(const void *data, size_t len);

/* pb_next - the next field; false at the end and after a fault. */
bool pb_next(struct pb_reader *r, struct pb_field *ret);

/* pb_enter - a reader of the message in @f. A fault in it is @r's too once pb_leave() is called. */
struct pb_reader pb_enter(struct pb_reader *r, const struct pb_field *f);
void pb_leave(struct pb_reader *r, const struct pb_reader *inner);

/* Values; 0 (and a fault of @r) if @f is of another type. */
int64_t pb_int(struct pb_reader *r, const struct pb_field *f); /* int32, int64, enum, bool */
uint64_t pb_fixed64(struct pb_reader *r, const struct pb_field *f);
double pb_double(struct pb_reader *r, const struct pb_field *f);

/* pb_string - *ret_len bytes that are valid UTF-8; NULL (and a fault) otherwise. */
const char *pb_string(struct pb_reader *r, const struct pb_field *f, size_t *ret_len);

/* ---- writing messages of protocol buffers, without knowing any of them.
 *
 * Fields are appended to a struct buf in the order of the calls; numbers of fields and their types
 * are the caller's to know. The buffer's first failure sticks, so look at buf.err once at the end.
 * A nested message is written into the same buffer between pb_put_begin() and pb_put_end(),
 * which puts its length in front. */

/* pb_put_varint - uint32, uint64, enum, bool; int32 and int64 as uint64_t of the same value. */
void pb_put_varint(struct buf *b, uint32_t field, uint64_t v);
void pb_put_fixed64(struct buf *b, uint32_t field, uint64_t v); /* fixed64, sfixed64 */
void pb_put_fixed32(struct buf *b, uint32_t field, uint32_t v);
void pb_put_double(struct buf *b, uint32_t field, double v);
void pb_put_bytes(struct buf *b, uint32_t field, const void *data, size_t len);

/* pb_put_string - as a string field must be UTF-8, each bad byte of @s becomes U+FFFD. */
void pb_put_string(struct buf *b, uint32_t field, const char *s);
void pb_put_string_len(struct buf *b, uint32_t field, const char *s, size_t len);

/* Packed repeated fields; nothing if @count is 0. */
void pb_put_packed_fixed64(struct buf *b, uint32_t field, const uint64_t *v, size_t count);
void pb_put_packed_double(struct buf *b, uint32_t field, const double *v, size_t count);

/* pb_put_begin - the message (or packed field) @field begins; give what it returns to
 * pb_put_end(). Several may be open, ended in reverse order. */
size_t pb_put_begin(struct buf *b, uint32_t field);
void pb_put_end(struct buf *b, size_t mark);
