/* SPDX-License-Identifier: Apache-2.0 */
/* sql_guard.h - one statement that a stranger wrote, run so that it can only read.
 *
 * Layers, any one of which would do for writing: the connection is read-only and query_only; an
 * authorizer lets through reads of real tables, functions from a list and a few PRAGMAs that tell
 * about tables; the statement must be the only one and SQLite must call it read-only. Against
 * statements without end: a deadline, a ceiling on SQLite's memory, on rows, on bytes and on the
 * lengths of texts, patterns and expressions.
 *
 * In-process this is no prison: a flaw of SQLite itself would be inside. Nothing here needs more
 * than the open connection, so that a caller may do it in a process of its own. */
#pragma once

#include "sql/sql.h"
#include "sql/sql_table.h"

struct sql_guard_rules {
	uint64_t timeout_ns;   /* 0: none */
	uint64_t memory_bytes; /* of SQLite in the whole process, beyond what it has now; 0: none */
	size_t rows_max;       /* further rows are not read: truncated is set */
	size_t bytes_max;      /* of the result, likewise */
};

#define SQL_GUARD_TEXT_MAX  65536   /* bytes of a statement */
#define SQL_GUARD_VALUE_MAX 1000000 /* of a text or blob that it handles */

/* sql_guard_select - runs @text on @db, which came from sql_open_read(), and keeps its rows.
 * On success *ret is the caller's (sql_table_done()). @hint, if not NULL, is for a second sentence:
 * what there is instead of what was not found. @db keeps the limits: it is good for nothing else
 * afterwards.
 * -EINVAL the statement is wrong, not alone or not a query; -EPERM it asks for what is not allowed;
 * -ETIMEDOUT; -ENOMEM; -E2BIG a value over the limit; else as in sql.h. */
int sql_guard_select(sql_db *db, const char *text, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr);
