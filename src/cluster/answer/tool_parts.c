/* SPDX-License-Identifier: Apache-2.0 */
/* tool_parts.c - parts of several tools' answers: see tool_private.h. */
#include "base/text.h"
#include "cluster/answer/tool_private.h"

#define KEY_MAX 512 /* of cluster and node together */

/* ---- scores ---- */

int score_ask(const struct tool_call *c, struct sql_table *ret)
{
	return tool_ask(c,
		&(struct tool_question){
			.select =
				"SELECT cluster_id, node_id, {last:\"last\":last_ns} AS newest, "
				"min(\"min\") AS least, sum(\"count\") AS points, max(last_ns) AS seen "
				"FROM {node_metrics} WHERE " TOOL_IS_SCORE,
			.given = "node_id",
			.then = " GROUP BY cluster_id, node_id ORDER BY least",
			.from_minute = true},
		ret);
}

/* ---- incidents ---- */

#define FIELD_ASKED(NAME, form, member, name, meaning) ", {last:" name ":ts_ns} AS its_" name
#define FIELD_NAME(NAME, form, member, name, meaning)  name,

int incident_ask(const struct tool_call *c, size_t limit, struct sql_table *ret)
{
	return tool_ask(c,
		&(struct tool_question){
			.select =
				"SELECT cluster_id, node_id, id, kind, {last:source:ts_ns} AS origin, "
				"{last:rank:ts_ns} AS who, {last:summary:ts_ns} AS said, "
				"{last:root_cause:ts_ns} AS why, {last:fix:ts_ns} AS mend, "
				"{last:confidence:ts_ns} AS sure, max(lost_ns) AS lost, max(cost) AS money, "
				"max(resolved) AS over, min(ts_ns) AS first, max(ts_ns) AS newest" EPISODE_FIELDS(
					FIELD_ASKED) " FROM {incidents} WHERE ts_ns > 0",
			.given = "node_id kind",
			.then = " GROUP BY cluster_id, node_id, id, kind ORDER BY newest DESC",
			.limit = limit},
		ret);
}

json_t *incident_json(const struct sql_table *t, size_t row)
{
	static const char *const keys[] = {"cluster_id", "node_id", "id", "kind", "source", "rank",
		"summary", "root_cause", "fix", "confidence", "lost_ns", "cost", NULL};
	static const char *const fields[] = {EPISODE_FIELDS(FIELD_NAME) NULL};
	json_t *o = tool_row(t, row, keys);

	for (int i = 0; fields[i]; i++)
		if (!tool_is_null(t, row, INCIDENT_FIELD + i))
			json_object_set_new(o, fields[i], tool_cell(t, row, INCIDENT_FIELD + i));
	json_object_set_new(o, "resolved", json_boolean(tool_int(t, row, INCIDENT_RESOLVED)));
	json_object_set_new(o, "since", tool_time(tool_int(t, row, INCIDENT_BEGIN)));
	json_object_set_new(o, "time", tool_time(tool_int(t, row, INCIDENT_TS)));
	return o;
}

bool incident_is_own(const struct sql_table *t, size_t row)
{
	return tool_same(t, row, INCIDENT_SOURCE, "node");
}

/* ---- counters ---- */

int growth_ask(const struct tool_call *c, const char *const *metrics, struct sql_table *ret)
{
	_cleanup_buf_ struct buf q = BUF_INIT(TOOL_QUESTION);

	buf_puts(&q, "SELECT cluster_id, node_id, metric_name, attrs, "
		     "CASE WHEN max(kind) = 'delta' THEN sum(value_double) "
		     "ELSE max(value_double) - min(value_double) END AS grew, "
		     "CASE WHEN max(kind) = 'delta' THEN sum(value_int) "
		     "ELSE max(value_int) - min(value_int) END AS times, "
		     "min(ts_ns) AS first, max(ts_ns) AS newest, count(*) AS points, "
		     "max(value_double) AS most FROM {events} WHERE metric_name IN (");
	for (size_t i = 0; metrics[i]; i++) {
		buf_puts(&q, i ? ", " : "");
		store_quote(&q, metrics[i]);
	}
	buf_puts(&q, ")");
	return tool_ask(c,
		&(struct tool_question){.select = buf_str(&q),
			.given = "node_id",
			.then = " GROUP BY cluster_id, node_id, metric_name, attrs"},
		ret);
}

double growth_seconds(const struct sql_table *t, size_t row)
{
	return (double)(tool_int(t, row, GROWTH_LAST) - tool_int(t, row, GROWTH_FIRST)) / 1e9;
}

void growth_attribute(
	const struct sql_table *t, size_t row, const char *key, char *out, size_t size)
{
	json_t *o = json_loads(tool_text(t, row, GROWTH_ATTRIBUTES), 0, NULL);
	const json_t *v = json_object_get(o, key);

	out[0] = 0;
	if (json_is_string(v))
		snprintf(out, size, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(out, size, "%lld", (long long)json_integer_value(v));
	json_decref(o);
}

/* ---- objects by name ---- */

json_t *member_object(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	if (!v && json_object_set_new(o, key, json_object()) == 0)
		v = json_object_get(o, key);
	return v;
}

json_t *member_node(json_t *nodes, const char *cluster, const char *node)
{
	char key[KEY_MAX];
	json_t *o;

	snprintf(key, sizeof(key), "%s\n%s", cluster, node);
	o = json_object_get(nodes, key);
	if (o)
		return o;
	o = member_object(nodes, key);
	json_object_set_new(o, "cluster_id", tool_json_text(cluster));
	json_object_set_new(o, "node_id", tool_json_text(node));
	return o;
}

double member_real(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

void member_add(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, json_real(member_real(o, key) + v));
}

void member_add_int(json_t *o, const char *key, json_int_t v)
{
	json_object_set_new(o, key, json_integer(json_integer_value(json_object_get(o, key)) + v));
}

struct named {
	const char *name;
	json_t *value;
};

/* Equal ones by name, so that an answer does not depend on the order of rows. */
static int compare_members(const void *a, const void *b, void *key)
{
	const struct named *m = a, *n = b;
	double x = member_real(m->value, key), y = member_real(n->value, key);

	return x == y ? strcmp(m->name, n->name) : x > y ? -1 : 1;
}

json_t *member_values(json_t *o, const char *key, size_t limit)
{
	size_t n = 0, count = json_object_size(o);
	_cleanup_free_ struct named *sorted = calloc(MAX(count, (size_t)1), sizeof(*sorted));
	json_t *out = json_array(), *one;
	const char *name;

	if (!sorted) {
		json_decref(out);
		return NULL;
	}
	json_object_foreach (o, name, one)
		sorted[n++] = (struct named){name, one};
	qsort_r(sorted, n, sizeof(*sorted), compare_members, (void *)key);
	for (size_t i = 0; i < n && i < limit; i++)
		json_array_append(out, sorted[i].value);
	return out;
}

/* ---- what there is and how it is doing: the first thing to ask. Numbers come from the roll-ups,
 * so that an hour of a large cluster is answered at once. */

#define SILENT_NS (60 * (int64_t)NS_PER_S)
#define WORST     10
#define INCIDENTS 1000

struct summary {
	struct tool_call *call;
	json_t *clusters, *nodes; /* objects by name */
};

enum { CLUSTER, NODE, COUNT, SEEN, RATED, LEAST, NEWEST };

/* What nodes have sent, a row each. Points and scores in one question: minutes that are not sealed yet are made
 * for each. */
static const struct {
	const char *counted;
	struct tool_question question;
} sent[] = {
	{"points",
		{.select = "SELECT cluster_id, node_id, sum(\"count\") AS points, max(last_ns) AS seen, "
			   "CASE WHEN " TOOL_IS_SCORE " THEN 1 ELSE 0 END AS rated, "
			   "min(\"min\") AS least, {last:\"last\":last_ns} AS newest "
			   "FROM {node_metrics} GROUP BY cluster_id, node_id, rated ORDER BY seen DESC",
			.from_minute = true}},
	{"collectives",
		{.select = "SELECT cluster_id, node_id, count(*) AS n, max(enter_ns) AS seen "
			   "FROM {collectives} GROUP BY cluster_id, node_id ORDER BY seen DESC"}},
	{"causal_chains",
		{.select = "SELECT cluster_id, node_id, count(*) AS n FROM {causal_chains} "
			   "GROUP BY cluster_id, node_id"}},
};

static int add_sent(struct summary *u, size_t which)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = tool_ask(u->call, &sent[which].question, &t);

	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		json_t *n =
			member_node(u->nodes, tool_text(&t, i, CLUSTER), tool_text(&t, i, NODE));

		member_add_int(n, sent[which].counted, tool_int(&t, i, COUNT));
		if (t.column_count > SEEN) {
			json_int_t seen = json_integer_value(json_object_get(n, "last_ns"));

			json_object_set_new(n, "last_ns",
				json_integer(MAX(seen, (json_int_t)tool_int(&t, i, SEEN))));
		}
		if (t.column_count <= RATED || !tool_int(&t, i, RATED))
			continue;
		json_object_set_new(n, "lowest_score", json_real(tool_real(&t, i, LEAST)));
		json_object_set_new(n, "score", json_real(tool_real(&t, i, NEWEST)));
	}
	return r;
}

static json_t *cluster_of(struct summary *u, const char *name)
{
	static const char *const counts[] = {"nodes", "silent_nodes", "low_nodes", "points",
		"collectives", "causal_chains", "incidents", "open_incidents", "node_incidents",
		"lost_ns"};
	json_t *c = json_object_get(u->clusters, name);

	if (c)
		return c;
	c = member_object(u->clusters, name);
	json_object_set_new(c, "cluster_id", tool_json_text(name));
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		json_object_set_new(c, counts[i], json_integer(0));
	json_object_set_new(c, "cost", json_null());
	return c;
}

static int add_incidents(struct summary *u)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = incident_ask(u->call, INCIDENTS, &t);

	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		json_t *c = cluster_of(u, tool_text(&t, i, INCIDENT_CLUSTER));

		if (incident_is_own(&t, i)) {
			member_add_int(c, "node_incidents", 1);
			continue;
		}
		member_add_int(c, "incidents", 1);
		member_add_int(c, "open_incidents", !tool_int(&t, i, INCIDENT_RESOLVED));
		member_add_int(c, "lost_ns", tool_int(&t, i, INCIDENT_LOST));
		if (!tool_is_null(&t, i, INCIDENT_COST))
			member_add(c, "cost", tool_real(&t, i, INCIDENT_COST));
	}
	return r;
}

/* Nodes into their clusters; "badness" orders the worst first: by the lowest score, then by the last. */
static void fold_nodes(struct summary *u)
{
	const char *key;
	json_t *n;

	json_object_foreach (u->nodes, key, n) {
		json_t *c = cluster_of(u, json_string_value(json_object_get(n, "cluster_id")));
		json_int_t seen = json_integer_value(json_object_get(n, "last_ns"));
		json_t *score = json_object_get(n, "lowest_score");
		bool silent = seen && u->call->now_ns - seen > SILENT_NS;

		member_add_int(c, "nodes", 1);
		member_add_int(c, "silent_nodes", silent);
		member_add_int(c, "low_nodes", score && json_real_value(score) < TOOL_LOW_SCORE);
		for (size_t i = 0; i < ARRAY_SIZE(sent); i++)
			member_add_int(c, sent[i].counted,
				json_integer_value(json_object_get(n, sent[i].counted)));
		json_object_set_new(n, "silent", json_boolean(silent));
		json_object_set_new(n, "last_seen", tool_time((int64_t)seen));
		json_object_set_new(n, "badness",
			json_real(score ? 3 - json_real_value(score) - member_real(n, "score") / 100
				  : silent ? 1
					   : 0));
		json_object_del(n, "last_ns");
	}
}

static void say_worst(struct buf *text, const json_t *worst)
{
	const json_t *n;
	size_t i, said = 0;

	json_array_foreach (worst, i, n) {
		const json_t *low = json_object_get(n, "lowest_score");

		if (!low || json_real_value(low) >= TOOL_LOW_SCORE || said == 3)
			break;
		buf_puts(text, said++ ? "; " : " Lowest health: ");
		tool_say(text, json_string_value(json_object_get(n, "node_id")));
		buf_printf(text, " (score %.2f, now %.2f)", json_real_value(low),
			member_real(n, "score"));
	}
	buf_puts(text, said ? "." : "");
}

static void say(struct buf *text, const json_t *clusters, const json_t *worst)
{
	char incidents[TEXT_PLURAL_MAX];
	const json_t *c;
	size_t i;

	if (!json_array_size(clusters))
		buf_puts(text,
			"No data in this time range: use a longer since, or check that nodes send to this service.");
	json_array_foreach (clusters, i, c) {
		buf_puts(text, i ? " Cluster " : "Cluster ");
		tool_say(text, json_string_value(json_object_get(c, "cluster_id")));
		buf_printf(text, ": %s, %.0f silent, %.0f with a low score, %s, %.0f of them open.",
			TEXT_PLURAL((uint64_t)member_real(c, "nodes"), "nodes"),
			member_real(c, "silent_nodes"), member_real(c, "low_nodes"),
			text_format_plural(
				incidents, (uint64_t)member_real(c, "incidents"), "incidents"),
			member_real(c, "open_incidents"));
	}
	say_worst(text, worst);
	if (json_array_size(clusters))
		buf_puts(text, " Next: find_stragglers says who is late and why.");
}

static int fold(struct summary *u)
{
	json_t *clusters, *worst, *n;
	size_t i;

	fold_nodes(u);
	clusters = member_values(u->clusters, "nodes", SIZE_MAX);
	worst = member_values(u->nodes, "badness", WORST);
	say(u->call->text, clusters, worst);
	json_array_foreach (worst, i, n)
		json_object_del(n, "badness");
	return tool_put(u->call, "{s:o, s:o, s:f}", "clusters", clusters, "worst_nodes", worst,
		"low_score", TOOL_LOW_SCORE);
}

int tool_summary(struct tool_call *c)
{
	_cleanup_(json_decrefp) json_t *clusters = json_object(), *nodes = json_object();
	struct summary u = {.call = c, .clusters = clusters, .nodes = nodes};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sent); i++)
		r = add_sent(&u, i);
	r = r ?: add_incidents(&u);
	return r ?: fold(&u);
}
