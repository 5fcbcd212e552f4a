/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* stay_sum.bpf.h - stays off the CPU that get no row of their own, because they are short or too many:
 * summed for each thread by line and by the thread that ended them, and sent about once a second. A time limit ends
 * stays, too: one on a lock is asked for again at once, as Python does with its interpreter's.
 *
 * A thread that hands a lock on a thousand times a second costs as much as one that keeps it for long.
 * Beyond STAY_SUMS in a second, and below SUM_LEAST_NS, who ended them is not told: their time is in the
 * ledger. */
#pragma once

#include "record/probe/books.bpf.h"
#include "record/probe/target.bpf.h"

#define SUM_EVERY_NS 1000000000
#define SUM_LEAST_NS 1000000

static __always_inline struct stay_sum *stay_sum_at(struct thread_state *ts, __u32 i)
{
	return &ts->stays.sums[BOUNDED(i, STAY_SUMS - 1)];
}

/* The sum of what the waker ended on @line; one that is empty if there is none yet; NULL: none is. */
static __always_inline struct stay_sum *stay_sum_find(struct thread_state *ts, __u32 line)
{
	__u32 by_tid = ts->waker == WAKER_TASK ? ts->waker_tid : 0;
	struct stay_sum *empty = NULL;

	for (__u32 i = 0; i < STAY_SUMS; i++) {
		struct stay_sum *s = stay_sum_at(ts, i);

		if (s->by_tid == by_tid && s->line == line)
			return s;
		if (!s->ns)
			empty = s;
	}
	if (!empty)
		return NULL;
	empty->stack = 0;
	empty->line = line;
	empty->by_pid = by_tid ? ts->waker_pid : 0;
	empty->by_tid = by_tid;
	__builtin_memset(empty->by_comm, 0, sizeof(empty->by_comm));
	if (by_tid)
		__builtin_memcpy(empty->by_comm, ts->waker_comm, sizeof(empty->by_comm));
	return empty;
}

static __always_inline bool stay_has_end(const struct thread_state *ts, __u32 line)
{
	return ts->waker == WAKER_TASK || (ts->waker == WAKER_TIMER && line == LEDGER_LOCK);
}

/* stay_sum_add - a stay, outside of calls, was blocked on @line for @ns until a thread or a time limit ended it. */
static __always_inline void stay_sum_add(struct thread_state *ts, __u32 line, __u64 ns, __u64 now)
{
	struct stay_sum *s;

	if (!stay_has_end(ts, line) || ts->depth || !ns)
		return;
	s = stay_sum_find(ts, line);
	if (!s)
		return;
	if (!ts->stays.since_ns)
		ts->stays.since_ns = now - ns;
	s->ns += ns;
	s->count++;
	if (ts->stay_stack)
		s->stack = ts->stay_stack;
}

static __always_inline void stay_sum_send(struct thread_state *ts, struct task_struct *task,
	struct stay_sum *s, __u64 now, bool is_last)
{
	struct wire_stays *r = record_reserve(&events, sizeof(*r), SOURCE_HOST);

	if (!r) { /* unless it is the last, it goes out with the next one */
		if (is_last)
			hit_lose(SOURCE_HOST, LOSS_RING_FULL);
		return;
	}
	hit_count(SOURCE_HOST);
	r->h.op = HOST_SHORT_STAYS;
	r->h.flags = WIRE_TARGET;
	r->h.weight = s->count;
	r->h.start_ns = now;
	r->h.dur_ns = 0;
	r->h.pid = task->tgid;
	r->h.tid = task->pid;
	r->h.cgroup_id = 0;
	bpf_probe_read_kernel(r->h.comm, sizeof(r->h.comm), task->comm);
	r->ns = s->ns;
	r->span_ns = now - ts->stays.since_ns;
	r->stack = s->stack;
	r->line = s->line;
	r->by_pid = s->by_pid;
	r->by_tid = s->by_tid;
	r->pad = 0;
	__builtin_memcpy(r->by_comm, s->by_comm, sizeof(r->by_comm));
	if (!s->stack)
		ts->stays.walk_wanted = 1;
	s->ns = 0;
	s->count = 0;
	record_send(&events, &r->h);
}

/* stay_sums_end - what there is goes out, and a new second begins. */
static __always_inline void stay_sums_end(
	struct thread_state *ts, struct task_struct *task, __u64 now, bool is_last)
{
	for (__u32 i = 0; i < STAY_SUMS; i++) {
		struct stay_sum *s = stay_sum_at(ts, i);

		if (s->ns >= SUM_LEAST_NS)
			stay_sum_send(ts, task, s, now, is_last);
		else
			s->ns = s->count = 0;
	}
	ts->stays.since_ns = 0;
}

static __always_inline bool stay_sums_are_due(const struct thread_state *ts, __u64 now)
{
	return ts->stays.since_ns && now - ts->stays.since_ns >= SUM_EVERY_NS;
}
