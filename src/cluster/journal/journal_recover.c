/* SPDX-License-Identifier: Apache-2.0 */
/* journal_recover.c - what a journal finds of its former life. Only the newest segment is read: the end of
 * any other is where the next one begins, and its entries are checked when they are read. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/search.h"
#include "cluster/journal/journal_private.h"
#include "base/array.h"
#include "base/hash.h"

/* how far entries were acknowledged, in a file beside the journal's folder: it tells an
 * acknowledged entry that is damaged from a write that a crash cut short, and a journal that was deleted from one
 * that was never written. See struct mark. */

static const char magic[8] = {'I', 'N', 'G', 'A', 'C', 'K', 'D', '1'};

static int open_mark(const char *folder, int flags)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s.acknowledged", folder) < 0) {
		path = NULL;
		return -1;
	}
	return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

static uint32_t mark_crc(const struct mark *m)
{
	return crc32c(0, m, offsetof(struct mark, crc));
}

/* Zeros: not known; -EBADMSG: because it is damaged. */
static int mark_read(const char *folder, struct mark *ret)
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

#define SEGMENTS_MAX 1000000

ORDER(compare, struct segment, ASCENDING(first))

static int add_file(struct journal *j, const char *name)
{
	struct stat st;
	uint64_t first;
	int r;

	if (!segment_parse(name, &first))
		return 0;
	if (fstatat(j->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) /* a pipe would make every reader wait */
		return -EINVAL;
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
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (e = readdir(d)))
		r = add_file(j, e->d_name);
	closedir(d);
	if (r < 0)
		return r;
	SORT(j->segments, j->segment_count, compare);
	for (size_t i = 0; i < j->segment_count; i++) {
		j->stats.bytes += j->segments[i].bytes;
		if (i > 0)
			j->segments[i - 1].last = j->segments[i].first - 1;
	}
	return 0;
}

/* scan - the entries of the newest segment that are there: *ret_at is where the last of them ends, 0 if there is
 * not even a head. Bad ones are passed over if they were acknowledged, as @mark or a later group says. */
static int scan(struct window *w, struct segment *s, uint64_t acknowledged, uint64_t *ret_at)
{
	uint64_t at = SEGMENT_HEAD, group;
	struct journal_entry e;
	int r = segment_check(w, s->first);

	s->last = s->first - 1;
	*ret_at = 0;
	if (r == -ENODATA)
		return 0;
	if (r == 0)
		*ret_at = SEGMENT_HEAD;
	else if (r != -EBADMSG)
		return r;
	for (;;) {
		struct segment_seek next = {
			.most = s->first + s->bytes / ENTRY_HEAD, .size = s->bytes};

		while ((r = segment_entry(w, at, &e, &group)) == 0 && e.position == s->last + 1) {
			s->last++;
			at += ENTRY_HEAD + e.len;
			*ret_at = at;
		}
		if (r < 0 && r != -EBADMSG)
			return r;
		next.least = s->last + 1;
		next.group = acknowledged > s->last ? 0 : s->last + 2;
		r = segment_find(w, &next, &at, &e);
		if (r <= 0)
			return r;
		s->last = e.position - 1;
	}
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

/* recover_newest - what was acknowledged and is not in it any more is a gap: its bytes stay, and the next entry
 * begins another segment. */
static int recover_newest(struct journal *j, uint64_t acknowledged, struct errinfo *reterr)
{
	_cleanup_(window_done) struct window w = {.fd = -1};
	struct segment *s = &j->segments[j->segment_count - 1];
	char name[SEGMENT_NAME];
	_cleanup_fd_ int fd = -1;
	uint64_t at = 0;
	int r;

	segment_name(name, s->first);
	j->next = s->first;
	fd = openat(j->folder, name, (j->reads_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW);
	w.fd = fd;
	r = fd < 0 ? -errno : scan(&w, s, acknowledged, &at);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot read the journal's file %s/%s: %s", j->path,
			name, strerror(-r));
	j->next = MAX(s->last, acknowledged) + 1;
	if (acknowledged > s->last) {
		s->last = acknowledged;
		return 0;
	}
	if (j->reads_only)
		return 0;
	r = cut(j, fd, at);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot cut the journal's file %s/%s: %s", j->path,
			name, strerror(-r));
	if (at) {
		j->salt = w.salt;
		j->fd = fd;
		fd = -1;
	}
	return 0;
}

int journal_recover(struct journal *j, struct errinfo *reterr)
{
	struct mark mark;
	int r = list_segments(j);

	if (r < 0)
		return errinfo_set(reterr, r, "cannot read the journal's folder %s: %s", j->path,
			strerror(-r));
	mark_read(j->path, &mark); /* one that is damaged tells nothing */
	j->next = mark.position + 1;
	return j->segment_count ? recover_newest(j, mark.position, reterr) : 0;
}

/* every byte of a journal against its sums, as a start would find it. */

struct verifying {
	const char *folder;
	uint64_t sealed;
	void (*tell)(void *arg, const char *sentence);
	void *arg;
	int told;
};

static void _printf_(2, 3) say(struct verifying *v, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v->told++;
	v->tell(v->arg, text);
}

static int check_entries(struct verifying *v, struct journal *j, struct errinfo *reterr)
{
	_cleanup_(journal_reader_freep) struct journal_reader *reader = NULL;
	uint64_t first = j->segment_count ? MIN(j->segments[0].first - 1, v->sealed) : v->sealed;
	struct journal_entry e;
	int r = journal_reader_new(j, first, &reader, reterr);

	while (r >= 0 && (r = journal_next(reader, 0, &e, reterr)) == 1)
		if (!e.data) {
			if (e.first <= v->sealed)
				say(v,
					"damaged: entries %" PRIu64 " to %" PRIu64
					" of the journal %s, whose rows are in the store already",
					e.first, MIN(e.position, v->sealed), v->folder);
			if (e.position > v->sealed)
				say(v,
					"missing: requests %" PRIu64 " to %" PRIu64
					" of the journal %s, which were acknowledged: they are damaged or gone",
					MAX(e.first, v->sealed + 1), e.position, v->folder);
		}
	return r;
}

int journal_verify(const char *folder, uint64_t sealed,
	void (*tell)(void *arg, const char *sentence), void *arg, struct errinfo *reterr)
{
	_cleanup_(journal_freep) struct journal *j = NULL;
	struct verifying v = {folder, sealed, tell, arg, 0};
	struct mark mark;
	int r = journal_open_to_read(folder, &j, reterr);

	if (r == 0 && mark_read(folder, &mark) < 0)
		say(&v, "damaged: %s.acknowledged: the next request writes it again", folder);
	if (r == 0) {
		for (size_t i = 0; i < j->segment_count; i++) {
			_cleanup_(window_done) struct window w = {.fd = -1};
			char name[SEGMENT_NAME];
			_cleanup_fd_ int fd = -1;

			segment_name(name, j->segments[i].first);
			w.fd = fd = openat(j->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
			if (fd >= 0 && segment_check(&w, j->segments[i].first) == -EBADMSG)
				say(&v, "damaged: the head of %s/%s: its entries are still read",
					v.folder, name);
		}
		r = check_entries(&v, j, reterr);
	}
	return r < 0 ? r : v.told;
}
