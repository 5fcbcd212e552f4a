/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - see buf.h. Invariants: len <= cap; cap <= max + 1; data[len] == 0 when data is set. */
#include "base/buf.h"

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->err = 0;
	if (b->data)
		b->data[0] = 0;
}

static int reserve(struct buf *b, size_t more)
{
	size_t need, cap;
	char *p;

	if (b->err)
		return b->err;
	if (more > b->max || b->len > b->max - more)
		return b->err = -ENOBUFS;
	need = b->len + more + 1;
	if (need <= b->cap)
		return 0;
	cap = MAX((size_t)64, b->cap * 2);
	cap = MAX(cap, need);
	cap = MIN(cap, b->max + 1);
	p = realloc(b->data, cap);
	if (!p)
		return b->err = -ENOMEM;
	b->data = p;
	b->cap = cap;
	return 0;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
	if (reserve(b, len) < 0)
		return;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = 0;
}

void buf_puts(struct buf *b, const char *s)
{
	buf_append(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n >= 0 && reserve(b, (size_t)n) == 0) {
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
	char *p = b->err ? NULL : TAKE(b->data);

	buf_done(b);
	return p;
}
