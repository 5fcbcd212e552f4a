/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - a growable byte buffer that is born with a ceiling.
 *
 * The first failure (ceiling or memory) sticks in err and later appends do nothing, so a caller
 * may append freely and look once at the end. The content is always NUL-terminated. */
#pragma once

#include "base/macros.h"

struct buf {
	char *data; /* NULL until the first append */
	size_t len, cap, max;
	int err; /* 0, -ENOBUFS past the ceiling, -ENOMEM */
};

#define BUF_INIT(max_bytes) ((struct buf){.max = (max_bytes)})

void buf_done(struct buf *b);
void buf_clear(struct buf *b);
void buf_append(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);

/* buf_str - the content as a string, "" when empty; valid until the next change. */
const char *buf_str(const struct buf *b);

/* buf_take - moves the content out (the caller frees it); NULL if err is set or nothing was put. */
char *buf_take(struct buf *b);

#define _cleanup_buf_ _cleanup_(buf_done)
