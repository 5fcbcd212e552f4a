/* SPDX-License-Identifier: Apache-2.0 */
/* tool_parts.c - parts of several tools' answers: see tool_private.h. */
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
