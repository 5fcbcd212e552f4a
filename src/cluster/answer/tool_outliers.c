/* SPDX-License-Identifier: Apache-2.0 */
/* tool_outliers.c - nodes that differ from their cluster by a metric: the distance from the median, in units of
 * the median distance (made comparable with a standard deviation). Of gauges the mean over the time is
 * compared, of counters what they grew by a second. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/answer/tool_private.h"

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

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare_doubles);
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

static int compare_values(const void *a, const void *b)
{
	return strcmp(((const struct value *)a)->cluster, ((const struct value *)b)->cluster);
}

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

static int find(struct result *f, struct value *v, size_t count)
{
	int r = 0;

	qsort(v, count, sizeof(*v), compare_values);
	for (size_t i = 0, end; r == 0 && i < count; i = end) {
		double mid = 0, spread = 0;

		for (end = i + 1; end < count && !strcmp(v[i].cluster, v[end].cluster);)
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

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < t->row_count; i++)
		if (!tool_is_null(t, i, 2))
			v[n++] = (struct value){.cluster = tool_text(t, i, 0),
				.node = tool_text(t, i, 1),
				.v = tool_real(t, i, 2),
				.points = tool_int(t, i, 3)};
	return find(f, v, n);
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
	if (r == 0)
		r = load(&f, has_rates ? &rates : &means);
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
