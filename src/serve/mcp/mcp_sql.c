/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_sql.c - run_sql: a statement that reads, run by a process that is thrown away (sql_worker.h).
 * Values are given as they are. */
#include "serve/mcp/mcp_tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "serve/mcp/mcp_clean.h"
#include "base/clock.h"
#include "base/text.h"
#include "sql/sql_worker.h"

#define ROWS       1000
#define TIMEOUT_NS (5 * NS_PER_S)
#define BYTES_MAX  (512u << 10)
#define BLOB_SHOWN 128

static void put_blob(struct json_writer *w, const struct sql_table *t, const struct sql_cell *cell)
{
	const unsigned char *p = (const unsigned char *)sql_table_bytes(t, cell);
	char text[2 * BLOB_SHOWN + 16] = "x'";

	size_t shown = MIN(cell->len, (size_t)BLOB_SHOWN);

	for (size_t i = 0; i < shown; i++)
		snprintf(text + 2 + 2 * i, 3, "%02x", p[i]);
	snprintf(text + 2 + 2 * shown, 8, "%s", cell->len > shown ? "'…" : "'");
	json_put_string(w, text);
}

void mcp_put_table(struct json_writer *w, const struct sql_table *t)
{
	json_begin_array_member(w, "columns");
	for (int c = 0; c < t->column_count; c++)
		json_put_string(w, sql_table_name(t, c));
	json_end_array(w);
	json_begin_array_member(w, "rows");
	for (size_t r = 0; r < t->row_count; r++) {
		json_begin_array(w);
		for (int c = 0; c < t->column_count; c++)
			if (sql_table_cell(t, r, c)->type == SQL_BLOB)
				put_blob(w, t, sql_table_cell(t, r, c));
			else
				table_cell(w, t, r, c);
		json_end_array(w);
	}
	json_end_array(w);
	json_bool_member(w, "truncated", t->truncated);
}

static void reply_table(struct answer *a, const struct sql_table *t, uint64_t ns)
{
	_cleanup_buf_ struct buf say = BUF_INIT(256);
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);
	char n[TEXT_PLURAL_MAX];

	json_begin_object(&w);
	mcp_put_table(&w, t);
	json_double_member(&w, "duration_ms", (double)ns / (double)NS_PER_MS);
	json_end_object(&w);
	json_finish(&w);
	buf_printf(&say, "%s.%s", text_format_plural(n, t->row_count, "rows"),
		t->truncated
			? " There are more rows: raise `limit`, or let SQL count and group them."
			: "");
	mcp_reply(a, tree.root, &say);
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
	int r = sql_worker_ask(
		mcp_settings_of(c)->db, mcp_arg_text(arguments, "sql"), &rules, &table, &hint, &e);

	if (r == 0) {
		reply_table(a, &table, mono_now().ns - begin.ns);
		return;
	}
	mcp_reply_error(a, r, &e);
	mcp_clean_put(&clean, buf_str(&hint), hint.len, MCP_CLEAN_TEXT, true);
	if (clean.len)
		answer_text(a, buf_str(&clean));
	if (r == -ETIMEDOUT)
		answer_text(a, "Add a WHERE on timestamp, or ask for fewer groups.");
}
