/* SPDX-License-Identifier: Apache-2.0 */
/* tool_history.c - tools that show rows as they are: events, steps, and SQL. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cluster/answer/tool_private.h"

#define SQL_ROWS  1000
#define SQL_BYTES (8u << 20)

/* ---- event_history ---- */

/* Attributes are a JSON object; what is none stays a text. */
static void open_attributes(json_t *row)
{
	const char *text = json_string_value(json_object_get(row, "attrs"));
	json_t *o = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (json_is_object(o))
		json_object_set_new(row, "attrs", o);
	else
		json_decref(o);
}

static void put_time(json_t *row, const char *key)
{
	json_object_set_new(
		row, "time", tool_time((int64_t)json_integer_value(json_object_get(row, key))));
}

int tool_history(struct tool_call *c)
{
	static const char *const keys[] = {"ts_ns", "cluster_id", "node_id", "rank", "nranks",
		"metric_name", "kind", "value_double", "value_int", "unit", "body", "attrs",
		"event_id", "causal_chain_id", "severity", NULL};
	_cleanup_(sql_table_done) struct sql_table t = {0};
	json_t *events, *row;
	char n[TEXT_PLURAL_MAX];
	size_t i;
	int r = tool_ask(c,
		&(struct tool_question){
			.select =
				"SELECT ts_ns, cluster_id, node_id, rank, nranks, metric_name, kind, "
				"value_double, value_int, unit, body, attrs, event_id, causal_chain_id, "
				"severity FROM {events} WHERE ts_ns > 0",
			.given = "node_id metric_name kind causal_chain_id event_id",
			.then = " ORDER BY ts_ns DESC, node_id, metric_name",
			.limit = tool_limit(c, TOOL_LIMIT)},
		&t);

	if (r < 0)
		return r;
	events = tool_rows(&t, keys);
	json_array_foreach (events, i, row) {
		put_time(row, "ts_ns");
		open_attributes(row);
	}
	buf_printf(c->text, "%s, newest first.", text_format_plural(n, t.row_count, "events"));
	if (!t.row_count)
		buf_puts(c->text,
			" Nothing matches in this time range: use a longer since, or fewer filters.");
	return tool_put(c, "{s:I, s:o}", "count", (json_int_t)t.row_count, "events", events);
}

/* ---- steps ---- */

int tool_steps(struct tool_call *c)
{
	static const char *const keys[] = {"cluster_id", "node_id", "rank", "pid", "ts_ns",
		"step_ns", "ordinary_ns", "line", "line_ns", "doing", "doing_where", "reports",
		NULL};
	_cleanup_(sql_table_done) struct sql_table t = {0};
	json_t *steps, *row;
	size_t i;
	int r = tool_ask(c,
		&(struct tool_question){
			.select =
				"SELECT cluster_id, node_id, rank, pid, max(ts_ns) AS newest, "
				"{last:step_ns:ts_ns} AS slow, {last:ordinary_ns:ts_ns} AS usual, "
				"{last:line:ts_ns} AS which, {last:line_ns:ts_ns} AS grew, "
				"{last:doing:ts_ns} AS what, {last:doing_where:ts_ns} AS place, "
				"count(*) AS reports FROM {steps} WHERE ts_ns > 0",
			.given = "node_id",
			.then = " GROUP BY cluster_id, node_id, rank, pid ORDER BY slow DESC",
			.limit = tool_limit(c, TOOL_LIMIT)},
		&t);

	if (r < 0)
		return r;
	steps = tool_rows(&t, keys);
	json_array_foreach (steps, i, row)
		put_time(row, "ts_ns");
	buf_printf(c->text, "%zu ranks have reported steps.", t.row_count);
	if (t.row_count) {
		buf_puts(c->text, " The slowest is on ");
		tool_say(c->text, tool_text(&t, 0, 1));
		buf_printf(c->text, ": %.1f ms instead of %.1f ms", tool_real(&t, 0, 5) / 1e6,
			tool_real(&t, 0, 6) / 1e6);
		if (tool_text(&t, 0, 7)[0]) {
			buf_puts(c->text, ", most of it ");
			tool_say(c->text, tool_text(&t, 0, 7));
		}
		buf_puts(c->text, ".");
	}
	return tool_put(c, "{s:o}", "steps", steps);
}

/* ---- run_analysis ---- */

static json_t *names_json(const struct sql_table *t)
{
	json_t *names = json_array();

	for (int i = 0; i < t->column_count; i++)
		json_array_append_new(names, tool_json_text(sql_table_name(t, i)));
	return names;
}

static json_t *cells_json(const struct sql_table *t)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < t->row_count; i++) {
		json_t *row = json_array();

		for (int k = 0; k < t->column_count; k++)
			json_array_append_new(row, tool_cell(t, i, k));
		json_array_append_new(rows, row);
	}
	return rows;
}

int tool_analysis(struct tool_call *c)
{
	struct store_limits limits = {.rows_max = tool_limit(c, SQL_ROWS),
		.bytes_max = SQL_BYTES,
		.timeout_ns = 10 * NS_PER_S};
	_cleanup_(sql_table_done) struct sql_table t = {0};
	mono_time before = mono_now();
	char n[TEXT_PLURAL_MAX];
	int r = tool_limit_time(c, &limits);

	if (r == 0)
		r = store_sql(c->store, &c->scope, tool_arg_text(c, "sql"), &limits, &t, c->err);
	if (r < 0)
		return r;
	tool_note_missing(c, &c->scope);
	buf_printf(c->text, "%s.", text_format_plural(n, t.row_count, "rows"));
	if (t.truncated)
		buf_puts(c->text, " There are more: raise limit, or let SQL count and group them.");
	return tool_put(c, "{s:o, s:o, s:I, s:b, s:I}", "columns", names_json(&t), "rows",
		cells_json(&t), "row_count", (json_int_t)t.row_count, "truncated", (int)t.truncated,
		"duration_ms", (json_int_t)((mono_now().ns - before.ns) / NS_PER_MS));
}
