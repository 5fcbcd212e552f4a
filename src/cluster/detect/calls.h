/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - the collectives of one cluster, those of all ranks brought together by (communicator,
 * sequence) as they come in: late, twice or out of order. Pure.
 *
 * Keeps a bounded window: what is complete, or older than the window, is folded into figures of each
 * rank and given to blame. Memory is bounded by settings; what does not fit is counted. */
#pragma once

#include "blame/blame.h"
#include "base/macros.h"
#include "cluster/detect/nodes.h"
#include "stat/sketch.h"

struct calls_settings {
	uint64_t window_ns;   /* of calls that are kept for blame: 60 s, or 100 steps */
	size_t calls_max;     /* likewise: 4 M */
	uint32_t comms_max;   /* 16384 */
	uint32_t workers_max; /* 16384 */
	uint64_t hang_ns;     /* a rank is missing for so long: 3 s, or 1.5 steps */
	uint64_t future_ns;   /* a time further ahead than this is refused: 60 s */
};
extern const struct calls_settings calls_defaults;

struct calls;
int calls_new(const struct calls_settings *s, struct calls **ret);
DECLARE_FREE(struct calls, calls_free)

struct calls_taken {
	size_t taken, duplicate, refused; /* of a batch */
};
/* calls_take - @received_ns by the cluster's clock. -ENOMEM, or 0. A batch that was taken before is
 * duplicate as a whole. */
int calls_take(
	struct calls *c, const struct push_calls *b, int64_t received_ns, struct calls_taken *ret);
/* calls_tick - what is complete is counted, what is old leaves, hangs are looked for: about every 250 ms.
 * The views below are as of the last tick. */
void calls_tick(struct calls *c, int64_t now_ns);

/* calls_set_step - how long a step of the slowest job is, as far as is known; 0: not at all. What is kept for
 * blame, and what is waited for before a rank is called missing, follows it. */
void calls_set_step(struct calls *c, uint64_t step_ns);
/* calls_set_patience - a rank is not called missing before it was for @ns, besides what the steps say: the first of a
 * job may be as long as all that was seen of it. */
void calls_set_patience(struct calls *c, uint64_t ns);
/* calls_lasting - @least_ns, or as long as @steps of these steps if that is longer. */
int64_t calls_lasting(const struct calls *c, int64_t least_ns, unsigned steps);
/* calls_is_late - blame is worth asking for: in the last seconds one rank was last by more than 1 ms a
 * time and 2 % of the time, or all together by 10 %. Costs nothing. */
bool calls_is_late(const struct calls *c);
/* calls_is_slow - in the last seconds the collectives of one communicator took more than 2 % of the time when
 * all had come, more than 1 ms a time: links are worth looking at. Costs nothing. */
bool calls_is_slow(const struct calls *c);
/* calls_sudden_ns - when a rank was last by far more than anybody lately; 0: never. */
int64_t calls_sudden_ns(const struct calls *c);
/* calls_is_slower - a job takes longer for its steps than it did. Costs nothing. */
bool calls_is_slower(const struct calls *c);
/* calls_settled - communications that all their ranks have come to, since the beginning. */
uint64_t calls_settled(const struct calls *c);

struct worker_view { /* a rank of the job: a process on a node */
	uint32_t worker;
	const char *node;
	int32_t world_rank;
	uint32_t pid;
	int64_t last_ns;       /* its last call, cluster's clock */
	uint64_t calls;        /* matched */
	uint64_t last_count;   /* of these it was last, by more than the clocks' error */
	struct sketch lag;     /* its distance from the median of the others, where last */
	int64_t late_since_ns; /* last by more than 1 ms, without a pause of a window; 0: it is not */
	uint64_t waited_ns;    /* for others, in all */
	int64_t offset_ns;     /* of its node's clock, to be added */
	uint64_t error_ns;     /* how wrong that may be; UINT64_MAX: not known */
	double drift_ppm;
	int64_t slower_since_ns; /* its job takes longer for its steps, */
	double slower;           /* so many times; 0: it does not */
};
bool calls_worker_next(const struct calls *c, size_t *cursor, struct worker_view *ret);

struct comm_view {
	uint64_t comm;
	int32_t nranks;         /* as told */
	uint32_t ranks;         /* seen */
	uint64_t matched, open; /* complete; begun */
	uint64_t first_seq, last_seq;
};
bool calls_comm_next(const struct calls *c, size_t *cursor, struct comm_view *ret);
/* calls_members - the workers of @comm by their rank in it; UINT32_MAX: never seen. How many ranks it has,
 * or -ENOENT. */
int calls_members(const struct calls *c, uint64_t comm, uint32_t *ret, size_t max);

struct job_view {       /* ranks that meet in communicators, directly or through others */
	uint64_t comm;  /* its largest communicator, of equal ones that of the lowest number */
	int32_t nranks; /* of that one, as told */
	uint32_t ranks, comms; /* seen */
	int64_t last_ns;       /* a call came */
	bool is_waiting;       /* one of them, as of the last tick, for another */
};
#define CALLS_NO_JOB UINT32_MAX
struct calls_jobs {
	uint32_t *of; /* by worker: number of its job, or CALLS_NO_JOB */
	size_t worker_count;
	struct job_view *items;
	size_t count;
};
/* calls_work - what has become of the work of @node's ranks. All are reckoned at once, so that asking for many is cheap. */
enum nodes_work calls_work(struct calls *c, const char *node);
/* calls_heard - @node's agent lives, whether its ranks call or not. */
void calls_heard(struct calls *c, const char *node, int64_t received_ns);
/* calls_jobs - *ret is released with calls_jobs_done(). -ENOMEM, or 0. */
int calls_jobs(const struct calls *c, struct calls_jobs *ret);
void calls_jobs_done(struct calls_jobs *j);

struct collective_view { /* one, complete */
	uint64_t comm, seq, bytes;
	uint16_t op;
	int32_t nranks;
	uint32_t last_worker;
	uint64_t lag_ns;    /* of the last after the median of the others */
	uint64_t waited_ns; /* by the others together */
	int64_t last_ns;    /* its arrival, cluster's clock */
};
/* calls_collective_next - the complete ones in the window, newest first. */
bool calls_collective_next(const struct calls *c, size_t *cursor, struct collective_view *ret);
/* calls_arrivals - of one of them by rank of the communicator, cluster's clock; INT64_MIN: missing.
 * How many ranks it has, or -ENOENT. */
int calls_arrivals(const struct calls *c, uint64_t comm, uint64_t seq, int64_t *ret, size_t max);

struct hang_view { /* ranks wait in a collective that others have not come to */
	uint64_t comm, seq;
	uint16_t op;
	int32_t nranks;
	uint32_t waiting, missing;
	uint32_t first_missing[8]; /* workers; UINT32_MAX: never seen, then its rank below */
	int32_t missing_rank[8];   /* in the communicator */
	int64_t since_ns;
	bool is_root; /* somebody who is missing does not himself wait elsewhere */
};
bool calls_hang_next(const struct calls *c, size_t *cursor, struct hang_view *ret);

/* X(NAME, id) */
#define CALLS_MISMATCHES(X)                                                                        \
	X(OP, "operation")                                                                         \
	X(BYTES, "bytes")                                                                          \
	X(TYPE, "datatype")                                                                        \
	X(NRANKS, "nranks")
enum calls_mismatch {
#define X(NAME, ...) CALLS_MISMATCH_##NAME,
	CALLS_MISMATCHES(X)
#undef X
		CALLS_MISMATCH_COUNT
};
struct mismatch_view { /* ranks that disagree about one collective */
	uint64_t comm, seq;
	enum calls_mismatch what;
	uint32_t worker, other; /* who disagrees, with whom */
	uint64_t value, other_value;
	bool is_tied; /* as many ranks are of the one opinion as of the other */
	int64_t at_ns;
};
const char *calls_mismatch_id(enum calls_mismatch m);
/* calls_mismatch_next - the oldest first: others follow from it. */
bool calls_mismatch_next(const struct calls *c, size_t *cursor, struct mismatch_view *ret);

/* calls_blame - who makes the job wait, over the calls in the window; all of them, as if they were one
 * job's. *ret_workers (the caller frees) are those that ret->suspects name. */
int calls_blame(const struct calls *c, struct blame_worker **ret_workers, size_t *ret_count,
	struct blame *ret);
/* calls_blame_job - likewise, of one of @jobs only, which are of this moment; @is_whole: over all calls that
 * are still there. */
int calls_blame_job(const struct calls *c, const struct calls_jobs *jobs, uint32_t job,
	bool is_whole, struct blame_worker **ret_workers, size_t *ret_count, struct blame *ret);

struct calls_stats {
	uint64_t taken, duplicate, refused;
	uint64_t evicted;   /* calls that left before their window's end, for want of room */
	uint64_t unmatched; /* calls that left without all their partners */
	uint64_t joined;    /* calls that came without a number of all ranks, and were given one */
	uint64_t held;      /* likewise, whose communicator or number is not known yet, */
	uint64_t given_up;  /* or was not in time */
	uint64_t clock_steps; /* a clock was set, its estimate began anew */
	size_t kept;          /* room for calls in the window */
	size_t bytes;
};
struct calls_stats calls_stats(const struct calls *c);
