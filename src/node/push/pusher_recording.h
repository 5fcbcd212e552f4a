/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_recording.h - the recording that a running `ingero trace` writes, read bit by bit: each row and
 * each count once.
 *
 * The file may not be there yet, and may be rolled over: then the rest of the old one, found by its
 * inode beside the new, is read first, and those that were rolled over since. A row that was pruned before
 * it was read is counted as lost.
 *
 * What is made of its rows comes first: signals of health (pusher_counters.c), counters of control groups (likewise),
 * calls (pusher_calls.c), the length of steps (pusher_counters.c). */
#pragma once

#include "base/idmap.h"
#include "node/health/health_baseline.h"
#include "push/push.h"
#include "push/push_wire.h"
#include "store/read/nodedb_recent.h"

/* ---- the four signals of a node's health from what was recorded in a window. Pure.
 *
 * throughput  launches a second, by the runtime, the driver and of graphs. A call of the driver that is
 *             made inside one of the runtime is the same launch and counts once.
 * compute     the share of time in which a kernel ran, by the GPUs' own readings. Without them: the
 *             share of 5 s buckets in which work was given to a GPU. Time that the host spends in calls
 *             says nothing: a thread that waits at a barrier is in a call all the time, and one that
 *             works ahead of its GPU hardly ever.
 * memory      1 less the pressure on memory: the share of time in which tasks of this machine stalled
 *             for want of it (or, where the kernel does not tell, how near to its end it is), and calls
 *             of CUDA that found none. A GPU whose memory is full and serves well is healthy.
 * cpu         1 less the share of all CPUs that is in use. */

struct pusher_activity {        /* calls in the buckets of from_ns … to_ns */
	int64_t from_ns, to_ns; /* to_ns moves on with buckets that were written soon */
	uint64_t launches;
	uint32_t busy_buckets; /* with a launch */
	int64_t last_busy_ns;
};

/* pusher_is_launch - the call gives a GPU work and is not part of another that does. */
bool pusher_is_launch(const struct recent_calls *c);

/* pusher_activity_add - calls come in order of their buckets. How many launches of the window they are. */
uint64_t pusher_activity_add(struct pusher_activity *a, const struct recent_calls *c);

/* pusher_launch_rate - a second. */
double pusher_launch_rate(const struct pusher_activity *a, uint64_t launches);

/* pusher_signals_make - @ret[HEALTH_THROUGHPUT] is launches a second, the others are 0 to 1. What is not
 * known is no reason to complain: 1. */
void pusher_signals_make(const struct pusher_activity *a, const struct recent_readings *r,
	double ret[HEALTH_SIGNAL_COUNT]);

/* ---- how much each control group did since the agent began: launches, bytes copied,
 * time without a CPU. Pure.
 *
 * Counts are exact and never fall. The recording's newest buckets still grow, so that they are read
 * anew each time; those before `settled_until_ns` are added up for good. One reading is
 *
 *   from = pusher_counters_begin(c);
 *   pusher_counters_add(c, …) for each row of buckets from `from` on;
 *   pusher_counters_end(c, now);
 *
 * A file that is rolled over: a last reading of the old one, then pusher_counters_roll(): the new one
 * holds only what came after it, in buckets that may have begun before. */

#define PUSHER_GROUPS_MAX   1024 /* control groups; further ones count as one, named "other" */
#define PUSHER_SETTLE_NS    (120 * (int64_t)NS_PER_S) /* a bucket so old does not grow any more */
#define PUSHER_GROUP_OTHERS "other"

struct pusher_amounts {
	uint64_t launches, stall_ns, copied_bytes[5];
};

struct pusher_group {
	char name[PUSH_HASH_MAX];
	struct pusher_amounts settled, settling,
		fresh; /* for good; so at the end of this reading */
};

struct pusher_counters {
	struct pusher_group *items;
	size_t count, room;
	int64_t start_ns; /* of the first bucket that counts */
	int64_t settled_until_ns;
	uint64_t launches; /* of all groups */
};

void pusher_counters_init(struct pusher_counters *c, int64_t now_ns);
void pusher_counters_done(struct pusher_counters *c);
int64_t pusher_counters_begin(struct pusher_counters *c);
/* 0 or -ENOMEM. @now_ns as given to pusher_counters_end(). */
int pusher_counters_add(struct pusher_counters *c, const struct recent_calls *row,
	const char *group, int64_t now_ns);
int pusher_counters_stall(struct pusher_counters *c, const char *group, uint64_t ns);
void pusher_counters_end(struct pusher_counters *c, int64_t now_ns);
void pusher_counters_roll(struct pusher_counters *c);

/* pusher_counters_list - *ret is the caller's (free()); its names are the counters'. */
int pusher_counters_list(
	const struct pusher_counters *c, struct push_counters **ret, size_t *ret_count);

/* ---- rows of `collectives` as the calls that are pushed, numbered and waiting. Pure.
 *
 * (comm, seq) names a collective on all ranks. A Send or Recv has no such number: it is counted by
 * process, communicator, direction and peer, from the recording's first one on, as its other end
 * counts it. What the tracer came too late to number, or to name, is sent with the rank's own count. */

#define PUSHER_CALLS_MAX 200000 /* waiting; the oldest are left out, and counted */
/* Pairs of processes; of further ones nothing is sent until those of a process that has made no such call for
 * PUSHER_CALL_AGE are forgotten. */
#define PUSHER_POINTS_MAX 65536
#define PUSHER_CALL_AGE                                                                            \
	(600 * (int64_t)NS_PER_S) /* older ones help nobody: left out, and counted */

struct pusher_calls {
	struct push_call *items;
	size_t count, room;
	uint64_t lost;       /* left out since pusher_calls_take() */
	uint64_t nameless;   /* taken without a communicator's id, in all */
	struct idmap points; /* hash of a pair -> its count */
	int64_t swept_ns;    /* when there was room made for further ones */
};

void pusher_calls_init(struct pusher_calls *c);
void pusher_calls_done(struct pusher_calls *c);

/* pusher_calls_points - so many were before the first row that is added. 0 or -ENOMEM. */
int pusher_calls_points(struct pusher_calls *c, const struct recent_points *p);

/* pusher_calls_add - @world_rank -1: not known. 0 or -ENOMEM. */
int pusher_calls_add(struct pusher_calls *c, const struct collective_row *row, int32_t world_rank,
	wall_time now);

/* pusher_calls_take - moves up to @max of them to @ret, whose items the caller frees: numbered ones, or else those that are
 * not. */
int pusher_calls_take(struct pusher_calls *c, size_t max, struct push_calls *ret);

/* ---- how long a step of the job takes on this node, and how much of it is the node's own.
 * Pure.
 *
 * A step is what lies between two marks of one kind in a thread's ledger, of the surest kind that there
 * is: the optimizer's steps, backward passes, batches of a loader, launches of a graph, collectives,
 * waits for the GPU. Where a step has several marks of its kind it comes out shorter by that number, on
 * all nodes of the job alike: fit for comparing nodes, not for a report. Of several threads the median
 * counts. Own time is the step less the waits that followed collectives, which are waits for other
 * ranks as far as a host can tell. */

#define PUSHER_MARKS_MAX 65536 /* the newest */
#define PUSHER_WAITS_MAX 65536

struct pusher_wait { /* after a collective */
	int64_t end_ns;
	uint64_t wait_ns;
	uint32_t pid;
};

struct pusher_steps {
	struct recent_mark *marks;
	size_t mark_count, mark_room;
	struct pusher_wait *waits;
	size_t wait_count, wait_room;
	bool is_training; /* marks of a training loop were seen */
};

void pusher_steps_done(struct pusher_steps *s);

/* What does not fit replaces the oldest. 0 or -ENOMEM. */
int pusher_steps_mark(struct pusher_steps *s, const struct recent_mark *m);
int pusher_steps_wait(struct pusher_steps *s, const struct pusher_wait *w);

/* pusher_steps_forget - what ended before @before_ns. */
void pusher_steps_forget(struct pusher_steps *s, int64_t before_ns);

struct pusher_step {
	double step_s, own_s; /* -1: not known */
};
struct pusher_step pusher_steps_median(const struct pusher_steps *s);

/* ---- the recording itself ---- */

#define PUSHER_BATCH_CALLS 20000
#define PUSHER_PROCESS_MAX 4096

struct pusher_position {   /* a row of `collectives`: those up to it were read */
	uint64_t dev, ino; /* of its file; ino 0: nothing was read yet */
	int64_t row;
	int64_t row_ns; /* its time; 0: not known */
};

struct pusher_process {
	uint32_t pid;
	uint64_t start_ticks;
	int64_t seen_ns; /* last, by the tracer */
	int32_t rank;
	char group[PUSH_HASH_MAX];
	uint64_t program;             /* its name and control group */
	uint64_t launches;            /* in the window of this reading */
	bool has_launched, was_alive; /* ever */
	/* Of its collectives. Without a rank in its environment, that in its communicator is taken, if it
	 * has one alone and is one rank of it: of several, none need be the job's. */
	uint64_t comm;
	int32_t comm_rank; /* -1: not known, or not one */
	bool is_several;
	int64_t last_call_ns; /* when the last row came, monotonic; 0: none did */
	bool is_waiting;      /* the last one was not waited for to its end */
	bool told_gone;
	struct push_haste haste;
};

struct pusher_recording {
	const char *path;
	uint64_t window_ns;
	wall_time started;
	dev_t dev;
	ino_t ino;
	bool is_open; /* ledger_row is of this file */
	int64_t ledger_row;
	struct pusher_position at;   /* of calls */
	bool is_found;               /* the row is known to be of that file */
	bool is_alone;               /* no file beside it belongs to it */
	bool is_over;                /* its tracer has stopped: nothing more comes */
	struct idmap processes;      /* pid -> struct pusher_process */
	char job[128], cgroup[1024]; /* of the process seen last */
	int32_t rank;                /* the lowest; -1: none is known */
	uint32_t world_size;         /* the largest; without one, of the largest communicator */
	uint32_t comm_size;
	struct pusher_calls calls;
	bool is_hasty;        /* a rank was held up: calls are to be sent soon */
	int64_t last_call_ns; /* of any process, monotonic; 0: never */
	struct pusher_counters counters;
	struct pusher_steps steps;
	uint64_t launches;     /* at the last reading */
	int64_t more_launches; /* than at one before, and when they were seen */
	wall_time more_at;
};

/* pusher_process_rank - in the job; -1: not known. */
int32_t pusher_process_rank(const struct pusher_process *p);

void pusher_recording_init(struct pusher_recording *r, const char *path, uint64_t window_ns);
void pusher_recording_done(struct pusher_recording *r);

struct pusher_reading {
	double raw[HEALTH_SIGNAL_COUNT];
	struct health_program programs[HEALTH_PROGRAMS_MAX]; /* that launch, or did in the window */
	size_t program_count;
	int64_t launches; /* the newest that are known; 0: there were none for ten seconds */
	int64_t at_ns;    /* when the tracer wrote last */
	struct recent_readings readings;
	struct pusher_step step;
};

/* pusher_recording_health - a reading. -ENOENT and others if it cannot be read; -ESTALE if nobody writes
 * it any more. */
int pusher_recording_health(struct pusher_recording *r, wall_time now, struct pusher_reading *ret,
	struct errinfo *reterr);

/* pusher_recording_resume - calls are read from behind @at on, before the first of them is. */
void pusher_recording_resume(struct pusher_recording *r, const struct pusher_position *at);

/* pusher_recording_calls - new collectives go to r->calls, unless a batch of them waits there: they end with
 * the row r->at. */
int pusher_recording_calls(struct pusher_recording *r, wall_time now, struct errinfo *reterr);

/* pusher_recording_incident - see nodedb_recent_incident(). */
int pusher_recording_incident(struct pusher_recording *r, int64_t from_ns,
	struct recent_incident *ret, struct errinfo *reterr);
