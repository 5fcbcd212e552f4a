/* SPDX-License-Identifier: Apache-2.0 */
/* sql_build.h - a table of rows (sql_table.h) made from values instead of a statement. */
#pragma once

#include "sql/sql.h"
#include "sql/sql_table.h"

/* sql_build_begin - a table with these columns and no rows; done with sql_table_done(). */
int sql_build_begin(struct sql_table *t, const char *const *names, int count, size_t bytes_max);

/* sql_build_row - adds one row of t->column_count values. 0; -ENOBUFS if it does not fit into
 * bytes_max (then nothing is kept of it); -ENOMEM. */
int sql_build_row(struct sql_table *t, const struct sql_value *values);
