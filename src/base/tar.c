/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c - see tar.h. */
#include "base/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 512

struct header { /* as POSIX lays it out: numbers are octal digits with a NUL behind them */
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "the header is one block");

static void fill(struct buf *b, size_t len)
{
	static const char zeros[BLOCK];

	buf_append(b, zeros, len);
}

int tar_put(
	struct buf *b, const char *name, mode_t mode, int64_t mtime_s, const void *data, size_t len)
{
	struct header h = {.type = '0'};
	const unsigned char *bytes = (const unsigned char *)&h;
	unsigned sum = 0;

	if (strlen(name) >= sizeof(h.name))
		return -ENAMETOOLONG;
	memcpy(h.name, name, strlen(name));
	snprintf(h.mode, sizeof(h.mode), "%07o", (unsigned)mode & 07777);
	snprintf(h.uid, sizeof(h.uid), "%07o", 0U);
	snprintf(h.gid, sizeof(h.gid), "%07o", 0U);
	snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)len);
	snprintf(
		h.mtime, sizeof(h.mtime), "%011llo", (unsigned long long)mtime_s & 077777777777ULL);
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	memset(h.checksum, ' ', sizeof(h.checksum)); /* as it counts itself */
	for (size_t i = 0; i < sizeof(h); i++)
		sum += bytes[i];
	snprintf(h.checksum, sizeof(h.checksum), "%06o", sum & 0777777);
	h.checksum[7] = ' ';
	buf_append(b, &h, sizeof(h));
	buf_append(b, data, len);
	fill(b, (BLOCK - len % BLOCK) % BLOCK);
	return b->err;
}

int tar_end(struct buf *b)
{
	fill(b, BLOCK);
	fill(b, BLOCK);
	return b->err;
}
