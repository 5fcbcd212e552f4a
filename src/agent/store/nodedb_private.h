/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_private.h - the open store, shared by the files that write it. */
#pragma once

#include "agent/store/lock.h"
#include "agent/store/nodedb.h"
#include "sql/sql.h"

/* Statements are compiled at first use and kept; their text is in nodedb_sql.c. */
enum nodedb_statement {
	STATEMENT_EVENT,
	STATEMENT_FINE_GET,
	STATEMENT_FINE_PUT,
	STATEMENT_COARSE_GET,
	STATEMENT_COARSE_PUT,
	STATEMENT_SAMPLE,
	STATEMENT_PROCESS,
	STATEMENT_PROCESS_NAME,
	STATEMENT_ACCOUNTING,
	STATEMENT_LOSS,
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
	struct store_lock lock;
	uint64_t next_seq;
	uint64_t batch_seq; /* next_seq when the open batch began */
	sql_stmt *statements[STATEMENT_COUNT];
};

/* nodedb_statement - the compiled statement, the store's. */
int nodedb_statement(
	struct nodedb *db, enum nodedb_statement which, sql_stmt **ret, struct errinfo *reterr);
