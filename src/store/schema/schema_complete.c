/* SPDX-License-Identifier: Apache-2.0 */
/* schema_complete.c - early files of our own schema get what later versions have added. A model of
 * the present schema is made in memory and compared with the file: there is no list of changes to
 * keep. */
#include <stdio.h>

#include "store/schema/schema.h"

static int has_row(
	sql_db *db, const char *sql, const char *first, const char *second, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(db, sql, &stmt, reterr);

	if (r < 0)
		return r;
	r = SQL_BIND(stmt, reterr, SQL_S(first), SQL_S(second));
	return r < 0 ? r : sql_step(stmt, reterr);
}

static int add_columns(sql_db *db, sql_db *model, const char *table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *columns = NULL;
	int r = sql_prepare(model,
		"SELECT name, type || CASE WHEN \"notnull\" THEN ' NOT NULL' ELSE '' END ||"
		" coalesce(' DEFAULT ' || dflt_value, '') FROM pragma_table_xinfo(?1)"
		" WHERE hidden = 0",
		&columns, reterr);

	if (r >= 0)
		r = SQL_BIND(columns, reterr, SQL_S(table));
	while (r >= 0 && (r = sql_step(columns, reterr)) > 0) {
		const char *name = sql_column_text(columns, 0, NULL);
		char sql[256];

		r = has_row(db, "SELECT 1 FROM pragma_table_xinfo(?1) WHERE name = ?2", table, name,
			reterr);
		if (r != 0)
			continue;
		snprintf(sql, sizeof(sql), "ALTER TABLE %s ADD COLUMN %s %s", table, name,
			sql_column_text(columns, 1, NULL));
		r = sql_exec(db, sql, reterr);
	}
	return r;
}

static int add_objects(sql_db *db, sql_db *model, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *objects = NULL;
	int r = sql_prepare(model,
		"SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
		" AND name NOT LIKE 'sqlite_%' ORDER BY type = 'index'",
		&objects, reterr);

	while (r >= 0 && (r = sql_step(objects, reterr)) > 0) {
		const char *type = sql_column_text(objects, 0, NULL);
		const char *name = sql_column_text(objects, 1, NULL);

		r = has_row(db, "SELECT 1 FROM sqlite_schema WHERE type = ?1 AND name = ?2", type,
			name, reterr);
		if (r == 0)
			r = sql_exec(db, sql_column_text(objects, 2, NULL), reterr);
		else if (r > 0 && !strcmp(type, "table"))
			r = add_columns(db, model, name, reterr);
	}
	return r;
}

int schema_complete(sql_db *db, struct errinfo *reterr)
{
	static const char described[] = "SELECT (SELECT count(*) FROM sources) + (SELECT count(*)"
					" FROM ops) + (SELECT count(*) + sum(length(value))"
					" FROM schema_info WHERE key <> 'last_seq')";
	_cleanup_(sql_closep) sql_db *model = NULL;
	int64_t rows, wanted;
	int r = sql_open_memory(&model, reterr);

	if (r < 0)
		return r;
	r = schema_create(model, reterr);
	if (r < 0)
		return r;
	r = add_objects(db, model, reterr);
	if (r < 0)
		return r;
	r = sql_get_int(db, described, &rows, reterr);
	if (r < 0)
		return r;
	r = sql_get_int(model, described, &wanted, reterr);
	if (r < 0)
		return r;
	return rows == wanted ? 0 : schema_describe(db, reterr);
}
