/* SPDX-License-Identifier: Apache-2.0 */
/* pb_writer.h - writes protobuf messages into a buffer.
 *
 * Fields come out in the order of the calls. A message inside another is begun and ended around its
 * fields; its length is put in front of it at its end. Failures stick in the buffer (base/buf.h).
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/* pb_begin - a message as field @field; what pb_begin() returned is given to pb_end(). */
size_t pb_begin(struct buf *b, unsigned field);
void pb_end(struct buf *b, size_t begun);

void pb_put_varint(struct buf *b, unsigned field, uint64_t v); /* int64, enum, bool */
void pb_put_fixed64(struct buf *b, unsigned field, uint64_t v);
void pb_put_double(struct buf *b, unsigned field, double v);
void pb_put_bytes(struct buf *b, unsigned field, const void *data, size_t len);
void pb_put_string(struct buf *b, unsigned field, const char *s);

/* Packed repeated fields; nothing if @count is 0. */
void pb_put_packed_fixed64(struct buf *b, unsigned field, const uint64_t *v, size_t count);
void pb_put_packed_double(struct buf *b, unsigned field, const double *v, size_t count);
