/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.h - NCCL's communicators in a time: their ranks, what they did together, who kept whom
 * waiting. */
#pragma once

#include "answer/answer.h"
#include "diagnose/accounts/lateness.h"
#include "model/collective.h"

#define COLLECTIVES_WORST 10

struct collective_waits { /* of calls of which it is known how long they waited */
	uint64_t calls, ns, max_ns;
};

struct collective_rank {
	const struct collective_row *row; /* its newest call */
	uint64_t calls, bytes, errors;
	uint64_t last, late_ns, late_max_ns; /* came last so often, after the others */
	struct collective_waits waits;
};

struct collective_speed { /* of calls whose time is known: see model/collective.h */
	uint64_t calls;
	double size, seconds; /* of all together */
	double factor;        /* bus bandwidth by algorithm bandwidth, of the last */
	double best;          /* bus bandwidth of the fastest, bytes/s */
};

struct collective_op {
	uint64_t calls, bytes, max_ns;
	double ns;
	struct collective_waits waits;
	struct collective_speed speeds[BANDWIDTH_CLASSES]; /* by size */
};

struct collective_comm {
	uint64_t hash;
	int32_t nranks;
	struct collective_rank *ranks; /* by rank */
	size_t rank_count;
	bool more_ranks;
	struct collective_op ops[WIRE_OP_MAX];
	uint64_t bytes, calls, last_seq;
	int64_t first_ns, last_ns;
	size_t collectives, complete, judged;
	bool one_clock;
	struct lateness worst[COLLECTIVES_WORST]; /* by gap, most first */
	size_t worst_count;
};

struct collectives_answer {
	struct collective_comm *comms; /* most calls first */
	size_t count;
	struct collective_op ops[WIRE_OP_MAX]; /* of all calls */
	uint64_t calls, without;               /* on communicators made before the trace */
	bool truncated;
	struct collective_row *rows; /* that the others point into */
	struct match_table matches;
};

int answer_collectives(
	const struct question *q, struct collectives_answer *ret, struct errinfo *reterr);
void collectives_answer_done(struct collectives_answer *a);

/* Bytes a second, a bound from below: calls take less than the time that is known of them. */
static inline double collective_algorithm_bandwidth(const struct collective_speed *s)
{
	return s->seconds > 0 ? s->size / s->seconds : 0;
}

static inline double collective_bus_bandwidth(const struct collective_speed *s)
{
	return collective_algorithm_bandwidth(s) * s->factor;
}

/* collectives_text - algorithm and bus bandwidth by operation and size, as nccl-tests prints them. */
void collectives_text(struct buf *b, const struct collectives_answer *a);

/* collectives_straggler - the rank of @c that the others waited for longest; NULL: nobody was
 * late, or it cannot be told who. */
const struct collective_rank *collectives_straggler(const struct collective_comm *c);
