/* SPDX-License-Identifier: Apache-2.0 */
/* bounded.c - see bounded.h. All that is shared is under one lock; a job belongs to its poster until it is left, and to its
 * thread from then on. One thread that has nothing to do stays, for the next job. */
#include "base/bounded.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/mutex.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake, told;
	struct bounded_job *first;             /* posted, nobody runs them yet */
	struct bounded_job *busy[BOUNDED_MAX]; /* posted or running */
	unsigned posted, idle;                 /* jobs in that list; threads */
	bool ending;
	struct quiet {
		uint32_t uid;
		uint64_t until_ns;
	} quiet[BOUNDED_MAX]; /* users for whom nobody waits at present */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static struct bounded_job *take_first(void)
{
	struct bounded_job *j = pool.first;

	if (j) {
		pool.first = j->next;
		pool.posted--;
	}
	return j;
}

static void dispose(struct bounded_job *j)
{
	if (j->drop)
		j->drop(j);
	free(j);
}

static void finish(struct bounded_job *j)
{
	for (size_t i = 0; i < ARRAY_SIZE(pool.busy); i++)
		if (pool.busy[i] == j)
			pool.busy[i] = NULL;
	j->is_done = true;
	if (j->is_left)
		dispose(j);
	else
		pthread_cond_broadcast(&pool.told);
}

static void *help(void *arg _unused_)
{
	struct bounded_job *j;

	pthread_mutex_lock(&pool.lock);
	for (;;) {
		while (!(j = take_first()) && !pool.ending && pool.idle == 0) {
			pool.idle++;
			pthread_cond_wait(&pool.wake, &pool.lock);
			pool.idle--;
		}
		if (!j)
			break;
		pthread_mutex_unlock(&pool.lock);
		j->result = j->run(j);
		pthread_mutex_lock(&pool.lock);
		finish(j);
	}
	pthread_mutex_unlock(&pool.lock);
	return NULL;
}

/* Signals are the other threads'. */
static int start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread, NULL, help, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		pthread_detach(thread);
	return r;
}

/* A place for a job of @uid; NULL: there are too many. */
static struct bounded_job **find_place(uint32_t uid)
{
	struct bounded_job **place = NULL;
	unsigned of_user = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pool.busy); i++) {
		if (!pool.busy[i])
			place = &pool.busy[i];
		of_user += pool.busy[i] && pool.busy[i]->uid == uid;
	}
	return of_user < BOUNDED_USER_MAX ? place : NULL;
}

int bounded_post(struct bounded_job *j)
{
	struct bounded_job **place;
	int r = 0;

	pthread_mutex_lock(&pool.lock);
	place = find_place(j->uid);
	if (!place)
		r = -EAGAIN;
	else if (pool.idle <= pool.posted) /* the idle ones have work */
		r = start_thread();
	if (r == 0) {
		*place = j;
		j->next = pool.first;
		pool.first = j;
		pool.posted++;
		pool.ending = false;
		pthread_cond_signal(&pool.wake);
	}
	pthread_mutex_unlock(&pool.lock);
	if (r < 0)
		free(j);
	return r;
}

bool bounded_is_done(struct bounded_job *j)
{
	MUTEX_HELD(&pool.lock);
	return j->is_done;
}

void bounded_leave(struct bounded_job *j)
{
	bool is_done;

	pthread_mutex_lock(&pool.lock);
	is_done = j->is_done;
	j->is_left = true;
	pthread_mutex_unlock(&pool.lock);
	if (is_done)
		dispose(j);
}

static bool wait_for(struct bounded_job *j, uint64_t until_ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S)};
	bool is_done;

	MUTEX_HELD(&pool.lock);
	while (!j->is_done && pthread_cond_clockwait(
				      &pool.told, &pool.lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		continue;
	is_done = j->is_done;
	return is_done;
}

/* The user's entry, or the one that ends first. */
static struct quiet *quiet_of(uint32_t uid)
{
	struct quiet *first = &pool.quiet[0];

	for (size_t i = 0; i < ARRAY_SIZE(pool.quiet); i++) {
		if (pool.quiet[i].until_ns && pool.quiet[i].uid == uid)
			return &pool.quiet[i];
		if (pool.quiet[i].until_ns < first->until_ns)
			first = &pool.quiet[i];
	}
	return first;
}

int bounded_run(struct bounded_job *j, uint64_t wait_ns)
{
	struct quiet *q = quiet_of(j->uid);
	uint64_t now_ns = mono_now().ns;
	uint32_t uid = j->uid;
	int r;

	if (q->uid == uid && now_ns < q->until_ns) {
		free(j);
		return -EAGAIN;
	}
	r = bounded_post(j);
	if (r < 0 || wait_for(j, now_ns + wait_ns))
		return r;
	bounded_leave(j);
	*q = (struct quiet){uid, mono_now().ns + BOUNDED_SHARE * wait_ns};
	return -ETIMEDOUT;
}

struct open_job {
	struct bounded_job job;
	char root[PATH_MAX], path[PATH_MAX];
	int flags;
	struct stat st;
};

static int run_open(struct bounded_job *job)
{
	struct open_job *j = (struct open_job *)job;

	return file_open_inside(j->root, j->path, j->flags, &j->st);
}

static void drop_open(struct bounded_job *j)
{
	if (j->result >= 0)
		close(j->result);
}

int bounded_open_inside(
	uint32_t uid, const char *root, const char *path, int flags, struct stat *ret_st)
{
	struct open_job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	j->job = (struct bounded_job){.run = run_open, .drop = drop_open, .uid = uid};
	j->flags = flags;
	if (snprintf(j->root, sizeof(j->root), "%s", root) >= (int)sizeof(j->root) ||
		snprintf(j->path, sizeof(j->path), "%s", path) >= (int)sizeof(j->path)) {
		free(j);
		return -ENAMETOOLONG;
	}
	r = bounded_run(&j->job, BOUNDED_WAIT_NS);
	if (r < 0)
		return r;
	r = j->job.result;
	if (r >= 0 && ret_st)
		*ret_st = j->st;
	free(j);
	return r;
}

struct read_job {
	struct bounded_job job;
	char path[PATH_MAX];
	size_t size;
	char bytes[];
};

static int run_read(struct bounded_job *job)
{
	struct read_job *j = (struct read_job *)job;
	_cleanup_fd_ int fd = open(j->path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 && len < j->size) {
		n = read(fd, j->bytes + len, j->size - len);
		if (n > 0)
			len += (size_t)n;
	}
	return n < 0 && !len ? -errno : (int)len;
}

int bounded_read(uint32_t uid, const char *path, void *out, size_t size)
{
	struct read_job *j = size <= INT_MAX ? malloc(sizeof(*j) + size) : NULL;
	int r;

	if (!j)
		return -ENOMEM;
	*j = (struct read_job){.job = {.run = run_read, .uid = uid}, .size = size};
	snprintf(j->path, sizeof(j->path), "%s", path);
	r = bounded_run(&j->job, BOUNDED_WAIT_NS);
	if (r < 0)
		return r;
	r = j->job.result;
	if (r > 0)
		memcpy(out, j->bytes, (size_t)r);
	free(j);
	return r;
}

void bounded_end(void)
{
	MUTEX_HELD(&pool.lock);

	pool.ending = true;
	pthread_cond_broadcast(&pool.wake);
}
