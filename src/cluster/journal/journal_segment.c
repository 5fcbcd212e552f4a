/* SPDX-License-Identifier: Apache-2.0 */
/* journal_segment.c - segments as files: their names, heads and entries. See journal_private.h. */
#include "cluster/journal/journal_private.h"

#include <fcntl.h>
#include <sys/random.h>

#include "base/hash.h"

#define WINDOW     (1u << 20) /* bytes that are read at once */
#define FIND_TIMES 64 /* of a file, as sums: data that is made of heads does not hold a start up */

static const char magic[8] = {'I', 'N', 'G', 'J', 'R', 'N', 'L', '1'};

struct segment_head {
	char magic[8];
	uint64_t first;
	uint32_t salt[3], crc;
};
STATIC_ASSERT(sizeof(struct segment_head) == SEGMENT_HEAD);

void window_done(struct window *w)
{
	free(w->data);
}

static int window_read(struct window *w, uint64_t offset, size_t len)
{
	w->at = offset;
	w->len = 0;
	while (w->len < len) {
		ssize_t n =
			pread(w->fd, w->data + w->len, w->room - w->len, (off_t)(offset + w->len));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -ENODATA;
		if (n > 0)
			w->len += (size_t)n;
	}
	return 0;
}

/* @len bytes at @offset, valid until the next call; -ENODATA: the file ends before. */
static int window_get(struct window *w, uint64_t offset, size_t len, const char **ret)
{
	int r;

	if (offset < w->at || offset - w->at > w->len || len > w->len - (offset - w->at)) {
		if (len > w->room || !w->room) {
			size_t room = MAX(len, (size_t)WINDOW);
			char *grown = realloc(w->data, room);

			if (!grown)
				return -ENOMEM;
			w->data = grown;
			w->room = room;
		}
		r = window_read(w, offset, len);
		if (r < 0)
			return r;
	}
	*ret = w->data + (offset - w->at);
	return 0;
}

void segment_name(char out[SEGMENT_NAME], uint64_t first)
{
	snprintf(out, SEGMENT_NAME, "%020" PRIu64 ".journal", first);
}

bool segment_parse(const char *name, uint64_t *ret_first)
{
	char again[SEGMENT_NAME];
	uint64_t first = strtoull(name, NULL, 10);

	segment_name(again, first);
	if (!first || strcmp(name, again) != 0)
		return false;
	*ret_first = first;
	return true;
}

int segment_check(struct window *w, uint64_t first)
{
	struct segment_head h;
	const char *data;
	int r = window_get(w, 0, sizeof(h), &data);

	if (r < 0)
		return r;
	memcpy(&h, data, sizeof(h));
	w->salt = h.salt[0] == h.salt[1] ? h.salt[0] : h.salt[2];
	if (memcmp(h.magic, magic, sizeof(magic)) != 0 || h.first != first ||
		h.crc != crc32c(0, data, offsetof(struct segment_head, crc)))
		return -EBADMSG;
	return 0;
}

static uint32_t entry_crc(uint32_t salt, const struct entry_head *h, const void *data)
{
	return crc32c(crc32c(salt, h, offsetof(struct entry_head, crc)), data, h->len);
}

int segment_entry(struct window *w, uint64_t offset, struct journal_entry *ret, uint64_t *ret_group)
{
	struct entry_head h;
	const char *data;
	int r = window_get(w, offset, sizeof(h), &data);

	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	memcpy(&h, data, sizeof(h));
	if (!h.position || h.group > h.position || h.len > JOURNAL_ENTRY_MAX)
		return -EBADMSG;
	r = window_get(w, offset + sizeof(h), h.len, &data);
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	if (h.crc != entry_crc(w->salt, &h, data))
		return -EBADMSG;
	*ret = (struct journal_entry){.position = h.position,
		.first = h.position,
		.wall_ns = h.wall_ns,
		.data = data,
		.len = h.len};
	*ret_group = h.group;
	return 0;
}

int segment_find(
	struct window *w, const struct segment_seek *s, uint64_t *offset, struct journal_entry *ret)
{
	uint64_t group, left = FIND_TIMES * s->size;
	struct entry_head h;

	for (uint64_t at = *offset; at + ENTRY_HEAD <= s->size; at++) {
		const char *data;
		int r = window_get(w, at, sizeof(h), &data);

		if (r < 0)
			return r == -ENODATA ? 0 : r;
		memcpy(&h, data, sizeof(h));
		if (h.position < s->least || h.position > s->most || h.group < s->group ||
			h.group > h.position || h.len > s->size - at - ENTRY_HEAD)
			continue;
		if (h.len > left)
			return 0;
		left -= h.len;
		r = segment_entry(w, at, ret, &group);
		if (r == 0)
			*offset = at;
		if (r != -EBADMSG)
			return r < 0 ? r : 1;
	}
	return 0;
}

void entry_seal(struct entry_head *h, uint32_t salt, uint64_t position, uint64_t group,
	int64_t wall_ns, uint32_t len)
{
	*h = (struct entry_head){
		.position = position, .group = group, .wall_ns = wall_ns, .len = len};
	h->crc = entry_crc(salt, h, h + 1);
}

int segment_begin(struct journal *j, uint64_t first, int *ret_fd)
{
	struct segment_head h = {.first = first};
	char name[SEGMENT_NAME];
	int fd, r = 0;

	if (getrandom(&h.salt[0], sizeof(h.salt[0]), 0) < 0)
		return -errno;
	h.salt[1] = h.salt[2] = h.salt[0];
	memcpy(h.magic, magic, sizeof(magic));
	h.crc = crc32c(0, &h, offsetof(struct segment_head, crc));
	segment_name(name, first);
	/* A file of that name holds nothing that was acknowledged: its position is still free. */
	fd = openat(j->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	errno = 0; /* of a write that is cut short */
	if (j->io->writev(fd, &(struct iovec){&h, sizeof(h)}, 1, 0) != (ssize_t)sizeof(h))
		r = errno ? -errno : -ENOSPC;
	else if (j->io->sync(fd) < 0 || j->io->sync(j->folder) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		unlinkat(j->folder, name, 0);
		return r;
	}
	j->salt = h.salt[0];
	*ret_fd = fd;
	return 0;
}
