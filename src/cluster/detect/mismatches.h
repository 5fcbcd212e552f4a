/* SPDX-License-Identifier: Apache-2.0 */
/* mismatches.h - ranks that disagree about one collective: the last 256. Pure. */
#pragma once

#include "cluster/detect/calls.h"
#include "cluster/detect/comms.h"

#define MISMATCHES_MAX 256

struct mismatch {
	uint64_t comm, seq;
	enum calls_mismatch what;
	uint64_t value[2];
	uint32_t worker[2], count[2]; /* the first of each opinion, and how many have it */
	int64_t at_ns;
};

struct mismatches {
	struct mismatch items[MISMATCHES_MAX];
	uint64_t count; /* of all times */
};

/* mismatches_check - compares @call of @worker with what others said of @x, of whom there are @x->have. */
void mismatches_check(struct mismatches *m, struct collective *x, const struct push_call *call,
	uint32_t worker, int64_t at_ns);
bool mismatches_next(const struct mismatches *m, size_t *cursor, struct mismatch_view *ret);
