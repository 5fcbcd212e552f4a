/* SPDX-License-Identifier: Apache-2.0 */
/* blame_job.h - the job that blame_find() looks at, built up by one file after the other:
 *   blame_job.c    the calls, by worker and time, on one clock
 *   blame_match.c  which calls belong together, and who came last
 *   blame_clock.c  how far the workers' clocks are apart, by what they did together
 *   blame_waits.c  who waits without doing anything else
 *   blame_steps.c  where its steps begin
 *   blame_round.c  likewise, where several alike calls make one
 *   blame_roles.c  which workers do the same work
 *   blame_path.c   own time of each worker in each step, and what of it lies on the critical path
 *   blame_weigh.c  what of that is more than the peers need
 *   blame_sudden.c who is far too late right now
 *   blame_received.c who is sent more than before
 *   blame_name.c   who is named for it
 *   blame_describe.c what is told of one that is named
 *   blame_link.c   communications that take long themselves
 * Private to this folder. Invariants:
 * - items of worker w are items[first[w] .. first[w + 1]), by enter_ns; likewise pauses[], which do
 *   not overlap.
 * - enter_ns <= start_ns <= leave_ns of each item; the worker waits from start_ns to leave_ns.
 * - match is JOB_NONE, or has at least two members, each of another worker. */
#pragma once

#include "base/macros.h"
#include "blame/blame.h"
#include "wire/ids.h"

#define JOB_NONE        UINT32_MAX
#define JOB_STAGE_RATIO 1.1 /* of a stage to the others, or to what it was: it is slow */
#define JOB_EDGE_NS                                                                                \
	20000 /* a call that begins so soon before the end of one comes after it, if it ends after it */
#define JOB_CALLS_MAX (UINT32_C(1) << 27)
#define JOB_CELLS_MAX (UINT32_C(1) << 24) /* workers x steps: the latest steps are looked at */

struct job_item { /* a call on the common clock */
	int64_t enter_ns, start_ns, leave_ns;
	uint32_t call; /* of calls[] */
	uint32_t comm; /* of comms[] */
	uint32_t match;
	uint32_t worker;
	uint16_t op;
};

struct job_comm {
	uint64_t id;
	uint64_t first_seq, last_seq;
	uint64_t bytes;       /* of collectives, all members together */
	size_t collectives;   /* calls */
	uint32_t members;     /* workers seen */
	uint32_t nranks;      /* as told, at most */
	uint32_t last_worker; /* that was counted as a member */
	uint32_t match;       /* first one, where sequence numbers lie close together */
	uint64_t *seqs;       /* else: those that occur, ascending */
	size_t seq_count;
};

struct job_match {
	uint32_t first, count; /* of members[] */
	uint32_t last;         /* item that arrived last */
	int64_t arrival_ns;    /* of it */
};

struct job_pause { /* a worker waits, in one call or several at once */
	int64_t start_ns, end_ns;
	int64_t arrival_ns; /* of who it waited for longest */
	uint32_t match;     /* in which; JOB_NONE: for nobody, it came last itself */
	uint32_t within;    /* the one that it left last, whoever came last to it; JOB_NONE: none */
};

struct job_visit { /* the critical path comes to a worker */
	uint32_t worker, match;
	uint32_t step;
	uint64_t lag_ns; /* the one who waited, for it */
};

struct job {
	const struct blame_worker *workers;
	const struct blame_call *calls;
	size_t worker_count, call_count;
	struct job_item *items;
	size_t item_count;
	size_t *first;
	int64_t *offset_ns;
	uint64_t *error_ns;
	struct job_comm *comms;
	size_t comm_count;
	struct job_member *ranks; /* hash: (communicator, rank) -> worker */
	size_t ranks_size;
	struct job_match *matches;
	size_t match_count;
	uint32_t *members; /* items, by match */
	uint64_t unmatched;
	int64_t begin_ns, end_ns;
	int64_t *cuts;       /* step s is from cuts[s] to cuts[s + 1] */
	int64_t *group_cuts; /* likewise of each group: [group * (step_count + 1) + step] */
	size_t step_count;
	uint64_t step_ns;
	bool is_steady;  /* blame.h */
	bool is_guessed; /* what of Recvs was waited, for want of calls that say so */
	int32_t *stage, *replica;
	int32_t stage_count;
	uint32_t *group; /* peers by worker: those with the same number */
	uint32_t group_count;
	struct job_pause *pauses;
	size_t *pause_first;
	float *own, *path; /* [worker * step_count + step], ns */
	double *held_ns; /* by worker: how long others kept it waiting, at most; INFINITY: not known */
	struct job_visit *visits;
	size_t visit_count;
	float *transfer; /* by match: what of the path it is, all having come, ns */
	uint64_t gap_ns;
	float *excess; /* like own: more than the peers' median; negative: less */
	bool *late;    /* like own: far more than chance */
	float *sigma;  /* by group: ordinary distance from the median of the peers, robust */
	struct job_cost *costs;              /* by worker */
	double *stage_cost_ns, *stage_ratio; /* by stage; its own time to that of the others */
	uint32_t *
		stage_since; /* by stage: the step from which on it is slower than before; 0: it always was so */
	float *uneven; /* by step: on the path, more than the peers, by whomever */
	struct job_load {
		double uneven_ns;                   /* in all, pauses of a few steps left out */
		double span_ns, steps;              /* that were looked at */
		double spread_step, spread_lasting; /* among peers: in a step, and over all */
	} load, begun;                              /* since it has begun to move */
	double spread_before; /* among peers, in a step before that; 0: it did not begin */
};

struct job_cost {
	double lost_ns;   /* of the job's time */
	double exposed;   /* of what it lags by, the share that others can have waited for, 0..1 */
	double uneven_ns; /* likewise, all that is more than the peers need in the same step */
	double late_ns;   /* of that, in late steps */
	double excess_ns; /* own time beyond the peers', on the path or not */
	double own_ns, peer_ns; /* all steps */
	double noise;           /* standard error of own_ns / peer_ns */
	uint32_t late, seen;    /* steps */
};

void blame_job_done(struct job *j);

/* Each 0 or -ENOMEM (blame_load also -E2BIG), in this order. */
int blame_load(struct job *j);
int blame_match(struct job *j);
int blame_clocks(struct job *j);
int blame_steps(struct job *j); /* step_count 0: none can be told */
int blame_roles(struct job *j);
int blame_group_cuts(struct job *j);
int blame_path(struct job *j);
int blame_weigh(struct job *j);
int blame_name(struct job *j, struct blame *b);
int blame_link(const struct job *j, struct blame *b);
/* blame_sudden - 1 if somebody was late in the last steps by what nobody else ever is (who, and when), 0 or
 * -ENOMEM. */
int blame_sudden(const struct job *j, uint32_t *ret_worker, size_t *ret_step);

/* blame_received - 1 if some worker is sent more than before and steps are longer since (who, and what that costs), 0 or
 * -ENOMEM. */
int blame_received(const struct job *j, uint32_t *ret_worker, struct blame_suspect *ret);
/* blame_since - the step from which on @series, a value a step, is JOB_STAGE_RATIO times what it was; 0: it always was so. @room
 * has room for them. */
uint32_t blame_since(const float *series, size_t n, float *room);

/* blame_waits - clocks are set. */
void blame_waits(struct job *j);
/* blame_suppose_waits - steps are known; false: so are most waits, and nothing was changed. */
bool blame_suppose_waits(struct job *j);

/* blame_round - of how many of @n cuts, which lie at @matches, one step consists: 1, or more
 * where every so manyth distance is far longer than the others for all workers (*ret_first is a cut that begins one).
 * @step_ns: how long one takes; 0: not known. -ENOMEM. */
int blame_round(const struct job *j, const uint32_t *matches, const int64_t *cuts, size_t n,
	uint64_t step_ns, size_t *ret_round, size_t *ret_first);

/* blame_describe - what is told of @worker, which costs @lost_ns. -ENOMEM. */
int blame_describe(const struct job *j, uint32_t worker, double lost_ns, struct blame_suspect *ret);
/* blame_late_together - in most of the steps in which either is late both are, and their work is the same. */
bool blame_late_together(const struct job *j, uint32_t a, uint32_t b);

static inline const struct push_call *job_call(const struct job *j, uint32_t item)
{
	return &j->calls[j->items[item].call].c;
}

/* job_is_within - by the worker's own clock: whether @next was made while it was in @t. A call that is over before @t ends
 * was, and so was a Send, which lasts until it is received: they are made just before the worker comes back for a message that
 * was there already. */
static inline bool job_is_within(const struct push_call *t, const struct push_call *next)
{
	return next->enter_ns < t->leave_ns &&
	       ((uint64_t)t->leave_ns - (uint64_t)next->enter_ns > JOB_EDGE_NS ||
		       next->leave_ns <= t->leave_ns || next->op == NCCL_SEND);
}

static inline uint32_t job_item_worker(const struct job *j, uint32_t item)
{
	return j->items[item].worker;
}

/* blame_is_one_node - both are on it, and have its clock; false where a node is not known. */
bool blame_is_one_node(const struct job *j, uint32_t a, uint32_t b);
/* blame_error - how wrong the time between something of @a and something of @b may be. */
uint64_t blame_error(const struct job *j, uint32_t a, uint32_t b);

/* blame_is_pair - a Send or Recv. */
static inline bool blame_is_pair(uint16_t op)
{
	return op == NCCL_SEND || op == NCCL_RECV;
}

/* blame_median - lower median of @n values; sorts them. 0 of none. */
float blame_median(float *values, size_t n);
