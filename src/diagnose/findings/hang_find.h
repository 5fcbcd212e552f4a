/* SPDX-License-Identifier: Apache-2.0 */
/* hang_find.h - collectives that some ranks entered and others did not, or that ranks entered with
 * different arguments. */
#pragma once

#include "diagnose/accounts/match.h"
#include "base/idmap.h"

enum hang_kind {
	HANG_MISSING,  /* some ranks of the recording never came */
	HANG_MISMATCH, /* ranks called different operations */
	HANG_OUTSIDE,  /* all ranks of the recording came; those of other recordings did not */
};

struct hang_rank { /* a rank of the communicator, as far as the recording goes */
	const struct collective_row *last;  /* its last collective on it */
	const struct collective_row *stuck; /* its row of the stuck one; NULL: never came */
	int64_t exit_ns;                    /* its process ended then; 0: it lived on */
	int64_t seen_ns;                    /* its last entry in the ledger */
	int64_t busy_ns;                    /* end of the last thing its process is known to do */
	struct hang_rank *next;             /* of the same process */
	bool is_odd;                        /* missing, or called something else than most */
};

#define HANG_RANKS_MAX 4096 /* more ranks of one communicator are not looked at */

struct hang {
	enum hang_kind kind;
	bool is_stuck; /* the ranks that came are still waiting, or were until they ended */
	uint64_t seq;  /* of the collective */
	uint64_t comm_hash;
	int64_t since_ns;     /* the last of those that came, came then */
	int64_t until_ns;     /* end of the recording, or of the first waiting process */
	uint64_t interval_ns; /* ordinary distance of collectives; 0: not known */
	uint64_t longest_ns;  /* the longest one; 0: not known */
	bool is_at_work;      /* a rank that did not come was heard of until the end */
	int nranks;           /* of the communicator; -1: not known */
	bool is_seen; /* a wait that long was recorded, or calls were under way at the end */
	struct hang_rank *ranks; /* by rank */
	size_t rank_count, odd_count;
	struct idmap by_pid; /* the first of a process's ranks */
};

/* hang_find - 1 and *ret (released with hang_done()), 0 if there is nothing, or -ENOMEM.
 * @end_ns: match_end_ns(). *looks: how often all events may still be gone through; counts down. */
int hang_find(const struct recording *rec, const struct match_table *t, const struct match_comm *c,
	int64_t end_ns, unsigned *looks, struct hang *ret);
void hang_done(struct hang *h);
