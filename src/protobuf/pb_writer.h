/* SPDX-License-Identifier: Apache-2.0 */
/* pb_writer.h - writing messages of protocol buffers, without knowing any of them.
 *
 * Fields are appended to a struct buf in the order of the calls; numbers of fields and their types
 * are the caller's to know. The buffer's first failure sticks, so look at buf.err once at the end.
 * A nested message is written into the same buffer between pb_put_begin() and pb_put_end(),
 * which puts its length in front. */
#pragma once

#include "base/buf.h"

/* pb_put_varint - uint32, uint64, enum, bool; int32 and int64 as uint64_t of the same value. */
void pb_put_varint(struct buf *b, uint32_t field, uint64_t v);
void pb_put_sint(struct buf *b, uint32_t field, int64_t v);     /* sint32, sint64 */
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
