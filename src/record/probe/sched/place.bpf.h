/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* place.bpf.h - the user stack of a thread that blocks. It must be walked when the thread leaves,
 * while it is current, but how long it will stay shows later: so it is walked where one of the last stays
 * was long, as where a long read is followed by short ones for the rest. A place is the instruction and the stack pointer by which the thread went into the kernel;
 * one that is not known is walked, too, and so is the next one where many short stays add up. */
#pragma once

#include "record/probe/ledger/ledger.bpf.h"
#include "record/probe/stack/stack.bpf.h"

#define WALK_EVERY_NS 10000000 /* a thread's walks, on average; so many at once */
#define WALK_BURST    100
#define PLACE_BITS    5
#define PLACE_LONG    31 /* in a place's word: so many stays at most are walked after a long one */

static __always_inline __u32 place_of(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	__u64 ip = regs->rip, sp = regs->rsp;
#else
	struct user_pt_regs *user = (struct user_pt_regs *)regs;
	__u64 ip = user->pc, sp = user->sp;
#endif
	return (__u32)hash_mix(ip ^ sp << 20) & ~(__u32)PLACE_LONG;
}

static __always_inline __u32 *place_slot(struct thread_state *ts, __u32 place)
{
	__u32 i = place >> PLACE_BITS;

	return &ts->places[BOUNDED(i, PLACES - 1)];
}

/* place_leave - @task blocks, and is the current one: take its stack if the stay may be long. That of
 * the call which it is in is known already, if it is wanted. */
static __always_inline void place_leave(
	struct thread_state *ts, struct task_struct *task, __u64 now)
{
	__u32 known;

	ts->stay_place = 0;
	if (!stacks_wanted || !recording)
		return;
	if (ts->depth) {
		ts->stay_stack = ts->calls[0].stack;
		return;
	}
	ts->stay_place = place_of(task);
	known = *place_slot(ts, ts->stay_place);
	if (known == ts->stay_place && !ts->stays.walk_wanted)
		return;
	if (!bucket_take(&ts->walk_until, now, WALK_EVERY_NS, WALK_BURST))
		return;
	ts->stay_stack = stack_take_interrupted(task, ts, false);
	ts->stays.walk_wanted = 0;
}

/* place_return - the stay there took @ns. */
static __always_inline void place_return(struct thread_state *ts, __u64 ns)
{
	__u32 place = ts->stay_place, *slot, left = 0;

	if (!place)
		return;
	slot = place_slot(ts, place);
	if ((*slot & ~(__u32)PLACE_LONG) == place)
		left = *slot & PLACE_LONG;
	*slot = place | (ns >= stay_limit_ns ? PLACE_LONG : left ? left - 1 : 0);
	ts->stay_place = 0;
}
