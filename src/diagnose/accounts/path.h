/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - what decided how long an interval of a thread took: backwards from its end through who woke
 * whom, across threads and processes. */
#pragma once

#include "diagnose/accounts/tally.h"
#include "diagnose/rows/timeline.h"

struct path {
	const struct timeline *timeline;
	uint32_t pid, tid; /* whose steps they are */
	bool has_loader;   /* which asks a data loader for batches */
	bool polls; /* it sleeps, for longer each time, until the GPU is done: STEP_BY_POLL */
	const struct ledger_row
		*copied; /* the row whose copies were looked at last: it may be in many intervals */
	uint64_t copied_wait_ns;
	/* Of recorded copies, by powers of two of their length, and what of it was waiting for the GPU. */
	bool knows_copies;
	uint64_t copy_ns[65], copy_wait_ns[65];
};

/* path_account - adds the interval [from, to) of p->tid to @out, exactly to - from nanoseconds. 0 or
 * -ENOMEM. */
int path_account(struct path *p, int64_t from_ns, int64_t to_ns, struct tally *out);
