/* SPDX-License-Identifier: Apache-2.0 */
/* ordinary.h - which stored calls are ordinary, so that a reader need not look at them one by one.
 *
 * Aggregates say how long every op of every process ordinarily takes and how often it was called;
 * rows of such calls add nothing to that. Everything else is kept: calls longer than that, calls
 * that failed, the first ones after a pause, waits for the GPU and allocations (they mark steps and
 * leaks), ops without aggregates, and every row that is no CUDA call. */
#pragma once

#include "model/event.h"

struct ordinary_op {
	uint64_t key;
	uint64_t limit_ns; /* a call that took longer is kept */
	uint64_t thinned;  /* rows left out so far; the rest is about these */
	int64_t first_ns;  /* earliest start */
	uint64_t first_seq;
	int64_t last_ns; /* latest end */
	uint64_t last_seq;
};

struct ordinary {
	struct ordinary_op *ops;
	size_t count;
	uint32_t *slots; /* open addressing over ops; 0: empty, else 1 + index */
	size_t slot_mask;
	int64_t from_ns, to_ns; /* rows that start outside are kept; 0: open */
};

/* ordinary_init - learns from @n aggregates. 0 or -ENOMEM, which leaves nothing to release. */
int ordinary_init(struct ordinary *o, const struct aggregate *aggregates, size_t n);

/* ordinary_clone - a copy with the counts at zero. 0 or -ENOMEM. */
int ordinary_clone(struct ordinary *o, const struct ordinary *from);
/* ordinary_reset - the counts at zero again. */
void ordinary_reset(struct ordinary *o);
void ordinary_done(struct ordinary *o);

/* What ordinary_keeps() looks at, and the columns' names. */
enum ordinary_column {
	ORDINARY_SEQ,
	ORDINARY_TIMESTAMP,
	ORDINARY_PID,
	ORDINARY_SOURCE,
	ORDINARY_OP,
	ORDINARY_DURATION,
	ORDINARY_RET,
	ORDINARY_FLAGS,
	ORDINARY_COUNT
};
extern const char *const ordinary_columns[ORDINARY_COUNT];

/* ordinary_keeps - whether the row is to be looked at; if not, it is counted. */
bool ordinary_keeps(struct ordinary *o, const int64_t row[ORDINARY_COUNT]);

/* ordinary_merge - adds what @from counted; both have the same ops. */
void ordinary_merge(struct ordinary *o, const struct ordinary *from);

/* ordinary_edges - the rows that were left out and yet say something alone: of each op the first
 * and the one that ended last, which bound the time in which its process was seen. @ret has room
 * for 2 x o->count; ascending, distinct. Returns how many. */
size_t ordinary_edges(const struct ordinary *o, uint64_t *ret);

uint64_t ordinary_thinned(const struct ordinary *o);
