/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* state.bpf.h - the ledger of one thread: what it spent its time on since its last row.
 *
 * Invariant: the sum of ns[] is booked_ns - row_ns. */
#pragma once

#include "wire/ledger.h"

#define LEDGER_SLOTS 32 /* a power of two above LEDGER_LINES, so that an index can be masked */

_Static_assert(LEDGER_LINES <= LEDGER_SLOTS, "lines");

#define STAY_SUMS 4 /* a power of two: threads, and lines, that ended stays of a thread lately */

struct stay_sum { /* see stay_sum.bpf.h */
	__u64 ns, stack;
	__u32 count, line;
	__u32 by_pid, by_tid; /* by_tid 0: never used */
	char by_comm[WIRE_COMM_LEN];
};

struct stay_sums {
	__u64 since_ns;    /* 0: nothing is in them */
	__u32 walk_wanted; /* one of them has no stack */
	__u32 pad;
	struct stay_sum sums[STAY_SUMS];
};

struct ledger {
	__u64 booked_ns;     /* every moment before this one is on a line; 0: not begun */
	__u64 row_ns;        /* where the present row began */
	__u64 aside_ns;      /* see ledger_enter() */
	__u64 limited_until; /* buckets of marks: see bucket_take() */
	__u64 loop_until;
	__u64 ns[LEDGER_SLOTS];
	__u64 copy_bytes;
	__u32 launches, waits, copies, allocs, stays;
	__u32 launch_switches; /* when the row began */
	__u32 is_busy;         /* a program of this thread is at it */
	__u32 is_over;         /* the thread has sent its last row */
	__u32 is_collecting;   /* Python's garbage collector is at work */
	__u32 began_off;       /* launches were not probed when the row began */
};
