/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_fixture.h - a ledger written by hand: threads with a cursor each, and what they do from there
 * on. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/contrasts/account_task.h"
#include "base/clock.h"
#include "base/macros.h"

#define LEDGER_T0 INT64_C(1700000000000000000)
#define US(n)     ((uint64_t)(n)*NS_PER_US)
#define MS(n)     ((uint64_t)(n)*NS_PER_MS)

#define SCENE_STACKS 32

enum { MAIN = 100, AUTOGRAD = 101, PIN = 102, HOLDER = 103, JOB = 100, WORKER = 200 };

struct ledger_scene {
	struct ledger_row rows[20000];
	size_t count;
	struct event events[20000];
	size_t event_count;
	struct stack *stacks[SCENE_STACKS];
	struct stack_frame frames[SCENE_STACKS][4];
	struct stack made[SCENE_STACKS];
	size_t stack_count;
	struct stack_list list;
	struct gpu_sample gpus[256];
	size_t gpu_count;
};

struct ledger_thread {
	struct ledger_scene *s;
	struct ledger_row row; /* not ended yet */
	int64_t at;
};

static inline struct ledger_thread thread_at(
	struct ledger_scene *s, uint32_t pid, uint32_t tid, const char *comm, int64_t at)
{
	struct ledger_thread t = {.s = s, .at = at};

	t.row = (struct ledger_row){.start.ns = at, .pid = pid, .tid = tid};
	snprintf(t.row.comm, sizeof(t.row.comm), "%s", comm);
	return t;
}

static inline void spend(struct ledger_thread *t, enum wire_ledger_line line, uint64_t ns)
{
	t->row.ns[line] += ns;
	t->at += (int64_t)ns;
	t->row.waits += line == LEDGER_GPU_WAIT;
	t->row.copies += line == LEDGER_COPY;
	t->row.launches += line == LEDGER_LAUNCH ? 10 : 0;
}

static inline struct ledger_row *mark(struct ledger_thread *t, enum wire_mark m)
{
	struct ledger_row *r = &t->s->rows[t->s->count++], next;

	t->row.mark = (uint8_t)m;
	t->row.dur_ns = (uint64_t)(t->at - t->row.start.ns);
	*r = t->row;
	next = (struct ledger_row){.start.ns = t->at, .pid = r->pid, .tid = r->tid};
	memcpy(next.comm, r->comm, COMM_LEN);
	t->row = next;
	return r;
}

/* Blocked for @ns, then @wait_ns without a CPU; woken by thread @waker of @pid, 0: a timer. */
static inline struct ledger_row *stay(struct ledger_thread *t, enum wire_ledger_line line,
	uint64_t ns, uint64_t wait_ns, uint32_t pid, uint32_t waker)
{
	spend(t, line, ns);
	spend(t, LEDGER_CPU_WAIT, wait_ns);
	t->row.stay_line = (uint8_t)line;
	t->row.stay_ns = ns + wait_ns;
	t->row.stay_wait_ns = wait_ns;
	t->row.waker = waker ? WAKER_TASK : WAKER_TIMER;
	t->row.waker_pid = pid;
	t->row.waker_tid = waker;
	snprintf(t->row.waker_comm, sizeof(t->row.waker_comm), "t%u", waker);
	return mark(t, MARK_STAY);
}

/* A Python line as a stack, with @native as its innermost function (NULL: none). */
static inline uint64_t line_stack(
	struct ledger_scene *s, const char *file, uint32_t line, const char *native)
{
	size_t n = s->stack_count++, k = 0;

	if (n >= SCENE_STACKS)
		abort();
	if (native)
		s->frames[n][k++] = (struct stack_frame){.ip = 1, .symbol = native};
	s->frames[n][k++] =
		(struct stack_frame){.py_file = file, .py_func = "work", .py_line = line};
	s->made[n] = (struct stack){.hash = n + 1, .frames = s->frames[n], .count = k, .stop = ""};
	s->stacks[n] = &s->made[n];
	s->list = (struct stack_list){s->stacks, s->stack_count};
	return n + 1;
}

static inline void sample(
	struct ledger_scene *s, uint32_t pid, uint32_t tid, int64_t at, uint64_t stack)
{
	s->events[s->event_count++] = (struct event){.start.ns = at,
		.pid = pid,
		.tid = tid,
		.source = SOURCE_HOST,
		.op = HOST_CPU_SAMPLE,
		.arg0 = LEDGER_RUN,
		.weight = 1,
		.dur_ns = MS(10),
		.stack_hash = stack};
}

/* In the @span_ns before @at, short stays of thread @tid of @ns in all that thread @by of the job ended. */
static inline void short_stays(struct ledger_scene *s, uint32_t tid, int64_t at, uint64_t span_ns,
	enum wire_ledger_line line, uint64_t ns, uint32_t by, uint64_t stack)
{
	struct event *e = &s->events[s->event_count++];

	*e = (struct event){.start.ns = at,
		.pid = JOB,
		.tid = tid,
		.source = SOURCE_HOST,
		.op = HOST_SHORT_STAYS,
		.arg0 = line,
		.arg1 = ns,
		.weight = 100,
		.wait_ns = span_ns,
		.stack_hash = stack,
		.stream = by,
		.peer_pid = JOB};
	snprintf(e->peer_comm, sizeof(e->peer_comm), "t%u", by);
}

/* A stay of @wait_ns without a CPU that process @by had. */
static inline void rival(struct ledger_scene *s, uint32_t tid, int64_t at, uint64_t wait_ns,
	uint32_t by, const char *comm)
{
	struct event e = {.start.ns = at,
		.dur_ns = wait_ns,
		.pid = JOB,
		.tid = tid,
		.source = SOURCE_HOST,
		.op = HOST_SCHED_SWITCH,
		.flags = WIRE_PREEMPTED,
		.wait_ns = wait_ns,
		.peer_pid = by};

	snprintf(e.peer_comm, sizeof(e.peer_comm), "%s", comm);
	s->events[s->event_count++] = e;
}

static int ledger_order(const void *a, const void *b)
{
	const struct ledger_row *x = a, *y = b;

	return (x->start.ns > y->start.ns) - (x->start.ns < y->start.ns);
}

static int event_order(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return (x->start.ns > y->start.ns) - (x->start.ns < y->start.ns);
}

static inline struct recording ledger_recording(struct ledger_scene *s)
{
	qsort(s->rows, s->count, sizeof(s->rows[0]), ledger_order);
	qsort(s->events, s->event_count, sizeof(s->events[0]), event_order);
	return (struct recording){.ledger = s->rows,
		.ledger_count = s->count,
		.events = s->events,
		.event_count = s->event_count,
		.gpus = s->gpus,
		.gpu_count = s->gpu_count,
		.stacks = s->stack_count ? &s->list : NULL,
		.node = ""};
}
