/* SPDX-License-Identifier: Apache-2.0 */
/* sql_table.h - the rows of one statement, kept: columns' names and values, no connection behind
 * them. */
#pragma once

#include "base/buf.h"
#include "sql/sql.h"

struct sql_cell {
	enum sql_type type;
	union {
		int64_t i;
		double d;
		size_t offset; /* SQL_TEXT, SQL_BLOB: of len bytes in the table's text */
	};
	size_t len;
};

struct sql_table {
	int column_count;
	size_t *names;          /* offsets of NUL-terminated names in text */
	struct sql_cell *cells; /* row by row */
	size_t row_count;
	size_t capacity;
	size_t bytes_max;
	bool truncated; /* there were more rows than allowed */
	struct buf text;
};

/* sql_table_begin - names the columns of @stmt; done with sql_table_done(). */
int sql_table_begin(struct sql_table *t, sql_stmt *stmt, size_t bytes_max);

/* Rows that come from elsewhere than SQLite: open, name each column, then put rows of column_count
 * values, with results as of sql_table_add(). Also after a failure: sql_table_done(). */
int sql_table_open(struct sql_table *t, int column_count, size_t bytes_max);
int sql_table_set_name(struct sql_table *t, int column, const char *name);
int sql_table_put(struct sql_table *t, const struct sql_value *row);

/* sql_build_begin - opens it and names @count columns; done with sql_table_done(). */
int sql_build_begin(struct sql_table *t, const char *const *names, int count, size_t bytes_max);

/* sql_table_add - keeps the current row of @stmt. 0; -ENOBUFS if it does not fit into bytes_max
 * (then nothing is kept of it); -ENOMEM. */
int sql_table_add(struct sql_table *t, sql_stmt *stmt);
void sql_table_done(struct sql_table *t);

static inline const char *sql_table_name(const struct sql_table *t, int column)
{
	return buf_str(&t->text) + t->names[column];
}

static inline const struct sql_cell *sql_table_cell(
	const struct sql_table *t, size_t row, int column)
{
	return &t->cells[row * (size_t)t->column_count + (size_t)column];
}

/* sql_table_int - 0: it is none. */
static inline int64_t sql_table_int(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	return c->type == SQL_INT ? c->i : 0;
}

/* sql_table_bytes - of a text or blob; texts may hold NULs. */
static inline const char *sql_table_bytes(const struct sql_table *t, const struct sql_cell *c)
{
	return buf_str(&t->text) + c->offset;
}
