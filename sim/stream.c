// SPDX-License-Identifier: Apache-2.0
/* stream.c - streams and their worker threads.
 *
 * A worker sleeps until the nearest time that somebody cares about: the end of work that has an
 * effect, or the time a waiter asked for. Plain kernels therefore wake nobody. It runs with
 * real-time priority where permitted, as a GPU's interrupt would be served whatever the host's CPUs
 * do. Invariants, under a stream's lock:
 * 1. end_ns and the due times of queued effects never decrease along the queue;
 * 2. the effect being run is still the head, so "no effect due" means that it has happened;
 * 3. wanted_ns is 0 or at most every target of a thread waiting on `done`.
 * Handles are addresses in a fixed table, so that any value passed as a handle can be checked. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "knob.h"
#include "lane.h"
#include "stream.h"
#include "tally.h"

enum stream_state { STREAM_FREE, STREAM_LIVE, STREAM_DRAINING };

struct stream {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	_Atomic enum stream_state state;
	bool blocking;
	uint64_t end_ns, wanted_ns;
	uint64_t issued;
	uint64_t *ends; /* of the last SIM_QUEUE_DEPTH pieces, a ring */
	struct stream_effect *head, **tail;
};

static struct stream streams[STREAM_MAX]; /* [0] is the default stream */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint table_top;            /* slots ever used */
static _Atomic uint64_t default_end_ns;  /* blocking streams wait for it */
static _Atomic uint64_t blocking_end_ns; /* latest end of all blocking streams */
static pthread_mutex_t lane_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lane lanes[LANE_COUNT];

static void raise_to(_Atomic uint64_t *v, uint64_t to)
{
	uint64_t seen = atomic_load(v);

	while (seen < to && !atomic_compare_exchange_weak(v, &seen, to))
		;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

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
	if (s->state == STREAM_DRAINING && (!t || s->end_ns < t))
		t = s->end_ns;
	return t;
}

static void worker_prepare(void)
{
	struct sched_param fifo = {.sched_priority = 1};

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
		if (s->wanted_ns && s->wanted_ns <= now) {
			s->wanted_ns = 0;
			pthread_cond_broadcast(&s->done);
		}
		if (s->state == STREAM_DRAINING && !s->head && s->end_ns <= now)
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
	memset(s->ends, 0, knob_get()->queue_depth * sizeof(*s->ends));
	s->blocking = blocking;
	s->end_ns = s->issued = 0;
	s->head = NULL;
	s->tail = &s->head;
	s->state = STREAM_LIVE;
	r = worker_start(s);
	if (r < 0)
		s->state = STREAM_FREE;
	pthread_mutex_unlock(&s->lock);
	return r;
}

int stream_start(void)
{
	int r = slot_open(&streams[0], true);

	if (r < 0)
		return r;
	atomic_store(&table_top, 1);
	lane_init(&lanes[LANE_COMPUTE], (unsigned)knob_get()->concurrent);
	lane_init(&lanes[LANE_TO_DEVICE], 1);
	lane_init(&lanes[LANE_TO_HOST], 1);
	return 0;
}

int stream_create(bool blocking, CUstream *ret_handle)
{
	int r = -ENOMEM;

	pthread_mutex_lock(&table_lock);
	for (unsigned i = 1; i < STREAM_MAX; i++) {
		if (streams[i].state != STREAM_FREE)
			continue;
		r = slot_open(&streams[i], blocking);
		if (r == 0) {
			*ret_handle = (CUstream)&streams[i];
			if (i >= atomic_load(&table_top))
				atomic_store(&table_top, i + 1);
		}
		break;
	}
	pthread_mutex_unlock(&table_lock);
	return r;
}

struct stream *stream_of(CUstream handle)
{
	uintptr_t h = (uintptr_t)handle, base = (uintptr_t)streams;

	if (h <= 2)
		return &streams[0];
	if (h < base || h >= base + sizeof(streams) || (h - base) % sizeof(streams[0]) != 0)
		return NULL;
	return ((struct stream *)h)->state == STREAM_LIVE ? (struct stream *)h : NULL;
}

void stream_destroy(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->state = STREAM_DRAINING;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
}

static void wait_locked(struct stream *s, uint64_t until_ns)
{
	while (until_ns > tally_now_ns() || (s->head && s->head->due_ns <= until_ns)) {
		if (!s->wanted_ns || until_ns < s->wanted_ns) {
			s->wanted_ns = until_ns;
			pthread_cond_signal(&s->work);
		}
		pthread_cond_wait(&s->done, &s->lock);
	}
}

/* When work enqueued now could start, were a slot free. */
static uint64_t ready_ns(const struct stream *s)
{
	uint64_t t = later(tally_now_ns(), s->end_ns);

	if (s == &streams[0])
		return later(t, atomic_load(&blocking_end_ns));
	return s->blocking ? later(t, atomic_load(&default_end_ns)) : t;
}

static uint64_t start_ns(uint64_t ready, enum stream_lane lane, uint64_t dur_ns)
{
	uint64_t start;

	if (lane == LANE_NONE || dur_ns == 0)
		return ready;
	pthread_mutex_lock(&lane_lock);
	start = lane_take(&lanes[lane], ready, dur_ns);
	pthread_mutex_unlock(&lane_lock);
	return start;
}

static void end_set(struct stream *s, uint64_t end_ns)
{
	s->end_ns = end_ns;
	if (s->blocking)
		raise_to(&blocking_end_ns, end_ns);
	if (s == &streams[0])
		raise_to(&default_end_ns, end_ns);
}

uint64_t stream_enqueue(
	struct stream *s, enum stream_lane lane, uint64_t dur_ns, struct stream_effect *e)
{
	uint64_t *oldest, end;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		oldest = &s->ends[s->issued % knob_get()->queue_depth];
		if (*oldest == 0 || *oldest <= tally_now_ns())
			break;
		wait_locked(s, *oldest); /* lets go of the lock: another may take the place */
	}
	end = start_ns(ready_ns(s), lane, dur_ns) + dur_ns;
	end_set(s, end);
	*oldest = end;
	s->issued++;
	if (e) {
		bool first = !s->head;

		e->due_ns = end;
		e->next = NULL;
		*s->tail = e;
		s->tail = &e->next;
		if (first)
			pthread_cond_signal(&s->work);
	}
	pthread_mutex_unlock(&s->lock);
	return end;
}

uint64_t stream_end_ns(struct stream *s)
{
	uint64_t end;

	pthread_mutex_lock(&s->lock);
	end = s->end_ns;
	pthread_mutex_unlock(&s->lock);
	return end;
}

void stream_delay(struct stream *s, uint64_t until_ns)
{
	pthread_mutex_lock(&s->lock);
	if (until_ns > s->end_ns)
		end_set(s, until_ns);
	pthread_mutex_unlock(&s->lock);
}

void stream_wait(struct stream *s, uint64_t until_ns)
{
	pthread_mutex_lock(&s->lock);
	wait_locked(s, until_ns);
	pthread_mutex_unlock(&s->lock);
}

void stream_wait_all(void)
{
	unsigned top = atomic_load(&table_top);

	for (unsigned i = 0; i < top; i++)
		if (streams[i].state != STREAM_FREE)
			stream_wait(&streams[i], stream_end_ns(&streams[i]));
}
