// SPDX-License-Identifier: Apache-2.0
/* stream.c - streams and their worker threads.
 *
 * A worker sleeps until the nearest time that somebody cares about: the end of work that has an
 * effect, or the time a waiter asked for. Plain kernels therefore wake nobody. It runs with
 * real-time priority where permitted, as a GPU's interrupt would be served whatever the host's CPUs
 * do. When work is placed is in stream_work.c. Invariants, under a stream's lock:
 * 1. end_ns and the due times of queued effects never decrease along the queue;
 * 2. the effect being run is still the head, so "no effect due" means that it has happened;
 * 3. wanted_ns is 0 or at most every end that a thread waits for on `done`.
 * Handles are addresses in a fixed table, so that any value passed as a handle can be checked. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "graph.h"
#include "knob.h"
#include "stream_work.h"
#include "tally.h"

struct stream stream_table[STREAM_MAX];
atomic_uint stream_table_top;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void effects_run(struct stream *s, uint64_t now)
{
	while (s->head && s->head->due_ns <= now) {
		struct stream_effect *e = s->head, *next;

		/* Only the worker removes effects, so the head stays while the lock is not held. */
		pthread_mutex_unlock(&s->lock);
		e->run(e);
		pthread_mutex_lock(&s->lock);
		next = e->next;
		s->head = next;
		if (!next)
			s->tail = &s->head;
		if (e->drop)
			e->drop(e);
		free(e);
	}
}

static void worker_sleep(struct stream *s, uint64_t until_ns)
{
	struct timespec t = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};

	if (until_ns)
		pthread_cond_timedwait(&s->work, &s->lock, &t);
	else
		pthread_cond_wait(&s->work, &s->lock);
}

static uint64_t next_alarm(const struct stream *s)
{
	uint64_t t = s->wanted_ns;

	if (s->head && (!t || s->head->due_ns < t))
		t = s->head->due_ns;
	if (s->state == STREAM_DRAINING && !s->deferred && (!t || s->end_ns < t))
		t = s->end_ns;
	return t;
}

/* A GPU tells by an interrupt: it goes before tests' programs of real-time priority, too. */
static void worker_prepare(void)
{
	struct sched_param fifo = {.sched_priority = 2};

	pthread_setname_np(pthread_self(), "sim-stream");
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo) != 0)
		prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

static void *worker_run(void *arg)
{
	struct stream *s = arg;

	worker_prepare();
	pthread_mutex_lock(&s->lock);
	for (;;) {
		uint64_t now = tally_now_ns();

		effects_run(s, now);
		stream_place_deferred(s);
		if (s->tells_followers) {
			s->tells_followers = false;
			pthread_mutex_unlock(&s->lock);
			stream_wake_followers();
			pthread_mutex_lock(&s->lock);
			continue;
		}
		if (s->wanted_ns && s->wanted_ns <= now) {
			s->wanted_ns = 0;
			pthread_cond_broadcast(&s->done);
		}
		if (s->state == STREAM_DRAINING && !s->head && !s->deferred && s->end_ns <= now)
			break;
		if (!next_alarm(s) || next_alarm(s) > now)
			worker_sleep(s, next_alarm(s));
	}
	s->state = STREAM_FREE;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int worker_start(struct stream *s)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int r;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, worker_run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

/* Locks outlive the stream: a thread may still look at a slot that was destroyed. */
static int slot_prepare(struct stream *s)
{
	pthread_condattr_t attr;

	if (s->ends)
		return 0;
	s->ends = calloc(knob_get()->queue_depth, sizeof(*s->ends));
	if (!s->ends)
		return -ENOMEM;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, &attr);
	pthread_cond_init(&s->done, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static int slot_open(struct stream *s, bool blocking)
{
	int r = slot_prepare(s);

	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	for (uint64_t i = 0; i < knob_get()->queue_depth; i++)
		s->ends[i] = 0; /* tickets go on: an old one has ended */
	s->blocking = blocking;
	s->end_ns = 0;
	s->head = NULL;
	s->tail = &s->head;
	s->deferred = NULL;
	s->deferred_tail = &s->deferred;
	s->deferred_order = UINT64_MAX;
	s->state = STREAM_LIVE;
	r = worker_start(s);
	if (r < 0)
		s->state = STREAM_FREE;
	pthread_mutex_unlock(&s->lock);
	return r;
}

int stream_start(void)
{
	int r = slot_open(&stream_table[0], true);

	if (r < 0)
		return r;
	atomic_store(&stream_table_top, 1);
	stream_lanes_init();
	return 0;
}

int stream_create(bool blocking, CUstream *ret_handle)
{
	int r = -ENOMEM;

	pthread_mutex_lock(&table_lock);
	for (unsigned i = 1; i < STREAM_MAX; i++) {
		if (stream_table[i].state != STREAM_FREE)
			continue;
		r = slot_open(&stream_table[i], blocking);
		if (r == 0) {
			*ret_handle = (CUstream)&stream_table[i];
			if (i >= atomic_load(&stream_table_top))
				atomic_store(&stream_table_top, i + 1);
		}
		break;
	}
	pthread_mutex_unlock(&table_lock);
	return r;
}

struct stream *stream_of(CUstream handle)
{
	uintptr_t h = (uintptr_t)handle, base = (uintptr_t)stream_table;

	if (h <= 2)
		return &stream_table[0];
	if (h < base || h >= base + sizeof(stream_table) ||
		(h - base) % sizeof(stream_table[0]) != 0)
		return NULL;
	return ((struct stream *)h)->state == STREAM_LIVE ? (struct stream *)h : NULL;
}

void stream_destroy(struct stream *s)
{
	struct graph_body *body;

	pthread_mutex_lock(&s->lock);
	body = s->capture;
	s->capture = NULL;
	s->state = STREAM_DRAINING;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	graph_body_unref(body);
}

/* Under the lock: the ticket's end has passed, its effects too. */
static bool has_ended(const struct stream *s, uint64_t ticket, uint64_t *ret_until_ns)
{
	*ret_until_ns = 0;
	if (ticket > s->placed)
		return false;
	*ret_until_ns = stream_ticket_end_ns(s, ticket);
	return *ret_until_ns <= tally_now_ns() && !(s->head && s->head->due_ns <= *ret_until_ns);
}

void stream_wait_locked(struct stream *s, uint64_t ticket)
{
	uint64_t until_ns;

	while (!has_ended(s, ticket, &until_ns)) {
		if (until_ns && (!s->wanted_ns || until_ns < s->wanted_ns)) {
			s->wanted_ns = until_ns;
			pthread_cond_signal(&s->work);
		}
		pthread_cond_wait(&s->done, &s->lock);
	}
}

uint64_t stream_last(struct stream *s)
{
	return atomic_load(&s->issued);
}

void stream_wait(struct stream *s, uint64_t ticket)
{
	pthread_mutex_lock(&s->lock);
	stream_wait_locked(s, ticket);
	pthread_mutex_unlock(&s->lock);
}

bool stream_has_ended(struct stream *s, uint64_t ticket)
{
	uint64_t until_ns;
	bool ended;

	pthread_mutex_lock(&s->lock);
	ended = has_ended(s, ticket, &until_ns);
	pthread_mutex_unlock(&s->lock);
	return ended;
}

void stream_wait_all(void)
{
	unsigned top = atomic_load(&stream_table_top);

	for (unsigned i = 0; i < top; i++)
		if (stream_table[i].state != STREAM_FREE)
			stream_wait(&stream_table[i], stream_last(&stream_table[i]));
}

int stream_capture_begin(struct stream *s)
{
	struct graph_body *made = graph_body_new();
	int r = made ? 0 : -ENOMEM;

	pthread_mutex_lock(&s->lock);
	if (r == 0 && s->capture)
		r = -EBUSY;
	if (r == 0)
		s->capture = made;
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		graph_body_unref(made);
	return r;
}

int stream_capture_end(struct stream *s, struct graph_body **ret_body)
{
	struct graph_body *body;

	pthread_mutex_lock(&s->lock);
	body = s->capture;
	s->capture = NULL;
	pthread_mutex_unlock(&s->lock);
	if (!body)
		return -EINVAL;
	if (body->broken) {
		graph_body_unref(body);
		return -ECANCELED;
	}
	*ret_body = body;
	return 0;
}

bool stream_is_capturing(const struct stream *s)
{
	return atomic_load(&s->capture) != NULL;
}

void stream_capture_break(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->capture)
		s->capture->broken = true;
	pthread_mutex_unlock(&s->lock);
}
