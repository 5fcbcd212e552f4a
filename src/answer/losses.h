/* SPDX-License-Identifier: Apache-2.0 */
/* losses.h - how complete a recording is: what became of every hit, and what was deleted since. */
#pragma once

#include "answer/answer.h"
#include "model/accounting.h"

/* How much of what happened is in the data, for whoever says it. To add a fact: a field of the books
 * (model/accounting.h) and its words in completeness_text(). */
struct completeness {
	bool known; /* else the recording does not say what it lost */
	uint64_t hits, stored, aggregated, lost;
	struct accounting books; /* what else they say: an unclean end, calls that no probe saw */
};

struct completeness completeness_of(const struct accounting *books); /* NULL: not known */

/* completeness_share - 0..1, or -1: not known. Hits that are neither stored nor lost are on their way
 * while tracing goes on and do not count; after an unclean end nobody knows what became of them. */
double completeness_share(const struct completeness *c);

/* completeness_text - "none of 1,000 events lost", in a sentence that names what is not known, and
 * calls that no probe saw. Names in it are escaped for terminals. */
void completeness_text(struct buf *b, const struct completeness *c);

/* put_completeness - the members "unclean", if it was, and "completeness". */
void put_completeness(struct json_writer *w, const struct completeness *c);

/* Columns of losses_answer's tables, as nodedb_snapshot_list() gives them. */
enum {
	LOSSES_SESSION,
	LOSSES_NODE,
	LOSSES_SOURCE,
	LOSSES_HITS,
	LOSSES_STORED,
	LOSSES_AGGREGATED,
	LOSSES_LOST
};
enum { LOSSES_REASON = 3, LOSSES_COUNT = 4, LOSSES_CPU = 4, LOSSES_CPU_COUNT = 5 };

struct losses_answer {
	struct sql_table books;  /* a row for each session, node and source */
	struct sql_table losses; /* their reasons */
	struct sql_table cpus;   /* by CPU */
	struct sql_table unseen; /* calls that no probe could see: in no number */
	struct sql_table pruned;
	struct completeness total;
	bool balances; /* hits = stored + aggregated + lost in every row */
	bool truncated;
};

int answer_losses(const struct question *q, struct losses_answer *ret, struct errinfo *reterr);
void losses_answer_done(struct losses_answer *a);

bool losses_balance(const struct sql_table *books, size_t row);
