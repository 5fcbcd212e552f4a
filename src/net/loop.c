/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - see loop.h. Over libevent, with its locks on, because loop_call() comes from other
 * threads.
 *
 * Calls of other threads wait in a list of our own and wake the loop by one event. loop_stop()
 * holds even if loop_run() has not begun: the next run ends at once. */
#include "net/loop.h"

#include <event2/event.h>
#include <event2/thread.h>
#include <signal.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/notify.h"
#include "base/pool.h"

struct watch { /* of a signal or a descriptor */
	struct watch *next;
	struct event *event;
	int fd; /* -1: a signal's */
	loop_fn *fn;
	void *arg;
};

struct loop {
	struct event_base *base;
	struct event *wake;
	pthread_mutex_t lock; /* of first, last and stopping */
	struct loop_task *first, **last;
	bool stopping;
	struct watch *watches;
	struct loop_timer *pulse; /* NULL: nobody watches */
};

struct loop_timer {
	struct event *event;
	loop_fn *fn;
	void *arg;
};

static pthread_once_t threads_once = PTHREAD_ONCE_INIT;
static int threads_err;

static void threads_on(void)
{
	threads_err = evthread_use_pthreads();
	/* A peer that has gone away is an error of write(2), not the end of the program. */
	signal(SIGPIPE, SIG_IGN);
}

/* Runs what other threads have asked for, in their order. */
static void run_calls(evutil_socket_t fd _unused_, short what _unused_, void *arg)
{
	struct loop *l = arg;
	struct loop_task *t;
	bool stop;

	pthread_mutex_lock(&l->lock);
	t = l->first;
	l->first = NULL;
	l->last = &l->first;
	stop = l->stopping;
	pthread_mutex_unlock(&l->lock);
	while (t) {
		struct loop_task *next = t->next, *own = t->is_own ? t : NULL;

		t->fn(t->arg);
		free(own);
		t = next;
	}
	if (stop)
		event_base_loopbreak(l->base);
}

int loop_new(struct loop **ret)
{
	_cleanup_(loop_freep) struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	l->last = &l->first;
	pthread_once(&threads_once, threads_on);
	if (threads_err)
		return -ENOMEM;
	l->base = event_base_new();
	if (!l->base)
		return -ENOMEM;
	l->wake = event_new(l->base, -1, EV_PERSIST, run_calls, l);
	if (!l->wake)
		return -ENOMEM;
	*ret = TAKE(l);
	return 0;
}

static void watch_free(struct watch *w)
{
	if (w->event)
		event_free(w->event);
	free(w);
}
DEFINE_CLEANUP(struct watch *, watch_free)

void loop_free(struct loop *l)
{
	struct loop_task *t = l->first;

	loop_timer_freep(&l->pulse);
	while (l->watches) {
		struct watch *w = l->watches;

		l->watches = w->next;
		watch_free(w);
	}
	while (t) {
		struct loop_task *next = t->next;

		if (t->is_own)
			free(t);
		t = next;
	}
	if (l->wake)
		event_free(l->wake);
	if (l->base) {
		/* Buffers that were freed are given back by one more turn of the loop. */
		event_base_loop(l->base, EVLOOP_NONBLOCK);
		event_base_free(l->base);
	}
	pthread_mutex_destroy(&l->lock);
	free(l);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

int loop_run(struct loop *l)
{
	/* Without an event of its own libevent would return; the wake-up keeps it. */
	int r = event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);

	MUTEX_HELD(&l->lock);
	l->stopping = false;
	return r < 0 ? -EIO : 0;
}

void loop_stop(void *loop)
{
	struct loop *l = loop;

	pthread_mutex_lock(&l->lock);
	l->stopping = true;
	pthread_mutex_unlock(&l->lock);
	event_active(l->wake, EV_READ, 0);
}

static void add_task(struct loop *l, struct loop_task *t)
{
	pthread_mutex_lock(&l->lock);
	*l->last = t;
	l->last = &t->next;
	pthread_mutex_unlock(&l->lock);
	event_active(l->wake, EV_READ, 0);
}

void loop_post(struct loop *l, struct loop_task *t, loop_fn *fn, void *arg)
{
	*t = (struct loop_task){.fn = fn, .arg = arg};
	add_task(l, t);
}

int loop_call(struct loop *l, loop_fn *fn, void *arg)
{
	struct loop_task *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = (struct loop_task){.fn = fn, .arg = arg, .is_own = true};
	add_task(l, t);
	return 0;
}

static void on_watch(evutil_socket_t fd _unused_, short what _unused_, void *arg)
{
	struct watch *w = arg;

	w->fn(w->arg);
}

static int watch_add(struct loop *l, int fd, short what, loop_fn *fn, void *arg, int number)
{
	_cleanup_(watch_freep) struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->fd = fd;
	w->fn = fn;
	w->arg = arg;
	w->event = event_new(l->base, number, (short)(what | EV_PERSIST), on_watch, w);
	if (!w->event || event_add(w->event, NULL) < 0)
		return -ENOMEM;
	w->next = l->watches;
	l->watches = w;
	TAKE(w);
	return 0;
}

int loop_signal(struct loop *l, int signal, loop_fn *fn, void *arg)
{
	return watch_add(l, -1, EV_SIGNAL, fn, arg, signal);
}

int loop_watch(struct loop *l, int fd, loop_fn *fn, void *arg)
{
	for (struct watch **p = &l->watches; *p; p = &(*p)->next) {
		struct watch *w = *p;

		if (w->fd == fd) {
			*p = w->next;
			watch_free(w);
			break;
		}
	}
	return fn ? watch_add(l, fd, EV_READ, fn, arg, fd) : 0;
}

static void on_timer(evutil_socket_t fd _unused_, short what _unused_, void *arg)
{
	struct loop_timer *t = arg;

	t->fn(t->arg);
}

int loop_timer_new(struct loop *l, loop_fn *fn, void *arg, struct loop_timer **ret)
{
	_cleanup_(loop_timer_freep) struct loop_timer *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->fn = fn;
	t->arg = arg;
	t->event = event_new(l->base, -1, 0, on_timer, t);
	if (!t->event)
		return -ENOMEM;
	*ret = TAKE(t);
	return 0;
}

void loop_timer_set(struct loop_timer *t, uint64_t after_ns)
{
	struct timeval tv = {
		.tv_sec = (time_t)(after_ns / NS_PER_S),
		.tv_usec = (suseconds_t)(after_ns % NS_PER_S / NS_PER_US),
	};

	event_add(t->event, &tv);
}

void loop_timer_clear(struct loop_timer *t)
{
	event_del(t->event);
}

void loop_timer_free(struct loop_timer *t)
{
	if (t->event)
		event_free(t->event);
	free(t);
}

/* Twice a pulse, so that a timer that is late does not make a pulse late. */
static void on_pulse(void *arg)
{
	struct loop *l = arg;

	notify_alive(mono_now());
	loop_timer_set(l->pulse, notify_pulse_ns() / 2);
}

int loop_notify(struct loop *l)
{
	int r = 0;

	if (notify_pulse_ns() && !l->pulse)
		r = loop_timer_new(l, on_pulse, l, &l->pulse);
	if (l->pulse)
		loop_timer_set(l->pulse, 0);
	return r;
}

/* See loop.h. Invariants:
 *  1. @asked is set by the thread and cleared by the loop, both under the lock: one of the two owns the work.
 *  2. A work is freed by its last task on the loop. Tasks run in the order they were posted in, so none that
 *     was posted before comes after it. */

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

	MUTEX_HELD(&a->lock);
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
