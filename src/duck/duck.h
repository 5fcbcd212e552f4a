/* SPDX-License-Identifier: Apache-2.0 */
/* duck.h - DuckDB, loaded at run time: a database, connections, rows in and rows out.
 *
 * The library comes with npm (tools/duckdb) and is looked for at $INGERO_DUCKDB_LIB, beside the program,
 * in ../lib/ingero of it and where the system keeps libraries. Nobody else declares its functions.
 *
 * A file is opened once in a process, whatever for: DuckDB's lock is the process's, and closing a second
 * handle drops it. Connections of one database may be used by several threads, each by one at a time. */
#pragma once

#include "base/errinfo.h"
#include "sql/sql_table.h"

struct duck;            /* an open database */
struct duck_connection; /* one of its connections */

/* duck_load - loads the library; once in a process, later calls say the same. -ENOENT with a sentence
 * that says how to get it; -ENOSYS: it lacks functions. */
int duck_load(struct errinfo *reterr);
const char *duck_version(void); /* "v1.5.5"; NULL: not loaded */

struct duck_setting {
	const char *name, *value;
};

/* duck_open - @path NULL: in memory. @settings end with a name of NULL; they are given when it is opened
 * and read back: -EPERM if one is not as it was asked for. */
int duck_open(const char *path, const struct duck_setting *settings, struct duck **ret,
	struct errinfo *reterr);
DECLARE_FREE(struct duck, duck_close) /* after its connections */

int duck_connect(struct duck *d, struct duck_connection **ret, struct errinfo *reterr);
DECLARE_FREE(struct duck_connection, duck_disconnect)

/* duck_check - reads settings back: -EPERM if one is not as @settings, which end as for duck_open(), say. */
int duck_check(
	struct duck_connection *c, const struct duck_setting *settings, struct errinfo *reterr);

/* duck_interrupt - ends the statement that another thread runs on @c, with -ECANCELED. */
void duck_interrupt(struct duck_connection *c);

/* duck_exec - statements whose rows nobody wants. -EINVAL: DuckDB refuses it; -ENOSPC, -EIO, -ENOMEM,
 * -ECANCELED as it says so; the sentence is DuckDB's, of one line. */
int duck_exec(struct duck_connection *c, const char *text, struct errinfo *reterr);

struct duck_limits {
	size_t rows_max, bytes_max; /* more is not read: truncated is set */
};

/* duck_select - one statement and its rows; *ret is the caller's (sql_table_done()). Integers that do not
 * fit into 64 bits and decimals are reals; what SQL has no simple type for is text as DuckDB casts it;
 * NaN and infinities are NULL. */
int duck_select(struct duck_connection *c, const char *text, const struct duck_limits *limits,
	struct sql_table *ret, struct errinfo *reterr);

/* duck_select_stranger - as duck_select(), for a statement that must be the only one and a query:
 * -EINVAL otherwise. It is no prison: see duck_worker.h. */
int duck_select_stranger(struct duck_connection *c, const char *text,
	const struct duck_limits *limits, struct sql_table *ret, struct errinfo *reterr);

/* ---- rows in ---- */

enum duck_type { DUCK_BIGINT, DUCK_DOUBLE, DUCK_VARCHAR, DUCK_INTEGER };

struct duck_appender;

/* duck_appender_new - @catalog NULL: the main one. @types are those of the table's columns, in order. */
int duck_appender_new(struct duck_connection *c, const char *catalog, const char *table,
	const enum duck_type *types, int column_count, struct duck_appender **ret,
	struct errinfo *reterr);
DECLARE_FREE(struct duck_appender, duck_appender_free) /* what was not flushed is gone */

/* duck_append - a row of column_count values, SQL_NULL, SQL_INT, SQL_REAL or SQL_TEXT. Texts are copied, and
 * each byte of them that is not UTF-8 becomes U+FFFD. -EINVAL: one is not of its column's type; no row is
 * added then. */
int duck_append(struct duck_appender *a, const struct sql_value *row, struct errinfo *reterr);

/* duck_append_flush - all rows so far become visible in the connection's transaction. */
int duck_append_flush(struct duck_appender *a, struct errinfo *reterr);
