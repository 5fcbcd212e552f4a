/* SPDX-License-Identifier: Apache-2.0 */
/* rank_calls.h - rows of `collectives` as the calls of workers that blame/ knows. Those on communicators that were in use
 * before the trace are brought together with those of other ranks (blame/comm_join.h). */
#pragma once

#include "diagnose/recording.h"
#include "blame/blame.h"

struct rank_calls {
	struct blame_worker
		*workers; /* a process each, in order of appearance; ranks are not set */
	size_t worker_count;
	struct blame_call
		*calls; /* that tell which communication they are part of, in the rows' order */
	const struct collective_row **rows; /* of the calls; of @late, not the recording's */
	size_t count;
	struct collective_row
		*late;   /* copies, with the communicator and number that all ranks share */
	size_t *late_of; /* which of the recording's rows they are */
	size_t late_count;
	uint64_t unknown; /* rows that could not be brought together */
};

/* rank_calls_find - 0 and *ret (released with rank_calls_done(), also after a failure), or -ENOMEM. Left out: failed calls
 * and rows that make no sense. */
int rank_calls_find(const struct recording *rec, struct rank_calls *ret);
void rank_calls_done(struct rank_calls *c);

/* rank_calls_row - which of the recording's rows @row, one of @c's, is. */
size_t rank_calls_row(
	const struct recording *rec, const struct rank_calls *c, const struct collective_row *row);
