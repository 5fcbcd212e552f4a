/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_text.c - the SQL of the DuckDB store. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster/store/store_duck_private.h"

/* Ten minutes, or a day of roll-ups, come first: a question about an hour skips the rest of a large part,
 * and within them the rows of a node lie together. */
const char *const part_order[TABLE_COUNT] = {
	[TABLE_EVENTS] = "ts_ns // 600000000000, node_id, ts_ns",
	[TABLE_CHAINS] = "node_id, detected_at",
	[TABLE_METRICS] = "bucket_ns // 86400000000000, metric_name, node_id, bucket_ns",
	[TABLE_COLLECTIVES] = "enter_ns // 600000000000, node_id, enter_ns",
	[TABLE_INCIDENTS] = "node_id, ts_ns",
	[TABLE_STEPS] = "node_id, ts_ns",
};

const char *part_alias(const struct part *p, char out[STORE_ALIAS_MAX])
{
	snprintf(out, STORE_ALIAS_MAX, "p%" PRIu64, p->id);
	return out;
}

const char *generation_alias(const struct generation *g, char out[STORE_ALIAS_MAX])
{
	snprintf(out, STORE_ALIAS_MAX, "g%" PRIu64, g->id);
	return out;
}

void duck_quote(struct buf *b, const char *text)
{
	buf_putc(b, '\'');
	for (; *text; text++)
		buf_append(b, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
	buf_putc(b, '\'');
}

static const char *type_name(enum column_type type)
{
	switch (type) {
	case COLUMN_REAL: return "DOUBLE";
	case COLUMN_TEXT: return "VARCHAR";
	case COLUMN_TIME:
	case COLUMN_INT: break;
	}
	return "BIGINT";
}

void put_typed_columns(struct buf *b, enum store_table t)
{
	const struct table_desc *d = &store_tables[t];

	for (int i = 0; i < d->column_count; i++)
		buf_printf(b, "%s%s %s", i ? ", " : "", d->columns[i].name,
			type_name(d->columns[i].type));
}

void put_plain_columns(struct buf *b, enum store_table t)
{
	const struct table_desc *d = &store_tables[t];

	for (int i = 0; i < d->column_count; i++)
		buf_printf(b, "%s%s %s USING COMPRESSION uncompressed", i ? ", " : "",
			d->columns[i].name, type_name(d->columns[i].type));
}

void put_node_metrics(struct buf *b, const char *events)
{
	buf_printf(b,
		"SELECT ts_ns // %" PRId64 " * %" PRId64
		" AS bucket_ns, cluster_id, node_id, metric_name, kind, count(*) AS count, "
		"min(v) AS min, max(v) AS max, sum(v) AS sum, arg_max(v, ts_ns) AS last, "
		"max(ts_ns) AS last_ns FROM (SELECT ts_ns, cluster_id, node_id, metric_name, kind, "
		"coalesce(value_double, CAST(value_int AS DOUBLE)) AS v FROM %s "
		"WHERE kind IN ('gauge', 'counter', 'delta', 'histogram')) "
		"WHERE v IS NOT NULL AND ts_ns IS NOT NULL "
		"GROUP BY 1, cluster_id, node_id, metric_name, kind",
		STORE_MINUTE_NS, STORE_MINUTE_NS, events);
}

void put_generation(struct buf *b, const char *alias)
{
	char events[STORE_ALIAS_MAX + 16];

	buf_printf(b, "ATTACH ':memory:' AS %s;\n", alias);
	for (int t = 0; t < TABLE_COUNT; t++) {
		if (t == TABLE_METRICS)
			continue;
		buf_printf(b, "CREATE TABLE %s.%s(", alias, store_tables[t].name);
		put_typed_columns(b, t);
		buf_puts(b, ");\n");
	}
	snprintf(events, sizeof(events), "%s.events", alias);
	buf_printf(b, "CREATE VIEW %s.node_metrics AS ", alias);
	put_node_metrics(b, events);
	buf_puts(b, ";\n");
}

bool scope_has(const struct store_scope *scope, const char *cluster)
{
	if (!scope || !scope->clusters)
		return true;
	for (size_t i = 0; i < scope->cluster_count; i++)
		if (!strcmp(scope->clusters[i], cluster))
			return true;
	return false;
}

static void put_clusters(struct buf *b, const struct store_scope *scope)
{
	if (scope->cluster_count == 0) {
		buf_puts(b, "false");
		return;
	}
	buf_puts(b, "cluster_id IN (");
	for (size_t i = 0; i < scope->cluster_count; i++) {
		buf_puts(b, i ? ", " : "");
		duck_quote(b, scope->clusters[i]);
	}
	buf_putc(b, ')');
}

bool put_scope(struct buf *b, enum store_table t, const struct store_scope *scope, bool clusters)
{
	const char *time = store_tables[t].columns[store_tables[t].time].name;
	const char *and = " WHERE ";

	if (!scope)
		return false;
	if (clusters && scope->clusters) {
		buf_puts(b, and);
		put_clusters(b, scope);
		and = " AND ";
	}
	if (scope->since_ns) {
		buf_printf(b, "%s%s >= %" PRId64, and, time, scope->since_ns);
		and = " AND ";
	}
	if (scope->until_ns) {
		buf_printf(b, "%s%s < %" PRId64, and, time, scope->until_ns);
		and = " AND ";
	}
	return strcmp(and, " AND ") == 0;
}
