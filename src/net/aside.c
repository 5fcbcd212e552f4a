/* SPDX-License-Identifier: Apache-2.0 */
/* aside.c - see aside.h. Invariants:
 *  1. @asked is set by the thread and cleared by the loop, both under the lock: one of the two owns the work.
 *  2. A work is freed by its last task on the loop. Tasks run in the order they were posted in, so none that
 *     was posted before comes after it. */
#include "net/aside.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/pool.h"

struct aside {
	struct loop *loop;
	struct pool *pool;
	pthread_mutex_t lock;
	pthread_cond_t answered;
	size_t count; /* works: they hold this struct */
	bool closed;
};

struct aside_work {
	struct aside *aside;
	struct pool_job job;
	struct loop_task ask, end;
	aside_fn *fn;
	aside_end *ended;
	void *arg;
	/* the question */
	int (*question)(void *arg);
	void *question_arg;
	bool asked;
	int answer;
};

static void aside_unref(struct aside *a)
{
	if (a->count || !a->closed)
		return;
	pthread_cond_destroy(&a->answered);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* On the loop: what the thread waits for. */
static void on_ask(void *arg)
{
	struct aside_work *w = arg;
	struct aside *a = w->aside;
	bool wanted;
	int r;

	pthread_mutex_lock(&a->lock);
	wanted = w->asked && !a->closed;
	pthread_mutex_unlock(&a->lock);
	if (!wanted)
		return;
	r = w->question(w->question_arg);
	pthread_mutex_lock(&a->lock);
	w->answer = r;
	w->asked = false;
	pthread_cond_broadcast(&a->answered);
	pthread_mutex_unlock(&a->lock);
}

int aside_ask(struct aside_work *w, int (*fn)(void *arg), void *arg)
{
	struct aside *a = w->aside;
	int r = -ECANCELED;

	pthread_mutex_lock(&a->lock);
	if (!a->closed) {
		w->question = fn;
		w->question_arg = arg;
		w->asked = true;
		loop_post(a->loop, &w->ask, on_ask, w);
		while (w->asked && !a->closed)
			pthread_cond_wait(&a->answered, &a->lock);
		r = w->asked ? -ECANCELED : w->answer;
		w->asked = false;
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}

static void on_end(void *arg)
{
	_cleanup_free_ struct aside_work *w = arg;
	struct aside *a = w->aside;

	w->ended(w->arg, a->closed);
	a->count--;
	aside_unref(a);
}

static bool run(void *arg, bool brief _unused_)
{
	struct aside_work *w = arg;

	w->fn(w, w->arg);
	loop_post(w->aside->loop, &w->end, on_end, w);
	return true;
}

int aside_new(struct loop *l, size_t queue_max, struct aside **ret)
{
	const struct pool_settings s = {.threads = 1, .queue_max = queue_max};
	_cleanup_free_ struct aside *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	r = pool_new(&s, &a->pool);
	if (r < 0)
		return r;
	a->loop = l;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->answered, NULL);
	*ret = TAKE(a);
	return 0;
}

void aside_free(struct aside *a)
{
	pthread_mutex_lock(&a->lock);
	a->closed = true;
	pthread_cond_broadcast(&a->answered);
	pthread_mutex_unlock(&a->lock);
	pool_free(a->pool);
	aside_unref(a);
}

int aside_push(struct aside *a, uint64_t asker, aside_fn *fn, aside_end *end, void *arg)
{
	_cleanup_free_ struct aside_work *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct aside_work){.aside = a, .fn = fn, .ended = end, .arg = arg};
	w->job = (struct pool_job){.fn = run, .arg = w, .asker = asker};
	a->count++;
	r = pool_push(a->pool, &w->job);
	if (r < 0) {
		a->count--;
		return r;
	}
	TAKE(w);
	return 0;
}
