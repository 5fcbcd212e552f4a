/* SPDX-License-Identifier: Apache-2.0 */
/* tool_incidents.c - what went wrong and what it cost: get_cost and anomalies. What has no price is said to have
 * none; it is never counted as nothing. */

#include "base/text.h"
#include "cluster/answer/tool_private.h"
#include "model/incident.h"

#define INCIDENTS_MAX 10000

/* ---- get_cost ---- */

struct bill {
	json_t *nodes, *kinds; /* by name */
	double total, lost_ns;
	size_t priced, unpriced, own; /* own: told by nodes, of themselves */
};

static void charge(json_t *o, const struct sql_table *t, size_t row)
{
	bool priced = !tool_is_null(t, row, INCIDENT_COST);

	if (!json_object_get(o, "cost"))
		json_object_set_new(o, "cost", json_null());
	member_add_int(o, "incidents", 1);
	member_add_int(o, "unpriced", !priced);
	member_add_int(o, "lost_ns", tool_int(t, row, INCIDENT_LOST));
	if (priced)
		member_add(o, "cost", tool_real(t, row, INCIDENT_COST));
}

static void add_incident(struct bill *b, const struct sql_table *t, size_t row)
{
	const char *kind = tool_text(t, row, INCIDENT_KIND);
	json_t *k;

	if (incident_is_own(t, row)) {
		b->own++;
		return;
	}
	k = member_object(b->kinds, kind);
	json_object_set_new(k, "kind", tool_json_text(kind));
	charge(k, t, row);
	charge(member_node(b->nodes, tool_text(t, row, INCIDENT_CLUSTER),
		       tool_text(t, row, INCIDENT_NODE)),
		t, row);
	b->lost_ns += tool_real(t, row, INCIDENT_LOST);
	if (tool_is_null(t, row, INCIDENT_COST)) {
		b->unpriced++;
	} else {
		b->priced++;
		b->total += tool_real(t, row, INCIDENT_COST);
	}
}

static void say_bill(struct buf *text, const struct bill *b)
{
	if (!b->priced && !b->unpriced) {
		buf_puts(text, "No incidents of the cluster in this time range: no known loss.");
		if (b->own)
			buf_printf(text,
				" %zu were reported by nodes about themselves: these have no price.",
				b->own);
		return;
	}
	buf_printf(text, "%s cost %.1f s of the jobs' time.",
		TEXT_PLURAL(b->priced + b->unpriced, "incidents"), b->lost_ns / 1e9);
	if (b->priced)
		buf_printf(text, " Priced: %zu, %.2f USD together.", b->priced, b->total);
	if (b->unpriced)
		buf_printf(text,
			" Unpriced: %zu (`ingero rates` says how to add a price), so the sum is too low.",
			b->unpriced);
}

int tool_cost(struct tool_call *c)
{
	_cleanup_(json_decrefp) json_t *nodes = json_object(), *kinds = json_object();
	_cleanup_(sql_table_done) struct sql_table t = {0};
	struct bill b = {.nodes = nodes, .kinds = kinds};
	size_t limit = tool_limit(c, TOOL_LIMIT);
	int r = incident_ask(c, INCIDENTS_MAX, &t);

	if (r < 0)
		return r;
	for (size_t i = 0; i < t.row_count; i++)
		add_incident(&b, &t, i);
	say_bill(c->text, &b);
	return tool_put(c, "{s:s, s:o, s:b, s:I, s:I, s:I, s:I, s:o, s:o}", "currency", "USD",
		"total", b.priced ? json_real(b.total) : json_null(), "complete",
		(int)(b.unpriced == 0 && !t.truncated), "priced_incidents", (json_int_t)b.priced,
		"unpriced_incidents", (json_int_t)b.unpriced, "node_incidents", (json_int_t)b.own,
		"lost_ns", (json_int_t)b.lost_ns, "by_node", member_values(nodes, "lost_ns", limit),
		"by_kind", member_values(kinds, "lost_ns", limit));
}

/* ---- anomalies ---- */

static void put(json_t *list, json_t *o, const char *type, int64_t ts_ns)
{
	json_object_set_new(o, "type", json_string(type));
	json_object_set_new(o, "ts_ns", json_integer((json_int_t)ts_ns));
	json_object_set_new(o, "time", tool_time(ts_ns));
	json_array_append_new(list, o);
}

/* The fields that incidents got later, under their names. */
#define ADDED_KEY(NAME, form, member, column, ...)    column,
#define ADDED_COLUMN(NAME, form, member, column, ...) ", " column

/* The rows of @q, of which the first column is the time. */
static int add_rows(const struct tool_call *c, const struct tool_question *q,
	const char *const *keys, const char *type, json_t *list)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = tool_ask(c, q, &t);

	for (size_t i = 0; r == 0 && i < t.row_count; i++)
		put(list, tool_row(&t, i, keys), type, tool_int(&t, i, 0));
	return r;
}

static int add_chains(const struct tool_call *c, size_t limit, json_t *list)
{
	static const char *const keys[] = {"ts_ns", "cluster_id", "node_id", "id", "severity",
		"summary", "root_cause", "explanation", "fix", "op",
		INCIDENT_ADDED(ADDED_KEY) NULL};

	return add_rows(c,
		&(struct tool_question){
			.select =
				"SELECT detected_at, cluster_id, node_id, id, severity, summary, root_cause, "
				"explanation, recommendations, cuda_op" INCIDENT_ADDED(
					ADDED_COLUMN) " FROM {causal_chains} WHERE detected_at > 0",
			.given = "node_id",
			.then = " ORDER BY detected_at DESC",
			.limit = limit},
		keys, "causal_chain", list);
}

static int add_verdicts(const struct tool_call *c, size_t limit, json_t *list)
{
	static const char *const keys[] = {
		"ts_ns", "cluster_id", "node_id", "rank", "value", "id", NULL};

	return add_rows(c,
		&(struct tool_question){
			.select = "SELECT ts_ns, cluster_id, node_id, rank, value_double, event_id "
				  "FROM {events} WHERE",
			.metric = TOOL_STRAGGLER,
			.given = "node_id",
			.then = " ORDER BY ts_ns DESC",
			.limit = limit},
		keys, "straggler_event", list);
}

static int add_incidents(const struct tool_call *c, size_t limit, json_t *list)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = incident_ask(c, limit, &t);

	for (size_t i = 0; r == 0 && i < t.row_count; i++)
		put(list, incident_json(&t, i), "incident", tool_int(&t, i, INCIDENT_TS));
	return r;
}

static int compare_times(const void *a, const void *b)
{
	json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "ts_ns"));
	json_int_t y = json_integer_value(json_object_get(*(json_t *const *)b, "ts_ns"));

	return x == y ? 0 : x > y ? -1 : 1;
}

/* The @limit newest of @list. */
static json_t *newest(const json_t *list, size_t limit)
{
	size_t count = json_array_size(list);
	_cleanup_free_ json_t **sorted = calloc(MAX(count, (size_t)1), sizeof(json_t *));
	json_t *out = json_array();

	for (size_t i = 0; sorted && i < count; i++)
		sorted[i] = json_array_get(list, i);
	if (sorted)
		qsort(sorted, count, sizeof(json_t *), compare_times);
	for (size_t i = 0; sorted && i < count && i < limit; i++)
		json_array_append(out, sorted[i]);
	return out;
}

int tool_anomalies(struct tool_call *c)
{
	_cleanup_(json_decrefp) json_t *all = json_array();
	size_t limit = tool_limit(c, TOOL_LIMIT);
	json_t *list;
	int r = add_incidents(c, limit, all);
	const json_t *o;
	size_t i;

	if (r == 0 && !tool_arg_text(c, "kind"))
		r = add_chains(c, limit, all);
	if (r == 0 && !tool_arg_text(c, "kind"))
		r = add_verdicts(c, limit, all);
	if (r < 0)
		return r;
	list = newest(all, limit);
	buf_printf(c->text, "%s, newest first.", TEXT_PLURAL(json_array_size(list), "anomalies"));
	json_array_foreach (list, i, o) {
		const char *summary = json_string_value(json_object_get(o, "summary"));

		if (i == 5)
			break;
		buf_puts(c->text, "\n- ");
		tool_say(c->text, json_string_value(json_object_get(o, "node_id")));
		buf_puts(c->text, ": ");
		tool_say_text(
			c->text, summary ? summary : json_string_value(json_object_get(o, "type")));
	}
	return tool_put(
		c, "{s:I, s:o}", "count", (json_int_t)json_array_size(list), "anomalies", list);
}

/* Tools that show rows as they are: events, steps, and SQL. */

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
	buf_printf(c->text, "%s, newest first.", TEXT_PLURAL(t.row_count, "events"));
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
	int r = tool_limit_time(c, &limits);

	r = r ?: store_sql(c->store, &c->scope, tool_arg_text(c, "sql"), &limits, &t, c->err);
	if (r < 0)
		return r;
	tool_note_missing(c, &c->scope);
	buf_printf(c->text, "%s.", TEXT_PLURAL(t.row_count, "rows"));
	if (t.truncated)
		buf_puts(c->text, " There are more: raise limit, or let SQL count and group them.");
	return tool_put(c, "{s:o, s:o, s:I, s:b, s:I}", "columns", names_json(&t), "rows",
		cells_json(&t), "row_count", (json_int_t)t.row_count, "truncated", (int)t.truncated,
		"duration_ms", (json_int_t)((mono_now().ns - before.ns) / NS_PER_MS));
}
