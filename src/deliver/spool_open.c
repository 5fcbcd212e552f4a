/* SPDX-License-Identifier: Apache-2.0 */
/* spool_open.c - finds what an earlier run has left, and how much of it is good. See spool.c for the
 * files and invariants. */
#include "deliver/spool_private.h"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/search.h"
#include "base/array.h"
#include "base/path_user.h"

#define SEGMENT_PARTS 8 /* of the ceiling */

/* position_read - the @n-th of the two that are there; 0, 0: not known. */
static struct cursor position_read(const struct spool *s, int n)
{
	_cleanup_fd_ int fd = openat(s->dir, "position", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct position p, good;
	struct cursor c;

	if (fd < 0 || pread(fd, &p, sizeof(p), (off_t)sizeof(p) * n) != sizeof(p))
		return (struct cursor){0};
	c = (struct cursor){le64toh(p.id), le64toh(p.offset)};
	good = spool_position(&c);
	return memcmp(&p, &good, sizeof(p)) == 0 ? c : (struct cursor){0};
}

/* Finds out how much of a segment is good, and how many of its records wait; the rest is cut off. */
static int segment_scan(struct spool *s, struct segment *seg)
{
	char name[SPOOL_NAME_MAX];
	_cleanup_free_ char *data = malloc(SPOOL_SEGMENT_MAX);
	_cleanup_fd_ int fd = -1;
	struct record_head h;
	uint64_t offset = 0;
	struct stat st;

	spool_segment_name(name, seg->id);
	fd = openat(s->dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (!data || fd < 0 || fstat(fd, &st) < 0)
		return data ? -errno : -ENOMEM;
	while (spool_head_read(fd, offset, (uint64_t)st.st_size, &h) &&
		h.len <= SPOOL_SEGMENT_MAX && spool_data_read(fd, offset, &h, data)) {
		seg->waiting += seg->id > s->acked.id ||
				(seg->id == s->acked.id && offset >= s->acked.offset);
		offset += sizeof(h) + h.len;
	}
	seg->size = offset;
	s->stats.damaged_bytes += (uint64_t)st.st_size - offset;
	if ((uint64_t)st.st_size > offset && ftruncate(fd, (off_t)offset) < 0)
		return -errno;
	return 0;
}

ORDER(segment_compare, struct segment, ASCENDING(id))

static int list_segments(struct spool *s)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (e = readdir(d))) {
		uint64_t id;
		int end = 0;

		if (sscanf(e->d_name, "%16" SCNx64 ".seg%n", &id, &end) != 1 || end != 20 ||
			e->d_name[end])
			continue;
		r = ARRAY_RESERVE(s->segments, s->room, s->count + 1, SPOOL_SEGMENTS_MAX);
		if (r == 0)
			s->segments[s->count++] = (struct segment){.id = id};
	}
	closedir(d);
	SORT(s->segments, s->count, segment_compare);
	return r;
}

static int load(struct spool *s)
{
	struct segment *last;
	int r = list_segments(s);

	s->acked = position_read(s, 0);
	s->sent = position_read(s, 1);
	for (size_t i = 0; r == 0 && i < s->count; i++) {
		r = segment_scan(s, &s->segments[i]);
		s->bytes += s->segments[i].size;
		s->stats.records += s->segments[i].waiting;
	}
	if (r < 0)
		return r;
	last = s->count ? &s->segments[s->count - 1] : NULL;
	s->next_id = (last && last->id >= s->acked.id ? last->id : s->acked.id) + 1;
	s->taken = s->acked;
	if (last && !spool_segment_find(
			    s, s->acked.id)) /* that one is gone, or none was ever written */
		s->taken = (struct cursor){s->segments[0].id, 0};
	while (s->count && s->segments[0].id < s->acked.id)
		spool_remove_first(s);
	while (s->count && s->bytes > s->bytes_max) /* the ceiling is lower than it was */
		spool_drop_first(s);
	return 0;
}

static int folder_open(const char *folder, int *ret, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return errinfo_set(reterr, -errno, "cannot create the spool's folder %s: %s",
			folder, strerror(errno));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errinfo_set(
			reterr, -errno, "the spool's folder %s: %s", folder, strerror(errno));
	if (st.st_uid != path_user_now() || st.st_mode & (S_IWGRP | S_IWOTH))
		return errinfo_set(reterr, -EPERM,
			"other users can write to the spool's folder %s: choose one of your own",
			folder);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errinfo_set(reterr, -EBUSY, "another program uses the spool in %s", folder);
	*ret = fd;
	fd = -1;
	return 0;
}

int spool_open(const struct spool_settings *settings, struct spool **ret, struct errinfo *reterr)
{
	_cleanup_(spool_closep) struct spool *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->dir = s->write_fd = s->read_fd = -1;
	s->bytes_max = settings->bytes_max;
	s->segment_max = MIN(s->bytes_max / SEGMENT_PARTS, (uint64_t)SPOOL_SEGMENT_MAX);
	if (s->bytes_max < SPOOL_BYTES_MIN)
		return errinfo_set(reterr, -EINVAL, "a spool needs at least 1 MiB");
	r = folder_open(settings->folder, &s->dir, reterr);
	if (r < 0)
		return r;
	r = load(s);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot read the spool in %s: %s", settings->folder,
			strerror(-r));
	*ret = TAKE(s);
	return 0;
}

void spool_close(struct spool *s)
{
	(void)spool_sync(s);
	for (size_t i = 0; i < 3; i++) {
		int fd = i == 0 ? s->write_fd : i == 1 ? s->read_fd : s->dir;

		if (fd >= 0)
			close(fd);
	}
	free(s->segments);
	free(s);
}
