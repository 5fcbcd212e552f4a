/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.h - what is recorded of each thread, found by thread and time: rows of the ledger, samples
 * taken on the CPU, stays off it.
 *
 * A recording without a ledger (made by an older agent) gets one from its events: what lies between
 * recorded calls and stays is then not known, and is_derived says so. */
#pragma once

#include "diagnose/recording.h"

#define TIMELINE_STAYS_NS                                                                          \
	(10 * NS_PER_S) /* short stays are summed over a second; of a thread that hardly ran, longer */

struct timeline_range { /* of one thread, in order of time */
	const struct ledger_row *const *rows;
	size_t count;
};

struct timeline_thread {
	uint32_t tid, pid;
	size_t first, count; /* in timeline.rows */
	bool feeds;          /* it gave the GPU work */
	bool is_idle;        /* a runtime's own, which mostly waits: its time is nobody's */
};

struct timeline {
	const struct recording *rec;
	const struct ledger_row **rows; /* the recording's or `made`, by thread, then time */
	size_t row_count;
	struct ledger_row *made; /* of a recording without a ledger */
	size_t made_count, made_room;
	struct timeline_thread *threads; /* by tid */
	size_t thread_count;
	uint64_t overlapping; /* rows left out: their thread has another of that time */
	uint64_t unfit;       /* likewise: their times make no sense */
	uint32_t *samples;    /* events of CPU samples, by thread, then time */
	uint32_t *switches;   /* events of stays off the CPU, likewise */
	uint32_t *calls;      /* events of calls that took long, likewise */
	uint32_t *stays;      /* events of short stays, summed; likewise */
	uint32_t *forks;      /* events of processes that were forked, by the child, then time */
	size_t sample_count, switch_count, call_count, stay_count, fork_count;
	uint64_t *
		stay_line_ns; /* by stays[]: what the thread's rows have on the line meanwhile, long
				 * stays left out */
	uint32_t *gpu_pids;   /* processes with calls of CUDA or NCCL, ascending */
	uint32_t *pids;       /* all that have rows, likewise */
	size_t gpu_pid_count, pid_count;
	bool is_derived;
};

/* timeline_make - fills @ret (released with timeline_done(), also after a failure). 0 or -ENOMEM. */
int timeline_make(const struct recording *rec, struct timeline *ret);
void timeline_done(struct timeline *t);

/* timeline_of - all rows of @tid; none: count 0. */
struct timeline_range timeline_of(const struct timeline *t, uint32_t tid);

/* timeline_follows - whether @pid has rows: it uses a GPU, or is a child of one that does. */
bool timeline_follows(const struct timeline *t, uint32_t pid);

/* timeline_next - the row of @r's thread after @r, which is one of @t's; NULL: it is the last. */
const struct ledger_row *timeline_next(const struct timeline *t, const struct ledger_row *r);

/* timeline_uses_gpu - whether a thread of @pid has made calls of CUDA or NCCL. */
bool timeline_uses_gpu(const struct timeline *t, uint32_t pid);

/* timeline_feeds - whether @tid gave the GPU work: kernels, copies, graphs, collectives. */
bool timeline_feeds(const struct timeline *t, uint32_t tid);

/* timeline_is_idle - whether @tid is a thread that a runtime keeps and that mostly waits: nobody's wait is
 * explained by it. */
bool timeline_is_idle(const struct timeline *t, uint32_t tid);

/* timeline_gpu_is_full - whether the GPUs had no idle moment around @ns, by the driver's reading. */
bool timeline_gpu_is_full(const struct timeline *t, int64_t ns);

/* timeline_within - those that overlap [from, to). */
struct timeline_range timeline_within(
	const struct timeline *t, uint32_t tid, int64_t from_ns, int64_t to_ns);

/* timeline_events - the events of @list (samples, switches or calls; @count of them) that start in
 * [from, to) on thread @tid: how many, and *ret the first. */
size_t timeline_events(const struct timeline *t, const uint32_t *list, size_t count, uint32_t tid,
	int64_t from_ns, int64_t to_ns, const uint32_t **ret);

/* timeline_fork - how process @pid was made, up to @before_ns; NULL: not known. */
const struct event *timeline_fork(const struct timeline *t, uint32_t pid, int64_t before_ns);

/* timeline_maker - the thread that made @tid, which began at *ret_born_ns: who forked it or, of a thread, one of its
 * process that was awake then, its first if that is one. 0: not known. */
uint32_t timeline_maker(const struct timeline *t, uint32_t tid, int64_t *ret_born_ns);

/* timeline_derive - the ledger that @t's events allow (timeline_derive.c). 0 or -ENOMEM. */
int timeline_derive(struct timeline *t);

/* timeline_judge_thread - what @th is for (timeline_thread.c), while the timeline is made. */
void timeline_judge_thread(const struct timeline *t, struct timeline_thread *th);

/* timeline_add - appends a row while the timeline is made. 0 or -ENOMEM. */
int timeline_add(struct timeline *t, const struct ledger_row *r);
