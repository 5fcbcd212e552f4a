/* SPDX-License-Identifier: Apache-2.0 */
/* match.h - the collectives of a recording, those of all ranks brought together by (comm, seq). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diagnose/accounts/rank_calls.h"
#include "diagnose/recording.h"
#include "base/macros.h"

struct match { /* one collective: rows[first .. first + count), one per rank, by rank */
	size_t first, count;
	bool one_node; /* all of them by one clock */
	uint64_t comm_hash;
};

struct match_comm { /* one communicator: matches[first .. first + count), by seq */
	size_t first, count;
};

struct match_table {
	const struct collective_row **rows;
	size_t row_count;
	struct match *matches;
	size_t match_count;
	struct match_comm *comms;
	size_t comm_count;
	struct rank_calls calls; /* that the rows are of, messages too */
};

/* match_run - fills @ret (released with match_done(), also after a failure). Left out: sends and
 * receives, failed calls, calls on communicators that were made before the trace unless rank_calls.h
 * brings their ranks together, rows whose times make no sense, a rank's second row of one
 * collective. 0 or -ENOMEM. */
int match_run(const struct recording *rec, struct match_table *ret);
void match_done(struct match_table *t);

static inline const struct collective_row *match_row(
	const struct match_table *t, const struct match *m, size_t i)
{
	return t->rows[m->first + i];
}

/* match_end_ns - the last moment that the recording knows of. */
int64_t match_end_ns(const struct recording *rec);
