/* SPDX-License-Identifier: Apache-2.0 */
/* journal_read.c - entries in order, from files, as far as they are on disk. A reader holds the file that
 * it reads: one that is trimmed meanwhile stays readable to its end. */
#include "base/mutex.h"
#include "cluster/journal/journal_private.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

struct journal_reader {
	struct journal *journal;
	uint64_t position; /* of the entry that was given last */
	unsigned wakes;
	struct window window;
	uint64_t segment; /* its first position; 0: none is open */
	uint64_t last;    /* position in it that was read last */
	uint64_t offset;  /* of the entry after that */
	int64_t wall_ns;  /* when the one that was read last was written; 0: not known */
	/* As the journal said when it was last asked: */
	uint64_t ends;    /* the last position that the segment should have */
	uint64_t follows; /* if no segment should: where the next one begins */
};

int journal_reader_new(
	struct journal *j, uint64_t position, struct journal_reader **ret, struct errinfo *reterr)
{
	struct journal_reader *r = calloc(1, sizeof(*r));
	unsigned wakes;

	if (!r)
		return errinfo_set(reterr, -ENOMEM, "%s", strerror(ENOMEM));
	pthread_mutex_lock(&j->lock);
	wakes = j->wakes;
	pthread_mutex_unlock(&j->lock);
	r->journal = j;
	r->position = position;
	r->window.fd = -1;
	r->wakes = wakes;
	*ret = r;
	return 0;
}

void journal_reader_free(struct journal_reader *r)
{
	if (r->window.fd >= 0)
		close(r->window.fd);
	window_done(&r->window);
	free(r);
}

/* wait_for_news - whether an entry is there, under the lock. */
static bool wait_for_news(struct journal_reader *r, uint64_t timeout_ns)
{
	struct journal *j = r->journal;
	uint64_t until = mono_now().ns + timeout_ns;
	const struct timespec t = {
		.tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S)};
	int err = 0;

	while (r->position + 1 >= j->next && r->wakes == j->wakes && err != ETIMEDOUT)
		err = timeout_ns ? pthread_cond_timedwait(&j->news, &j->lock, &t) : ETIMEDOUT;
	r->wakes = j->wakes;
	return r->position + 1 < j->next;
}

/* find_segment - the one that should hold the entry after r->position: its first position; 0: none should. */
static uint64_t find_segment(struct journal_reader *r)
{
	const struct journal *j = r->journal;

	r->follows = j->segment_count ? j->segments[0].first : j->next;
	for (size_t i = j->segment_count; i > 0; i--)
		if (j->segments[i - 1].first <= r->position + 1) {
			r->ends = j->segments[i - 1].last;
			return j->segments[i - 1].first;
		}
	return 0;
}

static int open_segment(struct journal_reader *r, uint64_t first)
{
	char name[SEGMENT_NAME];
	int fd;

	segment_name(name, first);
	fd = openat(r->journal->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (r->window.fd >= 0)
		close(r->window.fd);
	r->window.fd = fd;
	r->window.len = 0;
	r->window.salt = 0;
	r->segment = first;
	r->last = first - 1;
	r->offset = SEGMENT_HEAD;
	fd = segment_check(&r->window, first);
	return fd == -EBADMSG || fd == -ENODATA ? 0 : fd; /* each entry has its own sum */
}

static int give_gap(
	struct journal_reader *r, uint64_t last, int64_t until_ns, struct journal_entry *ret)
{
	*ret = (struct journal_entry){.first = r->position + 1,
		.position = last,
		.since_ns = r->wall_ns,
		.wall_ns = until_ns};
	r->position = last;
	return 1;
}

/* pass_damage - to the next entry of the segment that can be read: 0, or 1 and the gap before it, if that is part
 * of what is wanted. */
static int pass_damage(struct journal_reader *r, struct journal_entry *ret)
{
	struct segment_seek next = {.least = r->last + 1, .most = r->ends};
	struct journal_entry e = {0};
	struct stat st;
	int err;

	if (fstat(r->window.fd, &st) < 0)
		return -errno;
	next.size = (uint64_t)st.st_size;
	err = segment_find(&r->window, &next, &r->offset, &e);
	if (err < 0)
		return err;
	r->last = err ? e.position - 1 : r->ends;
	if (!err)
		r->offset = next.size;
	return r->last > r->position ? give_gap(r, r->last, e.wall_ns, ret) : 0;
}

/* read_entry - the one after r->position, in the segment that is open. */
static int read_entry(struct journal_reader *r, struct journal_entry *ret)
{
	struct journal_entry e;
	uint64_t group;

	do {
		int err = segment_entry(&r->window, r->offset, &e, &group);

		if (err == -EBADMSG || (err == 0 && e.position != r->last + 1)) {
			/* perhaps read ahead of what was being written: it is there now */
			r->window.len = 0;
			err = segment_entry(&r->window, r->offset, &e, &group);
		}
		if (err == -EBADMSG || (err == 0 && e.position != r->last + 1)) {
			err = pass_damage(r, ret);
			if (err != 0)
				return err;
			continue;
		}
		if (err < 0)
			return err;
		r->last = e.position;
		r->wall_ns = e.wall_ns;
		r->offset += ENTRY_HEAD + e.len;
	} while (r->last <= r->position);
	r->position = e.position;
	*ret = e;
	return 1;
}

int journal_next(struct journal_reader *r, uint64_t timeout_ns, struct journal_entry *ret,
	struct errinfo *reterr)
{
	struct journal *j = r->journal;
	uint64_t segment = 0;
	bool there;
	int err = 0;

	pthread_mutex_lock(&j->lock);
	there = wait_for_news(r, timeout_ns);
	if (there)
		segment = find_segment(r);
	pthread_mutex_unlock(&j->lock);
	if (!there)
		return 0;
	if (!segment && !r->segment)
		return give_gap(r, r->follows - 1, 0, ret);
	if (!segment) /* what it holds was trimmed, and stays readable */
		r->ends = r->follows - 1;
	if (segment && segment != r->segment)
		err = open_segment(r, segment);
	if (err == -ENOENT)
		return give_gap(r, r->ends, 0, ret);
	err = err ?: read_entry(r, ret);
	if (err < 0)
		return errinfo_set(reterr, err,
			"cannot read the journal's file %s/%020" PRIu64 ".journal: %s", j->path,
			r->segment, strerror(-err));
	return 1;
}

void journal_wake(struct journal *j)
{
	MUTEX_HELD(&j->lock);

	j->wakes++;
	pthread_cond_broadcast(&j->news);
}

void journal_preserve(struct journal *j, uint64_t position)
{
	char name[SEGMENT_NAME], kept[SEGMENT_NAME + 16];
	uint64_t first = 0;

	pthread_mutex_lock(&j->lock);
	for (size_t i = 0; i < j->segment_count && j->segments[i].first <= position; i++)
		first = j->segments[i].first;
	pthread_mutex_unlock(&j->lock);
	if (!first)
		return;
	segment_name(name, first);
	snprintf(kept, sizeof(kept), "%s.damaged", name);
	(void)!linkat(j->folder, name, j->folder, kept, 0); /* it may be there already */
}
