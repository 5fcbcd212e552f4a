/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - see pool.h. One mutex guards all of it: jobs take milliseconds, taking one nanoseconds,
 * and the queue is short enough to be walked. */
#include "base/pool.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/mutex.h"

struct worker {
	struct pool *pool;
	pthread_t thread;
	bool is_brief, is_busy;
	uint64_t asker; /* whose job it runs */
};

struct pool {
	struct pool_settings settings;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	TAILQ_HEAD(jobs, pool_job) queue;
	size_t count, running;
	bool stopping;
	unsigned worker_count;
	struct worker workers[];
};

/* ---- whose turn it is ---- */

struct load { /* of the threads that are not brief */
	unsigned free, of_asker;
};

static struct load load_of(const struct pool *p, uint64_t asker)
{
	struct load l = {0};

	for (unsigned i = 0; i < p->worker_count; i++) {
		const struct worker *w = &p->workers[i];

		l.free += !w->is_brief && !w->is_busy;
		l.of_asker += !w->is_brief && w->is_busy && w->asker == asker;
	}
	return l;
}

static bool may_run(const struct pool *p, const struct load *l)
{
	return l->free && (!p->settings.leaves_room || l->of_asker < l->free);
}

/* next_job - for a thread that has nothing to do; NULL: none is for it. */
static struct pool_job *next_job(const struct pool *p, bool brief)
{
	struct pool_job *j, *best = NULL;
	unsigned fewest = 0;

	TAILQ_FOREACH (j, &p->queue, link) {
		struct load l = load_of(p, j->asker);

		if (brief ? j->was_tried || may_run(p, &l) : !may_run(p, &l))
			continue;
		if (!best || l.of_asker < fewest) {
			best = j;
			fewest = l.of_asker;
		}
	}
	return best;
}

static void enqueue(struct pool *p, struct pool_job *j)
{
	TAILQ_INSERT_TAIL(&p->queue, j, link);
	j->is_waiting = true;
	p->count++;
	pthread_cond_broadcast(&p->wake);
}

static void dequeue(struct pool *p, struct pool_job *j)
{
	TAILQ_REMOVE(&p->queue, j, link);
	j->is_waiting = false;
	p->count--;
}

/* ---- threads ---- */

static void run_job(struct worker *w, struct pool_job *j)
{
	struct pool *p = w->pool;
	bool done;

	dequeue(p, j);
	w->is_busy = true;
	p->running++;
	w->asker = j->asker;
	if (p->count) /* what another thread left to this one may be for a brief one now */
		pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->mutex);
	done = j->fn(j->arg, w->is_brief);
	pthread_mutex_lock(&p->mutex);
	w->is_busy = false;
	p->running--;
	if (!done) {
		j->was_tried = true;
		enqueue(p, j);
	}
	pthread_cond_broadcast(&p->wake); /* there is room for an asker who had to wait */
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct pool *p = w->pool;

	if (p->settings.nice) /* of this thread alone, as Linux has it */
		(void)setpriority(PRIO_PROCESS, (id_t)gettid(), p->settings.nice);
	MUTEX_HELD(&p->mutex);
	while (p->count || p->running || !p->stopping) { /* what runs may come back to the queue */
		struct pool_job *j = next_job(p, w->is_brief);

		if (j)
			run_job(w, j);
		else
			pthread_cond_wait(&p->wake, &p->mutex);
	}
	return NULL;
}

static int start_workers(struct pool *p, unsigned count)
{
	sigset_t all, before;
	int r = 0;

	sigfillset(&all); /* signals are the loop's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&p->mutex);
	while (r == 0 && p->worker_count < count) {
		struct worker *w = &p->workers[p->worker_count];

		*w = (struct worker){.pool = p, .is_brief = p->worker_count >= p->settings.threads};
		r = -pthread_create(&w->thread, NULL, work, w);
		p->worker_count += r == 0;
	}
	pthread_mutex_unlock(&p->mutex);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int pool_new(const struct pool_settings *s, struct pool **ret)
{
	unsigned count = s->threads + s->brief_threads;
	_cleanup_(pool_freep) struct pool *p =
		calloc(1, sizeof(*p) + count * sizeof(p->workers[0]));
	int r;

	if (!p)
		return -ENOMEM;
	p->settings = *s;
	TAILQ_INIT(&p->queue);
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->wake, NULL);
	r = start_workers(p, count);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}

void pool_free(struct pool *p)
{
	pthread_mutex_lock(&p->mutex);
	p->stopping = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->mutex);
	for (unsigned i = 0; i < p->worker_count; i++)
		pthread_join(p->workers[i].thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->mutex);
	free(p);
}

/* ---- jobs ---- */

int pool_push(struct pool *p, struct pool_job *j)
{
	const struct pool_job *other;
	size_t of_asker = 0;
	int r = 0;

	MUTEX_HELD(&p->mutex);
	TAILQ_FOREACH (other, &p->queue, link)
		of_asker += other->asker == j->asker;
	if (p->stopping || p->count + of_asker >= p->settings.queue_max) {
		r = -EBUSY;
	} else {
		j->was_tried = false;
		enqueue(p, j);
	}
	return r;
}

bool pool_withdraw(struct pool *p, struct pool_job *j)
{
	bool was_waiting;

	MUTEX_HELD(&p->mutex);
	was_waiting = j->is_waiting;
	if (was_waiting)
		dequeue(p, j);
	pthread_cond_broadcast(&p->wake); /* the last one may be what a stop waits for */
	return was_waiting;
}

size_t pool_load(struct pool *p)
{
	MUTEX_HELD(&p->mutex);

	return p->count + p->running;
}
