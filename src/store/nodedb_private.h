/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_private.h - the open store, shared by the files that write it. */
#pragma once

#include "store/lock.h"
#include "store/nodedb.h"
#include "sql/sql.h"

/* Statements are compiled at first use and kept; their text is in nodedb_sql.c. */
enum nodedb_statement {
	STATEMENT_EVENT,
	STATEMENT_FINE_GET,
	STATEMENT_FINE_PUT,
	STATEMENT_COARSE_GET,
	STATEMENT_COARSE_PUT,
	STATEMENT_SAMPLE,
	STATEMENT_COLLECTIVE,
	STATEMENT_GPU_SAMPLE,
	STATEMENT_CONTAINER_SAMPLE,
	STATEMENT_LEDGER,
	STATEMENT_OVERHEAD,
	STATEMENT_PROCESS,
	STATEMENT_PROCESS_NAME,
	STATEMENT_CGROUP,
	STATEMENT_STACK,
	STATEMENT_KERNEL,
	STATEMENT_NAME,
	STATEMENT_COVERAGE,
	STATEMENT_CALL_GAP,
	STATEMENT_SESSION_PLACE,
	STATEMENT_ACCOUNTING,
	STATEMENT_LOSS,
	STATEMENT_CPU_LOSS,
	STATEMENT_INCIDENT,
	STATEMENT_CHAIN,
	STATEMENT_ANNOTATION,
	STATEMENT_PRUNED,
	STATEMENT_COUNT
};

struct nodedb {
	sql_db *sql;
	char *path, *node;
	size_t node_len;
	bool durable; /* the open batch outlasts a power cut */
	struct store_lock lock;
	uint64_t next_seq;
	uint64_t batch_seq;                 /* next_seq when the open batch began */
	uint64_t pruned_rows, batch_pruned; /* by this process; when the open batch began */
	sql_stmt *statements[STATEMENT_COUNT];
};

/* nodedb_atomically - one transaction around @write unless the caller has one. */
int nodedb_atomically(struct nodedb *db,
	int (*write)(struct nodedb *db, void *arg, struct errinfo *reterr), void *arg,
	struct errinfo *reterr);

/* nodedb_rank - @value as a column: NULL unless @known has @bit. */
static inline struct sql_value nodedb_rank(uint32_t known, uint32_t bit, int32_t value)
{
	return known & bit ? SQL_I(value) : (struct sql_value){.type = SQL_NULL};
}
#define NODEDB_PLACE(p)                                                                            \
	nodedb_rank((p).known, PLACEMENT_RANK, (p).rank),                                          \
		nodedb_rank((p).known, PLACEMENT_LOCAL_RANK, (p).local_rank),                      \
		nodedb_rank((p).known, PLACEMENT_WORLD_SIZE, (p).world_size)

/* nodedb_statement - the compiled statement, the store's. */
int nodedb_statement(
	struct nodedb *db, enum nodedb_statement which, sql_stmt **ret, struct errinfo *reterr);
