/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - see journal.h: its life, the queue, and the thread that writes.
 *
 * Invariants:
 *  1. An entry gets its position when it is written. Those of a group that failed are given out again: they
 *     were never on disk for anybody.
 *  2. next - 1 is on disk, and only then do readers see it and does its sender hear of it.
 *  3. After a failure the segment's descriptor is not written through again: what a failed sync has left in
 *     the page cache is not known. */
#include "cluster/journal/journal_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/array.h"

#define GROUP_ENTRIES  512         /* written with one sync at most */
#define GROUP_BYTES    (16u << 20) /* and bytes, but for a single larger one */
#define SEGMENTS_MAX   1000000
#define SEGMENTS_LEAST 8 /* of a journal that is as large as it may be */

/* ---- the queue ---- */

static void list_clear(struct waiting_list *l)
{
	l->first = NULL;
	l->end = &l->first;
}

static void list_add(struct waiting_list *l, struct waiting *w)
{
	w->next = NULL;
	*l->end = w;
	l->end = &w->next;
}

static size_t entry_bytes(const struct waiting *w)
{
	return w->done ? ENTRY_HEAD + w->len : 0;
}

/* take_group - the first ones of the queue, up to a mark or the ceilings of a group. */
static struct waiting_list take_group(struct journal *j)
{
	struct waiting_list group;
	size_t bytes = 0;

	list_clear(&group);
	for (int n = 0; n < GROUP_ENTRIES && j->queue.first; n++) {
		struct waiting *w = j->queue.first;

		if (n > 0 && (!w->done || bytes + entry_bytes(w) > GROUP_BYTES))
			break;
		bytes += entry_bytes(w);
		j->queue.first = w->next;
		if (!j->queue.first)
			j->queue.end = &j->queue.first;
		list_add(&group, w);
		if (!w->done)
			break;
	}
	return group;
}

/* ---- writing ---- */

static int seal_group(
	const struct waiting_list *group, uint64_t position, struct iovec v[GROUP_ENTRIES])
{
	int64_t now = wall_now().ns;
	int count = 0;

	for (struct waiting *w = group->first; w; w = w->next, count++) {
		entry_seal(&w->head, position + (uint64_t)count, position, now, (uint32_t)w->len);
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

/* write_group - all of it is on disk, or none of it counts. Adds the segment that it had to begin. */
static int write_group(struct journal *j, const struct waiting_list *group, bool *ret_begun)
{
	struct iovec v[GROUP_ENTRIES];
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
	count = seal_group(group, j->next, v);
	for (int i = 0; i < count; i++)
		bytes += v[i].iov_len;
	r = write_all(j, v, count, j->at);
	if (r < 0) {
		give_up(j, j->next);
		return r;
	}
	j->at += bytes;
	return 0;
}

/* note_group - what became of it, under the lock. */
static void note_group(struct journal *j, struct waiting_list *group, bool begun, int err)
{
	struct segment *s;
	size_t count = 0, bytes = 0;

	for (struct waiting *w = group->first; w; w = w->next) {
		w->err = err;
		bytes += entry_bytes(w);
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

static void *run(void *arg)
{
	struct journal *j = arg;

	pthread_mutex_lock(&j->lock);
	while (!j->stop) {
		struct waiting_list group = take_group(j);
		bool begun = false;
		int r;

		if (!group.first) {
			pthread_cond_wait(&j->work, &j->lock);
			continue;
		}
		if (!group.first->done) { /* journal_finish()'s mark */
			list_add(&j->results, group.first);
			tell_loop(j);
			continue;
		}
		r = ARRAY_RESERVE(j->segments, j->segment_room, j->segment_count + 1, SEGMENTS_MAX);
		pthread_mutex_unlock(&j->lock);
		if (r == 0)
			r = write_group(j, &group, &begun);
		pthread_mutex_lock(&j->lock);
		note_group(j, &group, begun, r);
		tell_loop(j);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

/* ---- the loop's side ---- */

static void give_results(struct journal *j, struct waiting *w)
{
	while (w) {
		struct waiting *next = w->next;

		if (w->done) {
			w->done(w->arg, w->err, w->err < 0 ? 0 : w->head.position);
			free(w);
		} else {
			j->finished(j->finished_arg);
		}
		w = next;
	}
}

static void on_results(void *arg)
{
	struct journal *j = arg;
	struct waiting *first;
	uint64_t count;
	ssize_t n = read(j->results_fd, &count, sizeof(count));

	(void)n; /* nothing to read: another turn has taken them */
	pthread_mutex_lock(&j->lock);
	first = j->results.first;
	list_clear(&j->results);
	pthread_mutex_unlock(&j->lock);
	give_results(j, first);
}

static int admit(const struct journal *j, size_t bytes, bool beyond)
{
	if (bytes > JOURNAL_ENTRY_MAX)
		return -E2BIG;
	bytes += ENTRY_HEAD;
	if (j->stats.pending + bytes > JOURNAL_PENDING_MAX)
		return -ENOBUFS;
	if (!beyond && j->bytes_max && j->stats.bytes + j->stats.pending + bytes > j->bytes_max)
		return -ENOSPC;
	return 0;
}

static int append(
	struct journal *j, const void *data, size_t len, bool beyond, journal_done *done, void *arg)
{
	struct waiting *w;
	int r;

	pthread_mutex_lock(&j->lock);
	r = admit(j, len, beyond);
	pthread_mutex_unlock(&j->lock);
	if (r < 0)
		return r;
	w = malloc(sizeof(*w) + len);
	if (!w)
		return -ENOMEM;
	*w = (struct waiting){.done = done, .arg = arg, .len = len};
	memcpy(&w->head + 1, data, len);
	pthread_mutex_lock(&j->lock);
	j->stats.pending += entry_bytes(w);
	list_add(&j->queue, w);
	pthread_cond_signal(&j->work);
	pthread_mutex_unlock(&j->lock);
	return 0;
}

int journal_append(struct journal *j, const void *data, size_t len, journal_done *done, void *arg)
{
	return append(j, data, len, false, done, arg);
}

int journal_append_beyond(
	struct journal *j, const void *data, size_t len, journal_done *done, void *arg)
{
	return append(j, data, len, true, done, arg);
}

void journal_finish(struct journal *j, loop_fn *done, void *arg)
{
	j->finished = done;
	j->finished_arg = arg;
	pthread_mutex_lock(&j->lock);
	list_add(&j->queue, &j->finish_mark);
	pthread_cond_signal(&j->work);
	pthread_mutex_unlock(&j->lock);
}

void journal_trim(struct journal *j, uint64_t position)
{
	char name[SEGMENT_NAME];
	size_t gone = 0;

	pthread_mutex_lock(&j->lock);
	while (gone + 1 < j->segment_count && j->segments[gone].last <= position) {
		segment_name(name, j->segments[gone].first);
		if (unlinkat(j->folder, name, 0) < 0 && errno != ENOENT)
			break; /* the next time, perhaps */
		j->stats.bytes -= j->segments[gone].bytes;
		gone++;
	}
	j->segment_count -= gone;
	memmove(j->segments, j->segments + gone, j->segment_count * sizeof(*j->segments));
	pthread_mutex_unlock(&j->lock);
}

struct journal_stats journal_stats(struct journal *j)
{
	struct journal_stats s;

	pthread_mutex_lock(&j->lock);
	s = j->stats;
	s.first = j->segment_count && j->next > j->segments[0].first ? j->segments[0].first : 0;
	s.durable = j->next - 1;
	s.segments = j->segment_count;
	pthread_mutex_unlock(&j->lock);
	return s;
}

/* ---- life ---- */

static ssize_t real_writev(int fd, const struct iovec *v, int count, off_t at)
{
	return pwritev(fd, v, count, at);
}

static int real_sync(int fd)
{
	return fdatasync(fd);
}

static int real_truncate(int fd, off_t len)
{
	return ftruncate(fd, len);
}

static const struct journal_io real_io = {real_writev, real_sync, real_truncate};

/* take_folder - it is ours alone from here on. */
static int take_folder(struct journal *j, struct errinfo *reterr)
{
	char holder[16] = "";
	ssize_t n;

	if (mkdir(j->path, 0700) < 0 && errno != EEXIST)
		return errinfo_set(reterr, -errno, "cannot make the journal's folder %s: %s",
			j->path, strerror(errno));
	j->folder = open(j->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->folder >= 0)
		j->lock_fd =
			openat(j->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (j->lock_fd < 0)
		return errinfo_set(reterr, -errno, "cannot open the journal's folder %s: %s",
			j->path, strerror(errno));
	if (flock(j->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		n = pread(j->lock_fd, holder, sizeof(holder) - 1, 0);
		return errinfo_set(reterr, -EAGAIN,
			"process %s has the journal %s: stop it, or use another folder",
			n > 0 ? holder : "?", j->path);
	}
	snprintf(holder, sizeof(holder), "%d", (int)getpid());
	if (ftruncate(j->lock_fd, 0) < 0 ||
		pwrite(j->lock_fd, holder, strlen(holder), 0) != (ssize_t)strlen(holder))
		return 0; /* the disk is full: the lock holds all the same */
	return 0;
}

/* skip_to - positions before @first are the past: nothing of it is needed. */
static int skip_to(struct journal *j, uint64_t first)
{
	char name[SEGMENT_NAME];

	if (first <= j->next)
		return 0;
	while (j->segment_count) {
		segment_name(name, j->segments[--j->segment_count].first);
		if (unlinkat(j->folder, name, 0) < 0)
			return -errno;
	}
	if (j->fd >= 0)
		close(j->fd);
	j->fd = -1;
	j->stats.bytes = 0;
	j->next = first;
	return 0;
}

static int start(struct journal *j, struct errinfo *reterr)
{
	int r;

	j->results_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (j->results_fd < 0)
		return errinfo_set(reterr, -errno, "cannot start the journal: %s", strerror(errno));
	r = loop_watch(j->loop, j->results_fd, on_results, j);
	if (r == 0)
		r = -pthread_create(&j->thread, NULL, run, j);
	j->has_thread = r == 0;
	return r < 0 ? errinfo_set(reterr, r, "cannot start the journal: %s", strerror(-r)) : 0;
}

static void init_locks(struct journal *j)
{
	pthread_condattr_t a;

	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->work, NULL);
	pthread_cond_init(&j->news, &a);
	pthread_condattr_destroy(&a);
	list_clear(&j->queue);
	list_clear(&j->results);
}

int journal_open_with(struct loop *l, const struct journal_settings *s, const struct journal_io *io,
	struct journal **ret, struct errinfo *reterr)
{
	_cleanup_(journal_freep) struct journal *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	init_locks(j);
	j->loop = l;
	j->io = io;
	j->folder = j->lock_fd = j->results_fd = j->fd = -1;
	j->bytes_max = s->bytes_max;
	j->segment_bytes = s->segment_bytes ? s->segment_bytes : JOURNAL_SEGMENT;
	if (j->bytes_max) /* one that is full can be trimmed */
		j->segment_bytes = MIN(j->segment_bytes, j->bytes_max / SEGMENTS_LEAST);
	j->path = strdup(s->folder);
	if (!j->path)
		return -ENOMEM;
	r = take_folder(j, reterr);
	if (r == 0)
		r = journal_recover(j, reterr);
	if (r < 0)
		return r;
	r = skip_to(j, s->first);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot remove old files of the journal %s: %s",
			j->path, strerror(-r));
	r = start(j, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(j);
	return 0;
}

int journal_open(struct loop *l, const struct journal_settings *s, struct journal **ret,
	struct errinfo *reterr)
{
	return journal_open_with(l, s, &real_io, ret, reterr);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void journal_free(struct journal *j)
{
	if (j->has_thread) {
		pthread_mutex_lock(&j->lock);
		j->stop = true;
		pthread_cond_signal(&j->work);
		pthread_mutex_unlock(&j->lock);
		pthread_join(j->thread, NULL);
	}
	if (j->results_fd >= 0)
		loop_watch(j->loop, j->results_fd, NULL, NULL);
	give_results(j, j->results.first);
	for (struct waiting *w = j->queue.first; w; w = w->next)
		w->err = -ECANCELED;
	give_results(j, j->queue.first);
	close_fd(j->fd);
	close_fd(j->folder);
	close_fd(j->lock_fd);
	close_fd(j->results_fd);
	pthread_cond_destroy(&j->work);
	pthread_cond_destroy(&j->news);
	pthread_mutex_destroy(&j->lock);
	free(j->segments);
	free(j->path);
	free(j);
}
