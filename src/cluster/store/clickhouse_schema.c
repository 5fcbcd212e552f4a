/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_schema.c - see store_clickhouse_private.h.
 *
 * Written for ClickHouse 18.16 and all that came later: no TTL, no codecs, no DateTime64, no CTE.
 *
 * A day of reception is a partition: it is what retention drops, and since rows of one insert were
 * received on one day or two, an insert makes few parts. The time of a row by its sender's clock is in
 * the ordering key. */
#include "cluster/store/store_clickhouse_private.h"

#define MINUTE_NS (60 * (int64_t)NS_PER_S)

static bool is_key(const struct table_desc *d, int column)
{
	return column == d->time || column == d->cluster || column == d->node;
}

static void put_columns(struct buf *b, enum store_table t)
{
	for (int i = 0; i < store_tables[t].column_count; i++)
		buf_printf(b, "%s%s", i ? ", " : "", store_tables[t].columns[i].name);
}

const char *clickhouse_type(enum column_type type)
{
	static const char *const types[] = {[COLUMN_TIME] = "Int64",
		[COLUMN_INT] = "Int64",
		[COLUMN_REAL] = "Float64",
		[COLUMN_TEXT] = "String"};

	return types[type];
}

static void put_definitions(struct buf *b, enum store_table t)
{
	const struct table_desc *d = &store_tables[t];

	for (int i = 0; i < d->column_count; i++)
		buf_printf(b, is_key(d, i) ? "%s%s %s" : "%s%s Nullable(%s)", i ? ", " : "",
			d->columns[i].name, clickhouse_type(d->columns[i].type));
}

static void put_clusters(struct buf *b, const struct store_scope *scope)
{
	if (scope->cluster_count == 0) {
		buf_puts(b, "1 = 0");
		return;
	}
	buf_puts(b, "cluster_id IN (");
	for (size_t i = 0; i < scope->cluster_count; i++) {
		buf_puts(b, i ? ", " : "");
		store_quote(b, scope->clusters[i]);
	}
	buf_puts(b, ")");
}

/* ---- statements ---- */

#define VALUE "coalesce(value_double, toFloat64(value_int))"

/* What node_metrics is, of the points in @events: one level deep, so that shards select and group their
 * own rows. */
static void put_metrics(struct buf *b, const char *database, const char *events)
{
	buf_printf(b,
		"SELECT intDiv(ts_ns, %" PRId64 ") * %" PRId64
		" AS bucket_ns, cluster_id, node_id, metric_name, kind, "
		"toNullable(toInt64(count())) AS count, min(" VALUE ") AS min, max(" VALUE
		") AS max, sum(" VALUE ") AS sum, argMax(" VALUE
		", ts_ns) AS last, toNullable(max(ts_ns)) AS last_ns FROM %s.%s WHERE kind IN "
		"('gauge', 'counter', 'delta', 'histogram') AND "
		"(value_double IS NOT NULL OR value_int IS NOT NULL)",
		MINUTE_NS, MINUTE_NS, database, events);
}

static const char metrics_groups[] = " GROUP BY bucket_ns, cluster_id, node_id, metric_name, kind";

/* What reads one table on all shards, by the name @suffix there. */
static void put_distributed(struct buf *b, const struct clickhouse_names *n, const char *database,
	const char *suffix, enum store_table t)
{
	const char *name = store_tables[t].name;

	buf_printf(b, "CREATE TABLE IF NOT EXISTS %s.%s (", database, name);
	put_definitions(b, t);
	buf_printf(b, ") ENGINE = Distributed(%s, %s, %s%s)", n->cluster, database, name, suffix);
}

static void put_view(struct buf *b, const struct clickhouse_names *n, enum store_table t)
{
	const char *name = store_tables[t].name;

	buf_printf(b, "CREATE VIEW IF NOT EXISTS %s.%s AS SELECT ", n->database, name);
	put_columns(b, t);
	buf_printf(b, " FROM %s.%s_local", n->database, name);
}

bool clickhouse_schema_next(struct buf *b, const struct clickhouse_names *n, bool synced, size_t i)
{
	if (i == 0) {
		buf_printf(b, "CREATE DATABASE IF NOT EXISTS %s", n->database);
	} else if (i == 1) {
		buf_printf(b,
			"CREATE TABLE IF NOT EXISTS %s.journal_local (key UInt8, position UInt64) "
			"ENGINE = ReplacingMergeTree(position) ORDER BY key",
			n->database);
	} else if (i < 2 + TABLE_COUNT) {
		if (i - 2 == TABLE_METRICS) {
			buf_printf(b, "CREATE VIEW IF NOT EXISTS %s.node_metrics_local AS ",
				n->database);
			put_metrics(b, n->database, "events_local");
			buf_puts(b, metrics_groups);
		} else {
			enum store_table t = i - 2;
			const struct table_desc *d = &store_tables[t];

			buf_printf(b, "CREATE TABLE IF NOT EXISTS %s.%s_local (", n->database,
				d->name);
			put_definitions(b, t);
			buf_printf(b,
				", journal_day UInt16, journal_seq UInt64) ENGINE = MergeTree PARTITION BY "
				"journal_day ORDER BY (cluster_id, node_id, %s) SETTINGS index_granularity = 8192%s",
				d->columns[d->time].name,
				synced ? ", fsync_after_insert = 1, fsync_part_directory = 1" : "");
		}
	} else if (i < 2 + 2 * TABLE_COUNT) {
		if (n->cluster)
			put_distributed(b, n, n->database, "_local", i - 2 - TABLE_COUNT);
		else
			put_view(b, n, i - 2 - TABLE_COUNT);
	} else {
		return false;
	}
	return true;
}

bool clickhouse_gate_next(struct buf *b, const struct clickhouse_names *n, uint64_t gate, size_t i)
{
	enum store_table t = i / 2;
	const char *name;

	if (t >= TABLE_METRICS)
		t++; /* nothing is put into it */
	if (t >= TABLE_COUNT)
		return false;
	name = store_tables[t].name;
	if (i % 2 == 0)
		buf_printf(b, "CREATE TABLE %s.%s_gate_%" PRIu64 " AS %s.%s_local ENGINE = Null",
			n->database, name, gate, n->database, name);
	else
		buf_printf(b,
			"CREATE MATERIALIZED VIEW %s.%s_pass_%" PRIu64
			" TO %s.%s_local AS SELECT * FROM %s.%s_gate_%" PRIu64,
			n->database, name, gate, n->database, name, n->database, name, gate);
	return true;
}

bool clickhouse_scope_next(struct buf *b, const struct clickhouse_names *n, const char *name,
	const struct store_scope *scope, size_t i)
{
	enum store_table t = (i - 1) % TABLE_COUNT;

	if (i == 0) {
		buf_printf(b, "CREATE DATABASE IF NOT EXISTS %s", name);
	} else if (i < 1 + TABLE_COUNT) {
		buf_printf(b, "CREATE VIEW IF NOT EXISTS %s.%s_scope AS SELECT ", name,
			store_tables[t].name);
		put_columns(b, t);
		buf_printf(b, " FROM %s.%s_local WHERE ", n->database, store_tables[t].name);
		put_clusters(b, scope);
	} else if (i < 1 + 2 * TABLE_COUNT) {
		put_distributed(b, n, name, "_scope", t);
	} else {
		return false;
	}
	return true;
}

/* ---- questions ---- */

static void put_scope(struct buf *b, const struct store_scope *scope, const char *time,
	int64_t since_ns, int64_t until_ns, const char *and)
{
	if (scope->clusters) {
		buf_puts(b, and);
		put_clusters(b, scope);
		and = " AND ";
	}
	if (scope->since_ns) {
		buf_printf(b, "%s%s >= %" PRId64, and, time, since_ns);
		and = " AND ";
	}
	if (scope->until_ns)
		buf_printf(b, "%s%s < %" PRId64, and, time, until_ns);
}

/* A minute is in if its begin is. */
static int64_t minute_at_or_after(int64_t ns)
{
	return ns > INT64_MAX - MINUTE_NS ? ns : (ns + MINUTE_NS - 1) / MINUTE_NS * MINUTE_NS;
}

/* The time may be NULL outside, so that the greatest time of no rows is NULL and not 0; but not inside,
 * where the ordering key finds it. */
void clickhouse_put_table(struct buf *b, const struct clickhouse_names *n, enum store_table t,
	const struct store_scope *scope)
{
	static const struct store_scope all;
	const struct table_desc *d = &store_tables[t];

	scope = scope ? scope : &all;
	buf_puts(b, "(SELECT ");
	for (int i = 0; i < d->column_count; i++)
		buf_printf(b, i == d->time ? "%stoNullable(%s) AS %s" : "%s%s", i ? ", " : "",
			d->columns[i].name, d->columns[i].name);
	buf_puts(b, " FROM (");
	if (t == TABLE_METRICS) {
		put_metrics(b, n->database, "events");
		put_scope(b, scope, "ts_ns", minute_at_or_after(scope->since_ns),
			minute_at_or_after(scope->until_ns), " AND ");
		buf_puts(b, metrics_groups);
	} else {
		buf_puts(b, "SELECT ");
		put_columns(b, t);
		buf_printf(b, " FROM %s.%s", n->database, d->name);
		put_scope(b, scope, d->columns[d->time].name, scope->since_ns, scope->until_ns,
			" WHERE ");
	}
	buf_puts(b, "))");
}

/* ---- rows, as RowBinary ---- */

void clickhouse_put_insert(
	struct buf *b, const struct clickhouse_names *n, enum store_table t, uint64_t gate)
{
	buf_printf(
		b, "INSERT INTO %s.%s_gate_%" PRIu64 " (", n->database, store_tables[t].name, gate);
	put_columns(b, t);
	buf_puts(b, ", journal_day, journal_seq) FORMAT RowBinary");
}

int clickhouse_day(const struct batch_row *row)
{
	static const int received[TABLE_COUNT] = {[TABLE_EVENTS] = EVENTS_RECEIVED,
		[TABLE_CHAINS] = CHAINS_RECEIVED,
		[TABLE_METRICS] = METRICS_TS,
		[TABLE_COLLECTIVES] = COLLECTIVES_RECEIVED,
		[TABLE_INCIDENTS] = INCIDENTS_RECEIVED,
		[TABLE_STEPS] = STEPS_RECEIVED};
	const struct sql_value *when = &row->cells[received[row->table]];
	int64_t day;

	if (when->type == SQL_NULL)
		when = &row->cells[store_tables[row->table].time];
	day = when->type == SQL_NULL ? 0 : when->i / CLICKHOUSE_DAY_NS;
	return (int)(day < 0 ? 0 : MIN(day, (int64_t)CLICKHOUSE_DAY_MAX));
}

void clickhouse_put_row(struct buf *b, const struct batch_row *row, uint64_t seq)
{
	const struct table_desc *d = &store_tables[row->table];
	uint16_t day = (uint16_t)clickhouse_day(row);

	for (int i = 0; i < d->column_count; i++) {
		const struct sql_value *v = &row->cells[i];
		int64_t none = 0;

		if (!is_key(d, i))
			buf_putc(b, v->type == SQL_NULL);
		if (v->type == SQL_TEXT) {
			size_t len = v->len;

			while (len >= 0x80) {
				buf_putc(b, (char)(len | 0x80));
				len >>= 7;
			}
			buf_putc(b, (char)len);
			buf_append(b, v->p, v->len);
		} else if (v->type != SQL_NULL) {
			buf_append(b, &v->i, sizeof(v->i)); /* reals too: both have 8 bytes */
		} else if (is_key(d, i)) {
			buf_append(b, &none, sizeof(none)); /* a row without a time */
		}
	}
	buf_append(b, &day, sizeof(day));
	buf_append(b, &seq, sizeof(seq));
}
