/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - see journal.h: its life, and what the loop asks of it. */
#include "base/mutex.h"
#include "cluster/journal/journal_private.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>

#define SEGMENTS_LEAST 8 /* of a journal that is as large as it may be */

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
	waiting_list_clear(&j->results);
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
	j->stats.pending += waiting_bytes(w);
	waiting_list_add(&j->queue, w);
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
	MUTEX_HELD(&j->lock);
	waiting_list_add(&j->queue, &j->finish_mark);
	pthread_cond_signal(&j->work);
}

void journal_trim(struct journal *j, uint64_t position)
{
	char name[SEGMENT_NAME];
	size_t gone = 0;

	MUTEX_HELD(&j->lock);
	while (gone + 1 < j->segment_count && j->segments[gone].last <= position) {
		segment_name(name, j->segments[gone].first);
		if (unlinkat(j->folder, name, 0) < 0 && errno != ENOENT)
			break; /* the next time, perhaps */
		j->stats.bytes -= j->segments[gone].bytes;
		gone++;
	}
	j->segment_count -= gone;
	if (gone)
		memmove(j->segments, j->segments + gone, j->segment_count * sizeof(*j->segments));
}

struct journal_stats journal_stats(struct journal *j)
{
	struct journal_stats s;

	MUTEX_HELD(&j->lock);
	s = j->stats;
	s.first = j->segment_count && j->next > j->segments[0].first ? j->segments[0].first : 0;
	s.durable = j->next - 1;
	s.segments = j->segment_count;
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
		return errinfo_set(reterr, -errno, "cannot create the journal's folder %s: %s",
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
			"process %s is using the journal %s: stop it, or use another folder",
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

	j->mark_fd = mark_open(j->path);
	j->stats.fault = journal_probe(j);
	j->results_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (j->results_fd < 0)
		return errinfo_set(reterr, -errno, "cannot start the journal: %s", strerror(errno));
	r = loop_watch(j->loop, j->results_fd, on_results, j);
	r = r ?: -pthread_create(&j->thread, NULL, journal_writer_run, j);
	j->has_thread = r == 0;
	return r < 0 ? errinfo_set(reterr, r, "cannot start the journal: %s", strerror(-r)) : 0;
}

static void init_locks(struct journal *j)
{
	pthread_condattr_t a;

	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->work, &a);
	pthread_cond_init(&j->news, &a);
	pthread_condattr_destroy(&a);
	waiting_list_clear(&j->queue);
	waiting_list_clear(&j->results);
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
	j->folder = j->lock_fd = j->results_fd = j->fd = j->mark_fd = -1;
	j->bytes_max = s->bytes_max;
	j->segment_bytes = s->segment_bytes ? s->segment_bytes : JOURNAL_SEGMENT;
	if (j->bytes_max) /* one that is full can be trimmed */
		j->segment_bytes = MIN(j->segment_bytes, j->bytes_max / SEGMENTS_LEAST);
	j->path = strdup(s->folder);
	if (!j->path)
		return -ENOMEM;
	r = take_folder(j, reterr);
	r = r ?: journal_recover(j, reterr);
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

int journal_open_to_read(const char *folder, struct journal **ret, struct errinfo *reterr)
{
	_cleanup_(journal_freep) struct journal *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	init_locks(j);
	j->folder = j->lock_fd = j->results_fd = j->fd = j->mark_fd = -1;
	j->reads_only = true;
	j->path = strdup(folder);
	if (!j->path)
		return -ENOMEM;
	j->folder = open(j->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->folder < 0 && errno != ENOENT)
		return errinfo_set(reterr, -errno, "cannot open the journal's folder %s: %s",
			j->path, strerror(errno));
	r = journal_recover(j, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(j);
	return 0;
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
	close_fd(j->mark_fd);
	pthread_cond_destroy(&j->work);
	pthread_cond_destroy(&j->news);
	pthread_mutex_destroy(&j->lock);
	free(j->segments);
	free(j->path);
	free(j);
}
