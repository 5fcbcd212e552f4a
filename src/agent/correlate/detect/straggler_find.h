/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_find.h - which ranks of a communicator keep the others waiting. */
#pragma once

#include "agent/correlate/engine/match.h"
#include "agent/correlate/engine/window.h"

#define STRAGGLERS_MAX 8 /* that are late together; more are not told apart from a slow job */

struct lateness {                         /* of the ranks that came last to one collective */
	const struct collective_row *row; /* of the very last */
	const struct match *match;
	int late;     /* ranks that came clearly after the others, at most half of them */
	uint64_t set; /* the same for the same ranks */
	uint64_t
		gap_ns; /* of the very last after the last of the others, as far as somebody waited */
	uint64_t lost_ns; /* of all others together, no more than they waited */
	uint64_t wait_ns; /* what the others waited in all */
};

/* straggler_last - who came late to @m, which has at least two ranks. False if it cannot be told:
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
	const struct collective_row *late[STRAGGLERS_MAX]; /* of its worst one, by rank */
	int late_count;                                    /* ranks that are late together */
	struct window *windows;                            /* its gaps, ascending, disjoint */
	size_t window_count;
};

/* straggler_find - 1 and *ret (released with straggler_done()) if a rank of @c is last again and
 * again, 0 if none, or -ENOMEM. */
int straggler_find(const struct match_table *t, const struct match_comm *c, struct straggler *ret);
void straggler_done(struct straggler *s);
