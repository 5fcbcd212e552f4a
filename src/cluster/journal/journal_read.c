/* SPDX-License-Identifier: Apache-2.0 */
/* journal_read.c - entries in order, from files, as far as they are on disk. A reader holds the file that
 * it reads: one that is trimmed meanwhile stays readable to its end. */
#include "cluster/journal/journal_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

struct journal_reader {
	struct journal *journal;
	uint64_t position; /* of the entry that was given last */
	unsigned wakes;
	struct window window;
	uint64_t segment; /* its first position; 0: none is open */
	uint64_t last;    /* position in it that was read last */
	uint64_t offset;  /* of the entry after that */
};

int journal_reader_new(
	struct journal *j, uint64_t position, struct journal_reader **ret, struct errinfo *reterr)
{
	struct journal_reader *r;
	uint64_t first;
	unsigned wakes;

	pthread_mutex_lock(&j->lock);
	wakes = j->wakes;
	first = j->segment_count ? j->segments[0].first : j->next;
	pthread_mutex_unlock(&j->lock);
	if (position + 1 < first)
		return errinfo_set(reterr, -ENOENT,
			"the journal %s begins at entry %" PRIu64 ", but %" PRIu64
			" is needed: put its older files back",
			j->path, first, position + 1);
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
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

/* find_segment - the one that holds the entry after @position: its first position; 0: none does. */
static uint64_t find_segment(const struct journal *j, uint64_t position)
{
	for (size_t i = j->segment_count; i > 0; i--)
		if (j->segments[i - 1].first <= position + 1)
			return j->segments[i - 1].first;
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
	r->segment = first;
	r->last = first - 1;
	r->offset = SEGMENT_HEAD;
	return segment_check(&r->window, first);
}

/* read_entry - the one after r->position, in the segment that is open. */
static int read_entry(struct journal_reader *r, struct journal_entry *ret)
{
	struct journal_entry e;
	uint64_t group;

	do {
		int err = segment_entry(&r->window, r->offset, &e, &group);

		if (err == -EBADMSG) { /* read ahead of what was being written: it is there now */
			r->window.len = 0;
			err = segment_entry(&r->window, r->offset, &e, &group);
		}
		if (err < 0)
			return err;
		if (e.position != r->last + 1)
			return -EBADMSG;
		r->last = e.position;
		r->offset += ENTRY_HEAD + e.len;
	} while (e.position <= r->position);
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
		segment = find_segment(j, r->position);
	pthread_mutex_unlock(&j->lock);
	if (!there)
		return 0;
	if (!segment && !r->segment)
		return errinfo_set(reterr, -ENOENT, "entry %" PRIu64 " of the journal %s is gone",
			r->position + 1, j->path);
	if (segment && segment != r->segment)
		err = open_segment(r, segment);
	if (err == 0)
		err = read_entry(r, ret);
	if (err == -EBADMSG || err == -ENODATA)
		return errinfo_set(reterr, -EBADMSG,
			"the journal's file %s/%020" PRIu64 ".journal is damaged at byte %" PRIu64
			": put it back from a backup, or move it away to go on without what it holds",
			j->path, r->segment, r->offset);
	if (err < 0)
		return errinfo_set(reterr, err,
			"cannot read the journal's file %s/%020" PRIu64 ".journal: %s", j->path,
			r->segment, strerror(-err));
	return 1;
}

void journal_wake(struct journal *j)
{
	pthread_mutex_lock(&j->lock);
	j->wakes++;
	pthread_cond_broadcast(&j->news);
	pthread_mutex_unlock(&j->lock);
}
