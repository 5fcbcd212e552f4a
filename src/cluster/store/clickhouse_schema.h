/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_schema.h - the tables on ClickHouse servers, as SQL and as bytes; private to store/.
 *
 * On each shard, in the store's database:
 *   NAME_local    the rows of this shard, ordered by cluster, node and time; two more columns,
 *                 journal_day (the partition) and journal_seq (which row of which journal entry)
 *   NAME          all rows: over all shards, or of the only one
 *   journal_local the journal position that has been written for good
 *   NAME_gate_G   where rows of NAME_local come in, by way of NAME_pass_G; G is a number of the process
 *                 that fills. Without it an insert fails, however late it is
 * and for a stranger's SQL, which may see a set of clusters only, a database with the same NAMEs that
 * holds these clusters' rows.
 *
 * node_metrics is computed from events when it is asked. */
#pragma once

#include "base/clock.h"
#include "cluster/store/store.h"

#define CLICKHOUSE_DAY_NS   (86400 * (int64_t)NS_PER_S)
#define CLICKHOUSE_DAY_MAX  65535 /* the year 2149; what is later lies in this partition */
#define CLICKHOUSE_SEQ_BITS 24    /* of a row's number in its entry; the position is above */

struct clickhouse_names {
	const char *database,
		*cluster; /* as in store_clickhouse_settings; the cluster may be NULL */
};

const char *clickhouse_type(enum column_type type); /* "Int64" */

/* clickhouse_schema_next - statement number @i that makes what is missing on a shard, into @b: false
 * when there are no more. @synced: the server writes through to its disk if it is asked to. */
bool clickhouse_schema_next(struct buf *b, const struct clickhouse_names *n, bool synced, size_t i);

/* clickhouse_scope_next - likewise, of the database @name with the rows of the scope's clusters. */
bool clickhouse_scope_next(struct buf *b, const struct clickhouse_names *n, const char *name,
	const struct store_scope *scope, size_t i);

/* clickhouse_put_table - the rows of the scope as a subquery, for store_dialect's table. */
void clickhouse_put_table(struct buf *b, const struct clickhouse_names *n, enum store_table t,
	const struct store_scope *scope);

/* clickhouse_gate_next - statement number @i that makes the gates of number @gate. */
bool clickhouse_gate_next(struct buf *b, const struct clickhouse_names *n, uint64_t gate, size_t i);

/* clickhouse_put_insert - the statement before rows of @t as clickhouse_put_row() writes them. */
void clickhouse_put_insert(
	struct buf *b, const struct clickhouse_names *n, enum store_table t, uint64_t gate);
void clickhouse_put_row(struct buf *b, const struct batch_row *row, uint64_t seq);

int clickhouse_day(const struct batch_row *row); /* its partition */

static inline uint64_t clickhouse_seq(uint64_t position, size_t row)
{
	return position << CLICKHOUSE_SEQ_BITS | row;
}
