/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_packed.c - recordings that travel inside the program: SQL texts are eight times smaller packed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "store/nodedb.h"

#define GZIP_WINDOW (15 + 16) /* the largest, and gzip's head and end around it */
#define GZIP_LEAST  18        /* head and end */
#define TEXT_MOST   (16u << 20)

/* How long the text is: the last four bytes say so, the lowest first. */
static size_t text_size(const struct nodedb_packed *p)
{
	const unsigned char *end = p->data + p->size;

	return (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 |
	       (size_t)end[-1] << 24;
}

static bool unpack(const struct nodedb_packed *p, char *text, size_t size)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)p->data,
		.avail_in = (unsigned)p->size,
		.next_out = (unsigned char *)text,
		.avail_out = (unsigned)size};
	bool is_whole;

	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return false;
	is_whole = inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_out && !z.avail_in;
	inflateEnd(&z);
	return is_whole;
}

int nodedb_read_packed(const struct nodedb_packed *p, const struct nodedb_filter *f,
	struct nodedb_content *ret, struct errinfo *reterr)
{
	_cleanup_free_ char *text = NULL;
	size_t size = p->size < GZIP_LEAST ? 0 : text_size(p);

	if (!size || size > TEXT_MOST)
		return errinfo_set(reterr, -EBADMSG, "a recording of this program is damaged");
	text = calloc(1, size + 1);
	if (!text)
		return -ENOMEM;
	if (!unpack(p, text, size))
		return errinfo_set(reterr, -EBADMSG, "a recording of this program is damaged");
	return nodedb_read_sql(text, f, ret, reterr);
}
