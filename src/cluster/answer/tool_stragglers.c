/* SPDX-License-Identifier: Apache-2.0 */
/* tool_stragglers.c - nodes that hold others up, by three independent witnesses: their health score, who came
 * late to collectives, and what the cluster has told as an incident. Who only waited for others is not
 * among them. */
#include <math.h>

#include "base/search.h"
#include "base/text.h"
#include "cluster/answer/tool_private.h"

#define INCIDENTS 1000

/* A node's weight is the sum of what speaks against it; each is about 1. */
#define BLAMED_WEIGHT   1.0 /* and the share of the job's time */
#define LATE_WEIGHT     0.5
#define INCIDENT_WEIGHT 0.75 /* of an open one */
#define OVER_WEIGHT     0.25

struct search {
	struct tool_call *call;
	double threshold;
	json_t *nodes; /* by cluster and node */
	size_t scores; /* of so many nodes: looked at, as calls */
	size_t calls;
	bool is_cut;
};

static json_t *member_array(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	if (!v && json_object_set_new(o, key, json_array()) == 0)
		v = json_object_get(o, key);
	return v;
}

static bool has_reason(const json_t *node, const char *reason)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(node, "reasons"), i, one)
		if (!strcmp(json_string_value(one), reason))
			return true;
	return false;
}

static void add_reason(json_t *node, const char *reason, double weight)
{
	member_add(node, "weight", weight);
	if (!has_reason(node, reason))
		json_array_append_new(member_array(node, "reasons"), json_string(reason));
}

/* ---- health ---- */

/* How many points of the nodes found are low: of these alone single points are read. */
static int count_low(struct search *s)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	_cleanup_buf_ struct buf q = BUF_INIT(TOOL_QUESTION - 64);
	bool any = false;
	const char *key;
	json_t *n;
	int r;

	buf_printf(&q,
		"SELECT cluster_id, node_id, count(*) AS n, min(ts_ns) AS first FROM {events} "
		"WHERE %s AND value_double < %.17g AND node_id IN (",
		TOOL_IS_SCORE, s->threshold);
	json_object_foreach (s->nodes, key, n) {
		buf_puts(&q, any ? ", " : "");
		store_quote(&q, json_string_value(json_object_get(n, "node_id")));
		any = true;
	}
	if (!any || q.err) /* so many that nobody counts their points */
		return 0;
	r = tool_ask(s->call,
		&(struct tool_question){.select = buf_str(&q),
			.then = ") GROUP BY cluster_id, node_id",
			.from_minute = true},
		&t);
	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		json_t *o = member_node(s->nodes, tool_text(&t, i, 0), tool_text(&t, i, 1));
		json_t *score = json_object_get(o, "score");

		json_object_set_new(score, "low_points", json_integer(tool_int(&t, i, 2)));
		json_object_set_new(score, "since", tool_time(tool_int(&t, i, 3)));
	}
	return r;
}

static int add_low(struct search *s)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = score_ask(s->call, &t);

	s->scores = t.row_count;
	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		double least = tool_real(&t, i, SCORE_MIN), last = tool_real(&t, i, SCORE_LAST);
		json_t *n;

		if (tool_is_null(&t, i, SCORE_MIN) || least >= s->threshold)
			continue;
		n = member_node(
			s->nodes, tool_text(&t, i, SCORE_CLUSTER), tool_text(&t, i, SCORE_NODE));
		json_object_set_new(n, "score",
			json_pack("{s:f, s:f, s:I, s:b}", "last", last, "min", least, "points",
				(json_int_t)tool_int(&t, i, SCORE_POINTS), "low_now",
				(int)(last < s->threshold)));
		add_reason(n, "low_score", (1 - least) * (last < s->threshold ? 1 : 0.5));
	}
	return r ?: count_low(s);
}

/* ---- collectives ---- */

/* The node of @w, if its score is all that speaks against it; NULL: it is not, or nothing does. */
static const json_t *low_only(
	const struct search *s, const struct late *l, const struct worker_view *w)
{
	const json_t *n;

	n = json_object_get(s->nodes, FORMATTED(512, "%s\n%s", l->cluster, w->node));
	return json_object_get(n, "score") && json_array_size(json_object_get(n, "reasons")) == 1
		       ? n
		       : NULL;
}

/* Counts by node the ranks, and those that wait by as much as its score fell, for one of their own job that is late.
 * @has_late by job. */
static void count_waiting(const struct search *s, const struct late *l,
	const struct calls_jobs *jobs, const bool *has_late, json_t *ret)
{
	struct worker_view w;
	size_t cursor = 0;

	while (calls_worker_next(l->calls, &cursor, &w)) {
		const json_t *n = low_only(s, l, &w);
		uint32_t job = jobs->of[w.worker];
		json_t *ranks;

		if (!n)
			continue;
		ranks = member_node(ret, l->cluster, w.node);
		member_add(ranks, "ranks", 1);
		if (job != CALLS_NO_JOB && has_late[job] &&
			(double)w.waited_ns >=
				(1 - member_real(json_object_get(n, "score"), "min")) *
					(double)MAX(l->blame.span_ns, UINT64_C(1)))
			member_add(ranks, "waiting", 1);
	}
}

/* A node whose score is low because all its ranks wait is no straggler; where some do, that is said. */
static int drop_victims(struct search *s, const struct late *l)
{
	_cleanup_(calls_jobs_done) struct calls_jobs jobs = {0};
	_cleanup_(json_decrefp) json_t *waits = json_object();
	_cleanup_free_ bool *has_late = NULL;
	struct worker_view w;
	size_t cursor = 0;
	const char *key;
	json_t *ranks;
	int r = calls_jobs(l->calls, &jobs);

	has_late = r < 0 ? NULL : calloc(jobs.count + 1, sizeof(*has_late));
	if (!has_late)
		return -ENOMEM;
	while (calls_worker_next(l->calls, &cursor, &w))
		if (jobs.of[w.worker] != CALLS_NO_JOB && late_suspect(l, &w))
			has_late[jobs.of[w.worker]] = true;
	count_waiting(s, l, &jobs, has_late, waits);
	json_object_foreach (waits, key, ranks) {
		double waiting = member_real(ranks, "waiting");

		if (waiting >= member_real(ranks, "ranks"))
			json_object_del(s->nodes, key);
		else if (waiting > 0)
			add_reason(json_object_get(s->nodes, key), "waits", 0);
	}
	return 0;
}

static void add_worker(struct search *s, const struct late *l, const struct worker_view *w)
{
	const struct blame_suspect *x = late_suspect(l, w);
	json_t *n;

	if (!x && (!late_is_often_last(w) || late_is_cleared(l, w)))
		return;
	n = member_node(s->nodes, l->cluster, w->node);
	json_array_append_new(member_array(n, "ranks"), late_json(l, w));
	add_reason(n, x ? "blamed" : "late",
		x ? BLAMED_WEIGHT + x->share
		  : LATE_WEIGHT * (double)w->last_count / (double)w->calls);
}

static int add_late(struct search *s)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	const char *node = tool_arg_text(s->call, "node_id");
	int r = late_clusters(s->call, &t);

	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		struct late l;
		struct worker_view w;
		size_t cursor = 0;

		r = late_load(&l, s->call, tool_text(&t, i, 0), LATE_CALLS_MAX / t.row_count);
		while (r == 0 && calls_worker_next(l.calls, &cursor, &w))
			if (!node || !strcmp(node, w.node))
				add_worker(s, &l, &w);
		r = r < 0 ? r : drop_victims(s, &l);
		s->calls += l.rows;
		s->is_cut |= l.is_cut;
		late_done(&l);
	}
	return r;
}

/* ---- incidents ---- */

static bool is_straggling(const char *kind)
{
	static const char *const kinds[] = {"straggler", "slow", "slow_node", "slow_stage", "hang"};

	return EXISTS(i, ARRAY_SIZE(kinds), !strcmp(kind, kinds[i]));
}

/* An incident of another kind makes nobody a straggler, but says why one is. */
static int add_incidents(struct search *s)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = incident_ask(s->call, INCIDENTS, &t);

	for (size_t i = 0; r == 0 && i < t.row_count; i++)
		if (!incident_is_own(&t, i) && is_straggling(tool_text(&t, i, INCIDENT_KIND)) &&
			tool_text(&t, i, INCIDENT_NODE)[0])
			add_reason(member_node(s->nodes, tool_text(&t, i, INCIDENT_CLUSTER),
					   tool_text(&t, i, INCIDENT_NODE)),
				"incident",
				tool_int(&t, i, INCIDENT_RESOLVED) ? OVER_WEIGHT : INCIDENT_WEIGHT);
	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		json_t *n;

		n = json_object_get(
			s->nodes, FORMATTED(512, "%s\n%s", tool_text(&t, i, INCIDENT_CLUSTER),
					  tool_text(&t, i, INCIDENT_NODE)));
		if (n)
			json_array_append_new(member_array(n, "incidents"), incident_json(&t, i));
	}
	return r;
}

/* ---- the answer ---- */

static void say_node(struct buf *text, const json_t *n)
{
	const json_t *score = json_object_get(n, "score");
	const json_t *rank = json_array_get(json_object_get(n, "ranks"), 0);
	const json_t *incident = json_array_get(json_object_get(n, "incidents"), 0);
	const char *why = json_string_value(json_object_get(incident, "root_cause"));
	const char *sep = ": ";

	buf_puts(text, "\n- ");
	tool_say(text, json_string_value(json_object_get(n, "node_id")));
	if (score) {
		buf_printf(text, "%shealth score down to %.2f, now %.2f%s", sep,
			member_real(score, "min"), member_real(score, "last"),
			has_reason(n, "waits") ? ", some of its ranks wait for a late one" : "");
		sep = "; ";
	}
	if (rank) {
		const json_t *number = json_object_get(rank, "rank");
		const char *said = json_string_value(json_object_get(rank, "text"));

		buf_puts(text, sep);
		if (number && !said)
			buf_printf(text, "rank %lld ", (long long)json_integer_value(number));
		if (said)
			tool_say_text(text, said);
		else
			buf_printf(text, "last in %.0f of %.0f collectives, by %.1f ms (median)",
				member_real(rank, "last_count"), member_real(rank, "calls"),
				member_real(rank, "lag_p50_ns") / 1e6);
		sep = "; ";
	}
	if (why) {
		buf_puts(text, sep);
		tool_say_text(text, why);
	}
}

static int answer(struct search *s)
{
	json_t *found = member_values(s->nodes, "weight", tool_limit(s->call, 20)), *n;
	struct buf *text = s->call->text;
	size_t i;

	if (json_array_size(found))
		buf_printf(text,
			"%s, worst first:", TEXT_PLURAL(json_object_size(s->nodes), "stragglers"));
	else if (!s->scores && !s->calls)
		buf_puts(text,
			"No data in this time range, so nothing can be said: check cluster_id (summary lists the clusters), use a longer since, or check that agents push.");
	else
		buf_printf(text,
			"No straggler found: no score below %.2f, no rank late in %zu stored calls of "
			"collectives, no incident. find_outlier_nodes compares nodes by any metric.",
			s->threshold, s->calls);
	json_array_foreach (found, i, n)
		if (i < 10)
			say_node(text, n);
	if (json_array_size(found))
		buf_puts(text, "\nNext: ask the agent of the worst node why (its tool explain).");
	return tool_put(s->call, "{s:f, s:I, s:I, s:b, s:o}", "threshold", s->threshold, "total",
		(json_int_t)json_object_size(s->nodes), "calls", (json_int_t)s->calls, "cut",
		(int)s->is_cut, "stragglers", found);
}

int tool_stragglers(struct tool_call *c)
{
	_cleanup_(json_decrefp) json_t *nodes = json_object();
	struct search s = {.call = c,
		.threshold = tool_arg_real(c, "threshold", TOOL_LOW_SCORE),
		.nodes = nodes};
	int r = add_low(&s);

	r = r ?: add_late(&s);
	r = r ?: add_incidents(&s);
	return r ?: answer(&s);
}

/* Nodes that differ from their cluster by a metric: the distance from the median, in units of
 * the median distance (made comparable with a standard deviation). Of gauges the mean over the time is
 * compared, of counters what they grew by a second. */

#define DEVIATION  3.5 /* and more is an outlier, unless a caller says otherwise */
#define NODES_MIN  3   /* of two nobody can say which is wrong */
#define MAD_SIGMA  1.4826
#define EVEN_SHARE 0.01 /* of the median: where most are equal, less than this is no difference */
#define EVEN_NONE  0.1 /* of the greatest distance, where most are 0: then any other value differs */

struct value {
	const char *cluster, *node; /* the table's */
	double v, deviation;
	int64_t points;
};

ORDER(compare_doubles, double, COMPARE(*x, *y))

static double median(double *v, size_t n)
{
	SORT(v, n, compare_doubles);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Of the values of one cluster; *ret_median, *ret_spread. */
static int weigh(struct value *v, size_t n, double *ret_median, double *ret_spread)
{
	_cleanup_free_ double *x = calloc(MAX(n, (size_t)1), sizeof(*x));

	if (!x)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		x[i] = v[i].v;
	*ret_median = median(x, n);
	for (size_t i = 0; i < n; i++)
		x[i] = fabs(v[i].v - *ret_median);
	*ret_spread = MAX(MAD_SIGMA * median(x, n), EVEN_SHARE * fabs(*ret_median));
	if (*ret_spread <= 0) /* x is in order now */
		*ret_spread = EVEN_NONE * x[n - 1];
	for (size_t i = 0; i < n; i++)
		v[i].deviation = *ret_spread > 0 ? (v[i].v - *ret_median) / *ret_spread : 0;
	return 0;
}

ORDER(compare_values, struct value, strcmp(x->cluster, y->cluster))

/* A row a node: cluster, node, value, points; of gauges the kind, too. */
static const struct tool_question gauges = {
	.select = "SELECT cluster_id, node_id, sum(\"sum\") / sum(\"count\") AS mean, "
		  "sum(\"count\") AS points, max(kind) AS sort FROM {node_metrics} WHERE",
	.then = " GROUP BY cluster_id, node_id",
	.from_minute = true};
static const struct tool_question counters = {
	.select = "SELECT cluster_id, node_id, "
		  "sum(grew) * 1000000000.0 / (max(newest) - min(first)) AS rate, "
		  "sum(n) AS points FROM (SELECT cluster_id, node_id, attrs, "
		  "CASE WHEN max(kind) = 'delta' THEN sum(value_double) "
		  "ELSE max(value_double) - min(value_double) END AS grew, "
		  "min(ts_ns) AS first, max(ts_ns) AS newest, count(*) AS n FROM {events} WHERE",
	.then = " GROUP BY cluster_id, node_id, attrs) GROUP BY cluster_id, node_id "
		"HAVING max(newest) > min(first)"};

static int ask(const struct tool_call *c, const struct tool_question *question, const char *metric,
	struct sql_table *ret)
{
	struct tool_question q = *question;

	q.metric = metric;
	return tool_ask(c, &q, ret);
}

static json_t *outlier_json(const struct value *v, double median_of_all)
{
	return json_pack("{s:o, s:o, s:f, s:f, s:f, s:I, s:s}", "cluster_id",
		tool_json_text(v->cluster), "node_id", tool_json_text(v->node), "value", v->v,
		"median", median_of_all, "deviation", v->deviation, "points", (json_int_t)v->points,
		"direction", v->deviation < 0 ? "low" : "high");
}

struct result {
	json_t *found; /* by cluster and node */
	size_t nodes;
	double threshold;
};

static void say_outliers(
	struct buf *text, const struct result *f, const json_t *list, const char *metric)
{
	const json_t *o;
	size_t i;

	buf_printf(text, "%zu of %zu nodes differ from their cluster by ", json_array_size(list),
		f->nodes);
	tool_say(text, metric);
	buf_puts(text, ".");
	if (!f->nodes)
		buf_printf(
			text, " At least %d nodes of a cluster must have this metric.", NODES_MIN);
	json_array_foreach (list, i, o) {
		if (i == 5)
			break;
		buf_puts(text, "\n- ");
		tool_say(text, json_string_value(json_object_get(o, "node_id")));
		buf_printf(text, ": %.4g, the median is %.4g", member_real(o, "value"),
			member_real(o, "median"));
	}
}

static int load(struct result *f, const struct sql_table *t)
{
	_cleanup_free_ struct value *v = calloc(MAX(t->row_count, (size_t)1), sizeof(*v));
	size_t n = 0;
	int r;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < t->row_count; i++)
		if (!tool_is_null(t, i, 2))
			v[n++] = (struct value){.cluster = tool_text(t, i, 0),
				.node = tool_text(t, i, 1),
				.v = tool_real(t, i, 2),
				.points = tool_int(t, i, 3)};
	r = 0;
	SORT(v, n, compare_values);
	for (size_t i = 0, end; r == 0 && i < n; i = end) {
		double mid = 0, spread = 0;

		for (end = i + 1; end < n && !strcmp(v[i].cluster, v[end].cluster);)
			end++;
		if (end - i < NODES_MIN)
			continue;
		f->nodes += end - i;
		r = weigh(v + i, end - i, &mid, &spread);
		for (size_t k = i; r == 0 && k < end; k++) {
			json_t *o;

			if (fabs(v[k].deviation) < f->threshold)
				continue;
			o = member_node(f->found, v[k].cluster, v[k].node);
			json_object_update_new(o, outlier_json(&v[k], mid));
			json_object_set_new(o, "weight", json_real(fabs(v[k].deviation)));
		}
	}
	return r;
}

int tool_outliers(struct tool_call *c)
{
	const char *metric = tool_arg_text(c, "metric") ?: TOOL_SCORE;
	_cleanup_(json_decrefp) json_t *found = json_object();
	struct result f = {.found = found, .threshold = tool_arg_real(c, "threshold", DEVIATION)};
	_cleanup_(sql_table_done) struct sql_table means = {0}, rates = {0};
	int r = ask(c, &gauges, metric, &means);
	bool has_rates = r == 0 && means.row_count && !tool_same(&means, 0, 4, "gauge");
	json_t *list, *o;
	size_t i;

	if (has_rates)
		r = ask(c, &counters, metric, &rates);
	r = r ?: load(&f, has_rates ? &rates : &means);
	if (r < 0)
		return r;
	list = member_values(found, "weight", tool_limit(c, TOOL_LIMIT));
	json_array_foreach (list, i, o)
		json_object_del(o, "weight");
	say_outliers(c->text, &f, list, metric);
	return tool_put(c, "{s:o, s:s, s:f, s:I, s:o}", "metric", tool_json_text(metric),
		"compared", has_rates ? "per_second" : "mean", "threshold", f.threshold, "nodes",
		(json_int_t)f.nodes, "outliers", list);
}
