/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_private.h - the open store, shared by the files that write it. */
#pragma once

#include "store/lock.h"
#include "store/nodedb.h"
#include "store/schema/table.h"
#include "sql/sql.h"

/* Statements are compiled at first use and kept. Those below TABLE_COUNT insert into that table. */
enum nodedb_statement {
	STATEMENT_COARSE_GET = TABLE_COUNT,
	STATEMENT_FINE_GET,
	STATEMENT_SESSION_PLACE,
	STATEMENT_INCIDENT,
	STATEMENT_COUNT
};

struct nodedb {
	sql_db *sql;
	char *path, *node;
	int file; /* O_PATH: closing it drops none of SQLite's locks. -1: none */
	size_t node_len;
	bool durable; /* the open batch outlasts a power cut */
	struct store_lock lock;
	uint64_t next_seq;
	uint64_t batch_seq;                 /* next_seq when the open batch began */
	uint64_t pruned_rows, batch_pruned; /* by this process; when the open batch began */
	sql_stmt *statements[STATEMENT_COUNT];
};

/* nodedb_put_row - writes a row; @given has what is not in its struct, see table_values(). */
int nodedb_put_row(struct nodedb *db, enum node_table table, const void *row,
	const struct sql_value *given, struct errinfo *reterr);
#define NODEDB_PUT(db, table, row, reterr, ...)                                                    \
	nodedb_put_row(db, table, row, (const struct sql_value[]){__VA_ARGS__}, reterr)
