/* SPDX-License-Identifier: Apache-2.0 */
/* journal_recover.c - what a journal finds of its former life. Only the newest segment is read: the end of
 * any other is where the next one begins, and its entries are checked when they are read. */
#include "cluster/journal/journal_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"

#define SEGMENTS_MAX 1000000

static int compare(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

static int add_file(struct journal *j, const char *name)
{
	struct stat st;
	uint64_t first;
	int r;

	if (!segment_parse(name, &first))
		return 0;
	if (fstatat(j->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = ARRAY_RESERVE(j->segments, j->segment_room, j->segment_count + 1, SEGMENTS_MAX);
	if (r < 0)
		return r;
	j->segments[j->segment_count++] =
		(struct segment){.first = first, .bytes = (uint64_t)st.st_size};
	return 0;
}

static int list_segments(struct journal *j)
{
	DIR *d = opendir(j->path);
	const struct dirent *e;
	int r = 0;

	if (!d)
		return -errno;
	while (r == 0 && (e = readdir(d)))
		r = add_file(j, e->d_name);
	closedir(d);
	if (r < 0)
		return r;
	if (j->segment_count)
		qsort(j->segments, j->segment_count, sizeof(*j->segments), compare);
	for (size_t i = 0; i < j->segment_count; i++) {
		j->stats.bytes += j->segments[i].bytes;
		if (i > 0)
			j->segments[i - 1].last = j->segments[i].first - 1;
	}
	return 0;
}

/* is_damaged - whether behind the bad bytes at @offset, where the entry @position should be, stands an entry
 * that was written later: 1, 0 or a negative errno. */
static int is_damaged(struct window *w, uint64_t offset, uint64_t size, uint64_t position)
{
	struct journal_entry e;
	struct entry_head h;
	uint64_t group;

	for (; offset + ENTRY_HEAD <= size; offset++) {
		const char *data;
		int r = window_get(w, offset, sizeof(h), &data);

		if (r < 0)
			return r;
		memcpy(&h, data, sizeof(h));
		if (h.group <= position || h.position < h.group ||
			h.len > size - offset - ENTRY_HEAD)
			continue;
		r = segment_entry(w, offset, &e, &group);
		if (r != -EBADMSG)
			return r < 0 ? r : 1;
	}
	return 0;
}

/* scan - how far the newest segment is good: *ret_at bytes. -EBADMSG: damaged before its end. */
static int scan(struct window *w, struct segment *s, uint64_t *ret_at)
{
	uint64_t at = SEGMENT_HEAD, group;
	struct journal_entry e;
	int r = segment_check(w, s->first);

	s->last = s->first - 1;
	if (r == -EBADMSG || r == -ENODATA) {
		at = 0;
	} else if (r < 0) {
		return r;
	} else {
		while ((r = segment_entry(w, at, &e, &group)) == 0 && e.position == s->last + 1) {
			s->last++;
			at += ENTRY_HEAD + e.len;
		}
		if (r < 0 && r != -EBADMSG)
			return r;
	}
	if (at < s->bytes) {
		r = is_damaged(w, at, s->bytes, at ? s->last + 1 : 0);
		if (r != 0)
			return r < 0 ? r : -EBADMSG;
	}
	*ret_at = at;
	return 0;
}

/* cut - the newest segment ends at @at, on disk; one without a head is removed. */
static int cut(struct journal *j, int fd, uint64_t at)
{
	struct segment *s = &j->segments[j->segment_count - 1];
	char name[SEGMENT_NAME];

	segment_name(name, s->first);
	j->stats.bytes -= s->bytes - at;
	if (at == 0) {
		j->segment_count--;
		return unlinkat(j->folder, name, 0) < 0 ? -errno : 0;
	}
	if (at < s->bytes && (ftruncate(fd, (off_t)at) < 0 || fdatasync(fd) < 0))
		return -errno;
	s->bytes = j->at = at;
	return 0;
}

static int recover_newest(struct journal *j, struct errinfo *reterr)
{
	_cleanup_(window_done) struct window w = {.fd = -1};
	struct segment *s = &j->segments[j->segment_count - 1];
	char name[SEGMENT_NAME];
	_cleanup_fd_ int fd = -1;
	uint64_t at = 0;
	int r;

	segment_name(name, s->first);
	j->next = s->first;
	fd = openat(j->folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	w.fd = fd;
	r = fd < 0 ? -errno : scan(&w, s, &at);
	if (r == -EBADMSG)
		return errinfo_set(reterr, r,
			"the journal's file %s/%s is damaged: put it back from a backup, or move it away to go on without what it holds",
			j->path, name);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot read the journal's file %s/%s: %s", j->path,
			name, strerror(-r));
	j->next = s->last + 1;
	r = cut(j, fd, at);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot cut the journal's file %s/%s: %s", j->path,
			name, strerror(-r));
	if (at) {
		j->fd = fd;
		fd = -1;
	}
	return 0;
}

int journal_recover(struct journal *j, struct errinfo *reterr)
{
	int r = list_segments(j);

	if (r < 0)
		return errinfo_set(reterr, r, "cannot read the journal's folder %s: %s", j->path,
			strerror(-r));
	j->next = 1;
	return j->segment_count ? recover_newest(j, reterr) : 0;
}
