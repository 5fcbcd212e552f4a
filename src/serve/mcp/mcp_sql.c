/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_sql.c - run_sql: a statement that reads, run by a process that is thrown away (sql_worker.h).
 * Values are given as they are, whatever form was asked for: compact has rows as arrays, the other
 * form as objects. */
#include "serve/mcp/mcp_tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "serve/mcp/mcp_clean.h"
#include "base/clock.h"
#include "mcp/rpc.h"
#include "sql/sql_worker.h"

#define ROWS       1000
#define TIMEOUT_NS (5 * NS_PER_S)
#define BYTES_MAX  (256u << 10) /* it is sent twice, as text and as values */
#define BLOB_SHOWN 128

static json_t *blob_json(const struct sql_table *t, const struct sql_cell *cell)
{
	const unsigned char *p = (const unsigned char *)sql_table_bytes(t, cell);
	char text[2 * BLOB_SHOWN + 1] = "";

	for (size_t i = 0; i < cell->len && i < BLOB_SHOWN; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	return json_sprintf("x'%s'%s", text, cell->len > BLOB_SHOWN ? "…" : "");
}

static json_t *cell_json(const struct sql_table *t, const struct sql_cell *cell)
{
	switch (cell->type) {
	case SQL_INT: return json_integer((json_int_t)cell->i);
	case SQL_REAL: return json_real(cell->d) ?: json_null();
	case SQL_TEXT:
		return mcp_clean_string_len(sql_table_bytes(t, cell), cell->len, MCP_CLEAN_TEXT);
	case SQL_BLOB: return blob_json(t, cell);
	default: return json_null();
	}
}

static json_t *columns_json(const struct sql_table *t)
{
	json_t *names = json_array();

	for (int c = 0; c < t->column_count; c++)
		json_array_append_new(
			names, mcp_clean_string(sql_table_name(t, c), MCP_CLEAN_NAME));
	return names;
}

static json_t *rows_json(const struct sql_table *t, const json_t *columns, bool compact)
{
	json_t *rows = json_array();

	for (size_t r = 0; r < t->row_count; r++) {
		json_t *row = compact ? json_array() : json_object();

		for (int c = 0; c < t->column_count; c++) {
			json_t *v = cell_json(t, sql_table_cell(t, r, c));

			if (compact)
				json_array_append_new(row, v);
			else
				json_object_set_new(row,
					json_string_value(json_array_get(columns, (size_t)c)), v);
		}
		json_array_append_new(rows, row);
	}
	return rows;
}

void mcp_sql_put(json_t *value, const struct sql_table *t, bool compact)
{
	json_t *columns = columns_json(t);

	json_object_set_new(value, compact ? "data" : "rows", rows_json(t, columns, compact));
	json_object_set_new(value, "columns", columns);
}

static void reply_table(
	struct answer *a, const json_t *arguments, const struct sql_table *t, uint64_t ns)
{
	bool compact = mcp_arg_compact(arguments);
	json_t *value = json_pack("{s:{s:I, s:b, s:I}}", "meta", "rows", (json_int_t)t->row_count,
		"truncated", (int)t->truncated, "duration_ms", (json_int_t)(ns / NS_PER_MS));

	mcp_sql_put(value, t, compact);
	mcp_reply_value(a, value);
	if (t->truncated)
		answer_text(
			a, "There are more rows: raise `limit`, or let SQL count and group them.");
}

void mcp_sql(const struct call *c, const json_t *arguments, struct answer *a)
{
	struct sql_guard_rules rules = {.timeout_ns = TIMEOUT_NS,
		.rows_max = (size_t)mcp_arg_int(arguments, "limit", ROWS),
		.bytes_max = BYTES_MAX};
	_cleanup_(sql_table_done) struct sql_table table = {0};
	_cleanup_buf_ struct buf hint = BUF_INIT(1 << 14), clean = BUF_INIT(1 << 12);
	mono_time begin = mono_now();
	struct errinfo e = {0};
	int r = sql_worker_ask(mcp_settings_of(c)->db, mcp_arg_text(arguments, "query"), &rules,
		&table, &hint, &e);

	if (r == 0) {
		reply_table(a, arguments, &table, mono_now().ns - begin.ns);
		return;
	}
	mcp_reply_error(a, r, &e);
	mcp_clean_put(&clean, buf_str(&hint), hint.len, MCP_CLEAN_TEXT, true);
	if (clean.len)
		answer_text(a, buf_str(&clean));
	if (r == -ETIMEDOUT)
		answer_text(a, "Add a WHERE on timestamp, or ask for fewer groups.");
}
