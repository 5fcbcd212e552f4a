/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* ledger.h - what a followed thread spent its time on, as the kernel half can tell: every nanosecond
 * between two marks of a thread is on exactly one line, so that the lines of a row add up to its
 * length however few rows are sent. Freestanding.
 *
 * A mark is a moment at which the sums so far are sent as one row: a call of the training loop, the
 * end of a wait for the GPU, the end of a long stay off the CPU. Where marks come too fast some are
 * left out; what they would have said is in the next row. */
#pragma once

#include "wire/record.h"

/* X(NAME, column, what). Blocked inside a call is the call's time, but for a stop and a disk. Columns are stored by
 * name, but sums of short stays by number: new ones come last. */
#define WIRE_LEDGER_LINES(X)                                                                       \
	X(RUN, "run", "on a CPU, outside of calls")                                                \
	X(COLLECT, "collect", "on a CPU, in Python's garbage collector")                           \
	X(LAUNCH, "launch", "in calls that launch kernels")                                        \
	X(GPU_WAIT, "gpu_wait", "in calls that wait for the GPU")                                  \
	X(COPY, "copy", "in calls that copy to, from or on the GPU")                               \
	X(ALLOC, "alloc", "in calls that allocate, free or map memory of the GPU")                 \
	X(GRAPH, "graph", "in calls of CUDA graphs")                                               \
	X(COLLECTIVE, "collective", "in calls of NCCL")                                            \
	X(CALL, "call", "in other calls")                                                          \
	X(CPU_WAIT, "cpu_wait", "able to run, without a CPU")                                      \
	X(CPU_WAIT_GPU, "cpu_wait_gpu", "likewise, in a call that waits for the GPU")              \
	X(LOCK, "lock", "blocked: lock or condition of another thread")                            \
	X(POLL, "poll", "blocked: any of several files")                                           \
	X(SLEEP, "sleep", "blocked: asleep for a time")                                            \
	X(PIPE, "pipe", "blocked: pipe")                                                           \
	X(SOCKET, "socket", "blocked: socket")                                                     \
	X(DISK, "disk", "blocked: file, disk")                                                     \
	X(MEMORY, "memory", "blocked: page fault, reclaim")                                        \
	X(DEVICE, "device", "blocked: ioctl of a device")                                          \
	X(CHILD, "child", "blocked: end of another process")                                       \
	X(BLOCKED, "blocked", "blocked: anything else")                                            \
	X(STOPPED, "stopped", "stopped by a signal or a debugger, or frozen")

enum wire_ledger_line {
#define X(NAME, ...) LEDGER_##NAME,
	WIRE_LEDGER_LINES(X)
#undef X
		LEDGER_LINES
};

/* X(id, NAME, name, what ended the row): stored by number. */
#define WIRE_MARKS(X)                                                                              \
	X(0, TICK, "tick", "nothing: the row was long enough")                                     \
	X(1, STAY, "stay", "an off-CPU interval of 1 ms or more ended")                            \
	X(2, WAIT, "wait", "a call that waits for the GPU returned")                               \
	X(3, GRAPH, "graph", "a CUDA graph was launched")                                          \
	X(4, COLLECTIVE, "collective", "a collective was called")                                  \
	X(5, OPTIMIZER, "optimizer", "an optimizer's step began")                                  \
	X(6, BACKWARD, "backward", "a backward pass began")                                        \
	X(7, LOADER, "loader", "a batch was asked of a data loader")                               \
	X(8, EXIT, "exit", "the thread ended")                                                     \
	X(9, STOP, "stop", "tracing stopped")                                                      \
	X(10, EXECUTE, "execute", "a computation that JAX had compiled was started")               \
	X(11, READ, "read", "a plain copy from the GPU returned, after 0.1 ms or more")

enum wire_mark {
#define X(id, NAME, ...) MARK_##NAME = id,
	WIRE_MARKS(X)
#undef X
};

/* Who ended a stay. */
#define WIRE_WAKERS(X)                                                                             \
	X(0, NOBODY, "none", "it was preempted, or it is unknown")                                 \
	X(1, TASK, "task", "a thread")                                                             \
	X(2, TIMER, "timer", "a timer")                                                            \
	X(3, INTERRUPT, "interrupt", "a device")

enum wire_waker {
#define X(id, NAME, ...) WAKER_##NAME = id,
	WIRE_WAKERS(X)
#undef X
};

struct wire_ledger { /* HOST, op HOST_LEDGER: start_ns and dur_ns of the time between two marks */
	struct wire_header h;
	__u64 ns[LEDGER_LINES]; /* sum: h.dur_ns */
	__u64 copy_bytes;
	__u32 launches, waits, copies, allocs; /* calls that ended in it, not nested */
	__u32 stays;                           /* stays off the CPU that ended in it */
	__u8 mark;                             /* enum wire_mark */
	__u8 waker;                            /* enum wire_waker; MARK_STAY */
	__u8 stay_line;    /* enum wire_ledger_line; MARK_STAY: that of its blocked part */
	__u8 launches_off; /* launches were not probed in a part of it */
	/* MARK_STAY: the row ends with the stay, which took stay_ns, of which the last stay_wait_ns
	 * runnable without a CPU. Blocked inside a call, its line is the call's; a thread that lost
	 * its CPU was on CPU_WAIT or CPU_WAIT_GPU all the time. */
	__u64 stay_ns, stay_wait_ns;
	__u32 waker_pid, waker_tid;
	__u64 stack; /* of the stay, or of the call that is the mark; 0: not taken */
	char waker_comm[WIRE_COMM_LEN];
};

/* HOST, op HOST_SHORT_STAYS: stays off the CPU that have no row of their own, on one line and ended by one
 * thread, summed over about a second that ended at start_ns; dur_ns is 0, weight how many they were. With
 * the rows of MARK_STAY they are all the stays that threads ended. by_tid 0: on a lock, by a time limit. */
struct wire_stays {
	struct wire_header h;
	__u64 ns;      /* blocked */
	__u64 span_ns; /* up to start_ns */
	__u64 stack;   /* of one of them; 0: not taken */
	__u32 line;    /* enum wire_ledger_line */
	__u32 by_pid, by_tid;
	__u32 pad;
	char by_comm[WIRE_COMM_LEN];
};

_Static_assert(sizeof(struct wire_stays) == 64 + 24 + 16 + 16, "wire_stays");

_Static_assert(sizeof(struct wire_ledger) == 64 + 8 * LEDGER_LINES + 8 + 24 + 16 + 8 + 8 + 16,
	"wire_ledger");
