/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_fixture.h - bodies in gzip, the honest and the others. */
#pragma once

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"

/* put_gzip - @data @times in a row, deflated, as one member. */
static inline void put_gzip(struct buf *b, const void *data, size_t len, size_t times)
{
	unsigned char out[16384];
	z_stream z = {0};
	int r = Z_OK;

	if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	while (r != Z_STREAM_END) {
		if (!z.avail_in && times) {
			z.next_in = (unsigned char *)data;
			z.avail_in = (unsigned)len;
			times--;
		}
		z.next_out = out;
		z.avail_out = sizeof(out);
		r = deflate(&z, times || z.avail_in ? Z_NO_FLUSH : Z_FINISH);
		if (r == Z_STREAM_ERROR)
			abort();
		buf_append(b, out, sizeof(out) - z.avail_out);
	}
	deflateEnd(&z);
}

/* put_bomb - gzip of @size zeros: a thousandth of that. */
static inline void put_bomb(struct buf *b, size_t size)
{
	static const char zeros[1 << 16];

	put_gzip(b, zeros, sizeof(zeros), size / sizeof(zeros));
}
