/* SPDX-License-Identifier: Apache-2.0 */
/* tool_summary.c - what there is and how it is doing: the first thing to ask. Numbers come from the roll-ups,
 * so that an hour of a large cluster is answered at once. */

#include "cluster/answer/tool_private.h"

#define SILENT_NS (60 * (int64_t)NS_PER_S)
#define WORST     10
#define INCIDENTS 1000

struct summary {
	struct tool_call *call;
	json_t *clusters, *nodes; /* objects by name */
};

static void see(json_t *node, int64_t ts_ns)
{
	json_int_t seen = json_integer_value(json_object_get(node, "last_ns"));

	json_object_set_new(node, "last_ns", json_integer(MAX(seen, (json_int_t)ts_ns)));
}

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
		if (t.column_count > SEEN)
			see(n, tool_int(&t, i, SEEN));
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
	const json_t *c;
	size_t i;

	if (!json_array_size(clusters))
		buf_puts(text,
			"No data in this time range: use a longer since, or check that nodes send to this service.");
	json_array_foreach (clusters, i, c) {
		buf_puts(text, i ? " Cluster " : "Cluster ");
		tool_say(text, json_string_value(json_object_get(c, "cluster_id")));
		buf_printf(text,
			": %.0f nodes, %.0f silent, %.0f with a low score, %.0f open of %.0f "
			"incidents.",
			member_real(c, "nodes"), member_real(c, "silent_nodes"),
			member_real(c, "low_nodes"), member_real(c, "open_incidents"),
			member_real(c, "incidents"));
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
	if (r == 0)
		r = add_incidents(&u);
	return r == 0 ? fold(&u) : r;
}
