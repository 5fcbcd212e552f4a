/* SPDX-License-Identifier: Apache-2.0 */
/* journal_writer.c - the thread that writes what waits in the queue, a group at a time.
 *
 * Invariants:
 *  1. An entry gets its position when it is written. Those of a group that failed are given out again: they
 *     were never on disk for anybody.
 *  2. next - 1 is on disk, and only then do readers see it and does its sender hear of it.
 *  3. After a failure the segment's descriptor is not written through again: what a failed sync has left in
 *     the page cache is not known. */
#include "cluster/journal/journal_private.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/array.h"

#define GROUP_ENTRIES 512         /* written with one sync at most */
#define GROUP_BYTES   (16u << 20) /* and bytes, but for a single larger one */
#define SEGMENTS_MAX  1000000
#define PROBE_BYTES   (1u << 20) /* what a disk takes that has room for some requests */
#define PROBE_NS      NS_PER_S

/* ---- the queue ---- */

void waiting_list_clear(struct waiting_list *l)
{
	l->first = NULL;
	l->end = &l->first;
}

void waiting_list_add(struct waiting_list *l, struct waiting *w)
{
	w->next = NULL;
	*l->end = w;
	l->end = &w->next;
}

size_t waiting_bytes(const struct waiting *w)
{
	return w->done ? ENTRY_HEAD + w->len : 0;
}

/* take_group - the first ones of the queue, up to a mark or the ceilings of a group. */
static struct waiting_list take_group(struct journal *j)
{
	struct waiting_list group;
	size_t bytes = 0;

	waiting_list_clear(&group);
	for (int n = 0; n < GROUP_ENTRIES && j->queue.first; n++) {
		struct waiting *w = j->queue.first;

		if (n > 0 && (!w->done || bytes + waiting_bytes(w) > GROUP_BYTES))
			break;
		bytes += waiting_bytes(w);
		j->queue.first = w->next;
		if (!j->queue.first)
			j->queue.end = &j->queue.first;
		waiting_list_add(&group, w);
		if (!w->done)
			break;
	}
	return group;
}

/* ---- writing ---- */

static int seal_group(const struct journal *j, const struct waiting_list *group, int64_t now,
	struct iovec v[GROUP_ENTRIES])
{
	uint64_t position = j->next;
	int count = 0;

	for (struct waiting *w = group->first; w; w = w->next, count++) {
		entry_seal(&w->head, j->salt, position + (uint64_t)count, position, now,
			(uint32_t)w->len);
		v[count] = (struct iovec){&w->head, ENTRY_HEAD + w->len};
	}
	return count;
}

static int write_all(struct journal *j, struct iovec *v, int count, uint64_t at)
{
	while (count) {
		ssize_t n = j->io->writev(j->fd, v, count, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENOSPC;
		at += (uint64_t)n;
		for (; count && (size_t)n >= v->iov_len; v++, count--)
			n -= (ssize_t)v->iov_len;
		if (count) {
			v->iov_base = (char *)v->iov_base + n;
			v->iov_len -= (size_t)n;
		}
	}
	return j->io->sync(j->fd) < 0 ? -errno : 0;
}

/* give_up - what the segment holds beyond what was acknowledged goes, as far as the disk still does what it
 * is told. */
static void give_up(struct journal *j, uint64_t first)
{
	char name[SEGMENT_NAME];

	if (j->at > SEGMENT_HEAD) {
		if (j->io->truncate(j->fd, (off_t)j->at) == 0)
			j->io->sync(j->fd);
	} else {
		segment_name(name, first);
		unlinkat(j->folder, name, 0);
	}
	close(j->fd);
	j->fd = -1;
}

/* A removed file, and one in a folder that was moved, can be written and synced like any other: the next start would not
 * find it. A path that may not be looked at says nothing. */
static int check_named(const struct journal *j, int fd)
{
	struct stat file, folder, named;

	if (fstat(fd, &file) < 0 || fstat(j->folder, &folder) < 0)
		return -errno;
	if (!file.st_nlink)
		return -ENOENT;
	if (stat(j->path, &named) < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ENOENT : 0;
	return named.st_dev == folder.st_dev && named.st_ino == folder.st_ino ? 0 : -ENOENT;
}

/* write_group - all of it is on disk, or none of it counts. Adds the segment that it had to begin. */
static int write_group(struct journal *j, const struct waiting_list *group, bool *ret_begun)
{
	struct iovec v[GROUP_ENTRIES];
	int64_t now = wall_now().ns;
	uint64_t bytes = 0;
	int count, r;

	if (j->fd >= 0 && j->at >= j->segment_bytes) {
		close(j->fd);
		j->fd = -1;
	}
	*ret_begun = j->fd < 0;
	if (j->fd < 0) {
		r = segment_begin(j, j->next, &j->fd);
		if (r < 0)
			return r;
		j->at = SEGMENT_HEAD;
	}
	count = seal_group(j, group, now, v);
	for (int i = 0; i < count; i++)
		bytes += v[i].iov_len;
	r = write_all(j, v, count, j->at);
	r = r ?: check_named(j, j->fd);
	if (r < 0) {
		give_up(j, j->next);
		return r;
	}
	j->at += bytes;
	mark_write(j->mark_fd, j->next + (uint64_t)count - 1, now);
	return 0;
}

int journal_probe(struct journal *j)
{
	static char nothing[PROBE_BYTES];
	int fd = openat(
		j->folder, "probe", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = 0;

	if (fd < 0)
		return -errno;
	errno = 0; /* of a write that is cut short */
	if (j->io->writev(fd, &(struct iovec){nothing, sizeof(nothing)}, 1, 0) !=
			(ssize_t)sizeof(nothing) ||
		j->io->sync(fd) < 0)
		r = errno ? -errno : -ENOSPC;
	r = r ?: check_named(j, fd);
	close(fd);
	unlinkat(j->folder, "probe", 0);
	return r;
}

/* wait_for_work - under the lock. While the disk cannot be written, it is tried now and then: somebody who waits
 * for us to be ready does not append. */
static void wait_for_work(struct journal *j)
{
	uint64_t until = mono_now().ns + PROBE_NS;
	const struct timespec t = {
		.tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S)};
	int r;

	if (!j->stats.fault) {
		pthread_cond_wait(&j->work, &j->lock);
		return;
	}
	if (pthread_cond_timedwait(&j->work, &j->lock, &t) != ETIMEDOUT)
		return;
	pthread_mutex_unlock(&j->lock);
	r = journal_probe(j);
	pthread_mutex_lock(&j->lock);
	j->stats.fault = r;
}

/* note_group - what became of it, under the lock. */
static void note_group(struct journal *j, struct waiting_list *group, bool begun, int err)
{
	struct segment *s;
	size_t count = 0, bytes = 0;

	for (struct waiting *w = group->first; w; w = w->next) {
		w->err = err;
		bytes += waiting_bytes(w);
		count++;
	}
	j->stats.pending -= bytes;
	j->stats.fault = err;
	*j->results.end = group->first;
	j->results.end = group->end;
	if (err < 0) {
		j->stats.failed += count;
		return;
	}
	if (begun) {
		j->segments[j->segment_count++] =
			(struct segment){.first = j->next, .last = j->next - 1};
		bytes += SEGMENT_HEAD;
	}
	s = &j->segments[j->segment_count - 1];
	s->last += count;
	s->bytes += bytes;
	j->next += count;
	j->stats.bytes += bytes;
	j->stats.appended += count;
	j->stats.syncs++;
	pthread_cond_broadcast(&j->news);
}

static void tell_loop(struct journal *j)
{
	ssize_t n = write(j->results_fd, &(uint64_t){1}, sizeof(uint64_t));

	(void)n; /* it is full: the loop has been told */
}

void *journal_writer_run(void *arg)
{
	struct journal *j = arg;

	pthread_mutex_lock(&j->lock);
	while (!j->stop) {
		struct waiting_list group = take_group(j);
		bool begun = false;
		int r;

		if (!group.first) {
			wait_for_work(j);
			continue;
		}
		if (!group.first->done) { /* journal_finish()'s mark */
			waiting_list_add(&j->results, group.first);
			tell_loop(j);
			continue;
		}
		r = ARRAY_RESERVE(j->segments, j->segment_room, j->segment_count + 1, SEGMENTS_MAX);
		pthread_mutex_unlock(&j->lock);
		r = r ?: write_group(j, &group, &begun);
		pthread_mutex_lock(&j->lock);
		note_group(j, &group, begun, r);
		tell_loop(j);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}
