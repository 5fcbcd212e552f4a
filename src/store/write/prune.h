/* SPDX-License-Identifier: Apache-2.0 */
/* prune.h - keeps the store below a size by deleting its oldest rows, a portion at a time.
 *
 * Belongs to the thread that owns the store, which calls prune_step() between its transactions. */
#pragma once

#include "store/nodedb.h"
#include "store/nodedb_private.h"

#define PRUNE_LIMIT_MIN (1u << 20) /* an empty store takes 0.2 MB */

struct prune;

/* prune_new - keep @db (database and write-ahead log together) below @limit_bytes, at least
 * PRUNE_LIMIT_MIN. The row and the books of @session are never touched. @db must outlive it. */
int prune_new(struct nodedb *db, int64_t session, uint64_t limit_bytes, struct prune **ret_prune,
	struct errinfo *reterr);
void prune_free(struct prune *p);

/* prune_step - one portion of what is due, if anything: at most @rows_max rows (and never more than
 * prune_rows_per_step()) or 50 ms. Returns 1 if there may be more to do, 0 if not; on failure
 * nothing of the portion is done. */
int prune_step(struct prune *p, size_t rows_max, struct errinfo *reterr);
size_t prune_rows_per_step(const struct prune *p);

/* prune_batch_max - events per transaction that fit the limit: a transaction lies in the log whole.
 */
size_t prune_batch_max(uint64_t limit_bytes, size_t wanted);

/* prune_swept - whether rows that others refer to (stacks, processes, cgroups) have been removed
 * since the last call: who pushes such rows only once must do it again. */
bool prune_swept(struct prune *p);

/* Removes rows that only make sense for others that are gone: stacks, cgroups and
 * processes nothing refers to, and sessions whose whole time has been pruned. */

struct orphan_gc {
	int stage;                     /* 0: at rest */
	int64_t cursor;                /* events marked up to this seq */
	int64_t row_cursor;            /* rows of the ledger marked up to this one */
	int64_t pid, start;            /* processes looked at up to this one */
	int64_t stacks_at, cgroups_at; /* candidates so far */
	uint64_t began_ns;             /* monotonic */
	uint64_t rest_until_ns;
	bool removed; /* rows that others may refer to again */
};

/* orphan_gc_begin - start a round if the last one is long enough ago and none is under way. */
void orphan_gc_begin(struct orphan_gc *s);

/* orphan_gc_step - one portion of at most @rows rows looked at. Call inside a transaction.
 * *ret_deleted grows by the rows removed. Returns 1 while the round goes on, 0 at rest. */
int orphan_gc_step(struct orphan_gc *s, struct nodedb *db, size_t rows, int64_t session,
	uint64_t *ret_deleted, struct errinfo *reterr);
