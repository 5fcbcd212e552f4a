/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_snapshot_private.h - shared by the two files that answer short questions. */
#pragma once

#include "agent/store/nodedb_snapshot.h"
#include "agent/store/nodedb_reader.h"

struct nodedb_snapshot {
	struct reader reader;
	sql_stmt *stack; /* compiled at first use */
};

struct look_columns {           /* which of a table's columns a scope applies to */
	const char *time, *pid; /* NULL: none */
	int64_t width_ns;       /* a row is about the time up to so much later; 0: a moment */
	bool op;                /* it has source and op */
};

/* look_where - appends a WHERE that is complete; look_where_node() adds the node as ?1 if the table
 * has such a column; look_prepare() compiles and binds it. */
void look_where(const struct nodedb_snapshot *l, const struct nodedb_scope *s,
	const struct look_columns *c, struct buf *sql);
int look_where_node(struct nodedb_snapshot *l, const char *table, const struct nodedb_scope *s,
	struct buf *sql, struct errinfo *reterr);
int look_prepare(struct nodedb_snapshot *l, const struct buf *sql, const struct nodedb_scope *s,
	sql_stmt **ret, struct errinfo *reterr);
