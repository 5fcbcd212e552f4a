/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.c - see inflate.h. zlib does the work, in steps of PIECE bytes so that a bomb is
 * noticed after that many.
 *
 * gzip allows several members in a row; they are taken as one text, as gzip itself does, and the ratio
 * is that of all of them. */
#include "net/inflate.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#define PIECE     16384
#define GZIP_ONLY (15 + 16) /* windowBits: a window of 32 KiB, and gzip's header */
#define LEVEL     1 /* metrics become a tenth by it, and a twelfth by 6 in three times the time */
#define MEMORY    8 /* zlib's own choice: 256 KiB */

struct inflate {
	z_stream stream;
	uint64_t in, out;
	bool ended; /* at the end of a member */
};

int inflate_new(struct inflate **ret)
{
	struct inflate *z = calloc(1, sizeof(*z));

	if (!z || inflateInit2(&z->stream, GZIP_ONLY) != Z_OK) {
		free(z);
		return -ENOMEM;
	}
	*ret = z;
	return 0;
}

void inflate_free(struct inflate *z)
{
	inflateEnd(&z->stream);
	free(z);
}

bool inflate_is_complete(const struct inflate *z)
{
	return z->ended;
}

/* step - one call of zlib. */
static int step(struct inflate *z, struct buf *out, const char **ret_fault)
{
	unsigned char piece[PIECE];
	size_t before = z->stream.avail_in, n;
	int r;

	if (z->ended) /* another member */
		inflateReset(&z->stream);
	z->ended = false;
	z->stream.next_out = piece;
	z->stream.avail_out = sizeof(piece);
	r = inflate(&z->stream, Z_NO_FLUSH);
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) {
		*ret_fault = "the body is not valid gzip";
		return -EBADMSG;
	}
	z->ended = r == Z_STREAM_END;
	n = sizeof(piece) - z->stream.avail_out;
	z->in += before - z->stream.avail_in;
	z->out += n;
	if (z->out <= INFLATE_FREE || z->out / INFLATE_RATIO <= z->in)
		buf_append(out, piece, n);
	else
		out->err = -ENOBUFS;
	if (out->err == -ENOBUFS)
		*ret_fault = "the body inflates to too many bytes";
	return out->err == -ENOBUFS ? -E2BIG : out->err;
}

int inflate_feed(
	struct inflate *z, const void *data, size_t len, struct buf *out, const char **ret_fault)
{
	*ret_fault = "out of memory for this request";
	z->stream.next_in = (unsigned char *)data;
	z->stream.avail_in = (unsigned)len;
	/* A full piece may have more behind it, though all of the input is used. */
	do {
		int r = len ? step(z, out, ret_fault) : 0;

		if (r < 0)
			return r;
	} while (z->stream.avail_in || (len && !z->ended && !z->stream.avail_out));
	return 0;
}

int inflate_undo(const void *data, size_t len, struct buf *out)
{
	z_stream z = {.next_in = (unsigned char *)data, .avail_in = (unsigned)len};
	unsigned char piece[PIECE];
	int r = Z_OK;

	if (deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP_ONLY, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	while (r == Z_OK) {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		r = deflate(&z, Z_FINISH);
		buf_append(out, piece, sizeof(piece) - z.avail_out);
	}
	deflateEnd(&z);
	return r == Z_STREAM_END ? out->err : -ENOMEM;
}
