/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse_grow.c - tables that an earlier version made get the columns that have been added since.
 * What only reads them lists its columns: it is dropped, and made anew by whoever makes what is missing. Written
 * for servers that do not know ADD COLUMN IF NOT EXISTS. */
#include <stdio.h>
#include <string.h>

#include "cluster/store/store_clickhouse_private.h"

static bool text_is(const struct sql_table *t, size_t row, int column, const char *text)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	return c->type == SQL_TEXT && !strcmp(sql_table_bytes(t, c), text);
}

/* @columns has a row for each: its table and its name. @name NULL: any. */
static bool has_column(const struct sql_table *columns, const char *table, const char *name)
{
	for (size_t i = 0; i < columns->row_count; i++)
		if (text_is(columns, i, 0, table) && (!name || text_is(columns, i, 1, name)))
			return true;
	return false;
}

static int grow_table(struct store_clickhouse *s, size_t shard, const char *database,
	const char *suffix, enum store_table t, const struct sql_table *columns,
	struct errinfo *reterr)
{
	const struct table_desc *d = &store_tables[t];
	char table[64], sql[512];
	int r = 0;

	snprintf(table, sizeof(table), "%s%s", d->name, suffix);
	if (!has_column(columns, table, NULL))
		return 0; /* it will be made with all of them */
	for (int i = 0; r == 0 && i < d->column_count; i++) {
		if (has_column(columns, table, d->columns[i].name))
			continue;
		if (strcmp(suffix, "_local") != 0) {
			snprintf(sql, sizeof(sql), "DROP TABLE %s.%s", database, table);
			return clickhouse_store_run(s, shard, sql, NULL, reterr);
		}
		snprintf(sql, sizeof(sql), "ALTER TABLE %s.%s ADD COLUMN %s Nullable(%s)", database,
			table, d->columns[i].name, clickhouse_type(d->columns[i].type));
		r = clickhouse_store_run(s, shard, sql, NULL, reterr);
	}
	return r;
}

int clickhouse_grow(
	struct store_clickhouse *s, const char *database, const char *rows, struct errinfo *reterr)
{
	int r = 0;

	for (size_t shard = 0; r == 0 && shard < clickhouse_store_shards(s); shard++) {
		_cleanup_(sql_table_done) struct sql_table columns = {0};
		char sql[512];

		snprintf(sql, sizeof(sql),
			"SELECT table, name FROM system.columns WHERE database = '%s'", database);
		r = clickhouse_store_run(s, shard, sql, &columns, reterr);
		for (int t = 0; r == 0 && t < TABLE_COUNT; t++) {
			if (t == TABLE_METRICS)
				continue; /* computed */
			r = grow_table(s, shard, database, rows, t, &columns, reterr);
			if (r == 0)
				r = grow_table(s, shard, database, "", t, &columns, reterr);
		}
	}
	return r;
}
