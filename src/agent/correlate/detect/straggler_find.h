/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_find.h - which rank of a communicator keeps the others waiting. */
#pragma once

#include "agent/correlate/engine/match.h"
#include "agent/correlate/engine/window.h"

struct lateness { /* of the rank that came last to one collective */
	const struct collective_row *row;
	uint64_t gap_ns;  /* after the one before it, as far as somebody waited */
	uint64_t lost_ns; /* of all others together, no more than they waited */
	uint64_t wait_ns; /* what the others waited in all */
};

/* straggler_last - who came last to @m, which has at least two ranks. False if it cannot be told:
 * ranks of several clocks, and not of all it is known how long they waited. */
bool straggler_last(const struct match_table *t, const struct match *m, struct lateness *ret);

struct straggler {
	const struct collective_row *row; /* its worst call */
	size_t collectives;               /* compared */
	size_t material;                  /* somebody came late enough to matter */
	size_t last;                      /* of these, it was the one */
	int ranks, nranks;                /* in the recording; of the communicator, -1: not known */
	uint64_t gap_p50_ns;
	uint64_t job_ns;  /* the job stood still for it: union of its gaps */
	uint64_t span_ns; /* of the communicator's collectives */
	uint64_t lost_ns, wait_ns;
	int64_t first_ns, last_ns;
	uint32_t period; /* comes every so many collectives; 0: not regular */
	double period_share;
	bool by_waits;          /* ranks of several nodes: by how long they waited */
	struct lateness *worst; /* its material ones, by gap, most first */
	struct window *windows; /* its gaps, ascending, disjoint */
	size_t window_count;
};

/* straggler_find - 1 and *ret (released with straggler_done()) if a rank of @c is last again and
 * again, 0 if none, or -ENOMEM. */
int straggler_find(const struct match_table *t, const struct match_comm *c, struct straggler *ret);
void straggler_done(struct straggler *s);
