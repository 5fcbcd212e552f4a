/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - see pool.h. One mutex guards all of it: jobs take milliseconds, taking one nanoseconds.
 */
#include "agent/serve/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct job {
	pool_fn *fn;
	void *arg;
};

struct pool {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	struct job *queue; /* a ring of max */
	size_t max, head, count, running;
	bool stopping;
	int nice;
	unsigned thread_count;
	pthread_t threads[];
};

static void *work(void *arg)
{
	struct pool *p = arg;

	if (p->nice) /* of this thread alone, as Linux has it */
		(void)setpriority(PRIO_PROCESS, (id_t)gettid(), p->nice);
	pthread_mutex_lock(&p->mutex);
	for (;;) {
		struct job job;

		while (!p->count && !p->stopping)
			pthread_cond_wait(&p->wake, &p->mutex);
		if (!p->count)
			break;
		job = p->queue[p->head];
		p->head = (p->head + 1) % p->max;
		p->count--;
		p->running++;
		pthread_mutex_unlock(&p->mutex);
		job.fn(job.arg);
		pthread_mutex_lock(&p->mutex);
		p->running--;
	}
	pthread_mutex_unlock(&p->mutex);
	return NULL;
}

int pool_new(unsigned threads, int nice, size_t queue_max, struct pool **ret)
{
	struct pool *p = calloc(1, sizeof(*p) + threads * sizeof(p->threads[0]));
	sigset_t all, before;
	int r = 0;

	if (!p)
		return -ENOMEM;
	p->max = queue_max;
	p->nice = nice;
	p->queue = calloc(queue_max, sizeof(*p->queue));
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->wake, NULL);
	if (!p->queue) {
		pool_free(p);
		return -ENOMEM;
	}
	sigfillset(&all); /* signals are the loop's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (r == 0 && p->thread_count < threads) {
		r = -pthread_create(&p->threads[p->thread_count], NULL, work, p);
		p->thread_count += r == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		pool_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pool_free(struct pool *p)
{
	pthread_mutex_lock(&p->mutex);
	p->stopping = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->mutex);
	for (unsigned i = 0; i < p->thread_count; i++)
		pthread_join(p->threads[i], NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->mutex);
	free(p->queue);
	free(p);
}

int pool_push(struct pool *p, pool_fn *fn, void *arg)
{
	int r = 0;

	pthread_mutex_lock(&p->mutex);
	if (p->count == p->max || p->stopping) {
		r = -EBUSY;
	} else {
		p->queue[(p->head + p->count) % p->max] = (struct job){fn, arg};
		p->count++;
		pthread_cond_signal(&p->wake);
	}
	pthread_mutex_unlock(&p->mutex);
	return r;
}

size_t pool_load(struct pool *p)
{
	size_t n;

	pthread_mutex_lock(&p->mutex);
	n = p->count + p->running;
	pthread_mutex_unlock(&p->mutex);
	return n;
}
