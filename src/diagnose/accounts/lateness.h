/* SPDX-License-Identifier: Apache-2.0 */
/* lateness.h - who came last to one collective, for those who show collectives one by one. Being last is not
 * blame: who makes a job wait is told by blame/blame.h. */
#pragma once

#include "diagnose/accounts/match.h"

struct lateness {                         /* of the ranks that came last to one collective */
	const struct collective_row *row; /* of the very last */
	const struct match *match;
	int late; /* ranks that came clearly after the others, at most half of them */
	uint64_t
		gap_ns; /* of the very last after the last of the others, as far as somebody waited */
	uint64_t lost_ns; /* of all others together, no more than they waited */
};

/* lateness_find - who came late to @m, which has at least two ranks. False if it cannot be told:
 * ranks of several clocks, and not of all it is known how long they waited. */
bool lateness_find(const struct match_table *t, const struct match *m, struct lateness *ret);
