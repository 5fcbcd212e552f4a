/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - see remote.h. All that is shared is under one lock; a job belongs to its poster until it is left, and to its
 * thread from then on. One thread that has nothing to do stays, for the next job. */
#include "record/stack/remote.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/macros.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake, told;
	struct remote_job *first;            /* posted, nobody runs them yet */
	struct remote_job *busy[REMOTE_MAX]; /* posted or running */
	unsigned posted, idle;               /* jobs in that list; threads */
	bool ending;
	uint64_t quiet_until_ns; /* of remote_run() */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static struct remote_job *take_first(void)
{
	struct remote_job *j = pool.first;

	if (j) {
		pool.first = j->next;
		pool.posted--;
	}
	return j;
}

static void finish(struct remote_job *j)
{
	for (size_t i = 0; i < ARRAY_SIZE(pool.busy); i++)
		if (pool.busy[i] == j)
			pool.busy[i] = NULL;
	j->is_done = true;
	if (j->is_left)
		free(j);
	else
		pthread_cond_broadcast(&pool.told);
}

static void *help(void *arg _unused_)
{
	struct remote_job *j;

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
static struct remote_job **find_place(uint32_t uid)
{
	struct remote_job **place = NULL;
	unsigned of_user = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pool.busy); i++) {
		if (!pool.busy[i])
			place = &pool.busy[i];
		of_user += pool.busy[i] && pool.busy[i]->uid == uid;
	}
	return of_user < REMOTE_USER_MAX ? place : NULL;
}

int remote_post(struct remote_job *j)
{
	struct remote_job **place;
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

bool remote_is_done(struct remote_job *j)
{
	bool is_done;

	pthread_mutex_lock(&pool.lock);
	is_done = j->is_done;
	pthread_mutex_unlock(&pool.lock);
	return is_done;
}

void remote_leave(struct remote_job *j)
{
	bool is_done;

	pthread_mutex_lock(&pool.lock);
	is_done = j->is_done;
	j->is_left = true;
	pthread_mutex_unlock(&pool.lock);
	if (is_done)
		free(j);
}

static bool wait_for(struct remote_job *j, uint64_t until_ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S)};
	bool is_done;

	pthread_mutex_lock(&pool.lock);
	while (!j->is_done && pthread_cond_clockwait(
				      &pool.told, &pool.lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		continue;
	is_done = j->is_done;
	pthread_mutex_unlock(&pool.lock);
	return is_done;
}

int remote_run(struct remote_job *j)
{
	uint64_t now_ns = mono_now().ns;
	int r;

	if (now_ns < pool.quiet_until_ns) {
		free(j);
		return -EAGAIN;
	}
	r = remote_post(j);
	if (r < 0 || wait_for(j, now_ns + REMOTE_WAIT_NS))
		return r;
	remote_leave(j);
	pool.quiet_until_ns = mono_now().ns + REMOTE_SHARE * REMOTE_WAIT_NS;
	return -ETIMEDOUT;
}

int remote_read_now(uint32_t pid, uint64_t address, void *out, size_t len)
{
	struct iovec to = {out, len}, from = {(void *)(uintptr_t)address, len};
	ssize_t n = process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EFAULT;
}

struct read_job {
	struct remote_job job;
	uint32_t pid;
	uint64_t address;
	size_t len;
	uint8_t bytes[];
};

static int run_read(struct remote_job *j)
{
	struct read_job *r = (struct read_job *)j;

	return remote_read_now(r->pid, r->address, r->bytes, r->len);
}

int remote_read(uint32_t pid, uint32_t uid, uint64_t address, void *out, size_t len)
{
	struct read_job *j = malloc(sizeof(*j) + len);
	int r;

	if (!j)
		return -ENOMEM;
	*j = (struct read_job){
		.job = {.run = run_read, .uid = uid}, .pid = pid, .address = address, .len = len};
	r = remote_run(&j->job);
	if (r < 0)
		return r;
	r = j->job.result;
	if (r == 0)
		memcpy(out, j->bytes, len);
	free(j);
	return r;
}

void remote_end(void)
{
	pthread_mutex_lock(&pool.lock);
	pool.ending = true;
	pthread_cond_broadcast(&pool.wake);
	pthread_mutex_unlock(&pool.lock);
}
