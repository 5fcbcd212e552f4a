/* SPDX-License-Identifier: Apache-2.0 */
/* journal_mark.c - how far entries were acknowledged, in a file beside the journal's folder: it tells an
 * acknowledged entry that is damaged from a write that a crash cut short, and a journal that was deleted from one
 * that was never written. See struct mark. */
#include "cluster/journal/journal_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"

static const char magic[8] = {'I', 'N', 'G', 'A', 'C', 'K', 'D', '1'};

static int open_mark(const char *folder, int flags)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s.acknowledged", folder) < 0) {
		path = NULL;
		return -1;
	}
	return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static uint32_t mark_crc(const struct mark *m)
{
	return crc32c(0, m, offsetof(struct mark, crc));
}

int mark_read(const char *folder, struct mark *ret)
{
	_cleanup_fd_ int fd = open_mark(folder, O_RDONLY);
	struct mark m;
	ssize_t n = fd < 0 ? 0 : pread(fd, &m, sizeof(m), 0);

	*ret = (struct mark){0};
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(m) || memcmp(m.magic, magic, sizeof(magic)) != 0 ||
		m.crc != mark_crc(&m))
		return -EBADMSG;
	*ret = m;
	return 0;
}

int mark_open(const char *folder)
{
	return open_mark(folder, O_WRONLY | O_CREAT);
}

void mark_write(int fd, uint64_t position, int64_t wall_ns)
{
	struct mark m = {.position = position, .wall_ns = wall_ns};

	memcpy(m.magic, magic, sizeof(magic));
	m.crc = mark_crc(&m);
	(void)!pwrite(fd, &m, sizeof(m), 0); /* what it says remains true */
}
