/* SPDX-License-Identifier: Apache-2.0 */
/* orphan_gc.h - removes rows that only make sense for others that are gone: stacks, cgroups and
 * processes nothing refers to, and sessions whose whole time has been pruned. */
#pragma once

#include <stdbool.h>

#include "store/nodedb_private.h"

struct orphan_gc {
	int stage;          /* 0: at rest */
	int64_t cursor;     /* events marked up to this seq */
	int64_t row_cursor; /* rows of the ledger marked up to this one */
	int64_t pid, start; /* processes looked at up to this one */
	uint64_t began_ns;  /* monotonic */
	uint64_t rest_until_ns;
	bool removed; /* rows that others may refer to again */
};

/* orphan_gc_begin - start a round if the last one is long enough ago and none is under way. */
void orphan_gc_begin(struct orphan_gc *s);

/* orphan_gc_step - one portion of at most @rows rows looked at. Call inside a transaction.
 * *ret_deleted grows by the rows removed. Returns 1 while the round goes on, 0 at rest. */
int orphan_gc_step(struct orphan_gc *s, struct nodedb *db, size_t rows, int64_t session,
	uint64_t *ret_deleted, struct errinfo *reterr);
