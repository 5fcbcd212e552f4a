/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse_upkeep.c - retention, a day at a time, and what the servers hold. Merging is theirs. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cluster/store/store_clickhouse_private.h"

static int table_of(const char *local, size_t len)
{
	static const char suffix[] = "_local";

	for (int t = 0; t < TABLE_COUNT; t++) {
		size_t n = strlen(store_tables[t].name);

		if (len == n + sizeof(suffix) - 1 && !memcmp(local, store_tables[t].name, n))
			return t;
	}
	return -1;
}

static int64_t cell_int(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	return c->type == SQL_INT ? c->i : 0;
}

static int count_shard(
	struct store_clickhouse *s, size_t shard, struct store_stats *sum, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(4096);
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r;

	buf_puts(&q, "SELECT table, sum(rows), sum(bytes_on_disk), count(), "
		     "min(toInt64(partition)) FROM system.parts WHERE active AND database = ");
	store_quote(&q, s->names.database);
	buf_puts(&q, " AND table != 'journal_local' GROUP BY table");
	r = clickhouse_store_run(s, shard, buf_str(&q), &t, reterr);
	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		const struct sql_cell *name = sql_table_cell(&t, i, 0);
		int table = table_of(sql_table_bytes(&t, name), name->len);
		int64_t oldest = cell_int(&t, i, 4) * CLICKHOUSE_DAY_NS;

		if (table < 0)
			continue;
		sum->rows[table] += (uint64_t)cell_int(&t, i, 1);
		sum->bytes += (uint64_t)cell_int(&t, i, 2);
		sum->parts += (uint64_t)cell_int(&t, i, 3);
		if (!sum->oldest_ns || oldest < sum->oldest_ns)
			sum->oldest_ns = oldest;
	}
	return r;
}

int clickhouse_upkeep_count(struct store_clickhouse *s, struct errinfo *reterr)
{
	struct store_stats sum = {0};

	for (size_t shard = 0; shard < clickhouse_store_shards(s); shard++) {
		int r = count_shard(s, shard, &sum, reterr);

		if (r < 0)
			return r;
	}
	pthread_mutex_lock(&s->lock);
	memcpy(s->stats.rows, sum.rows, sizeof(sum.rows));
	s->stats.bytes = sum.bytes;
	s->stats.parts = sum.parts;
	s->stats.oldest_ns = sum.oldest_ns;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int drop_partition(struct store_clickhouse *s, size_t shard, const char *table, int64_t day,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(4096);

	buf_printf(&q, "ALTER TABLE %s.%s DROP PARTITION %" PRId64, s->names.database, table, day);
	return clickhouse_store_run(s, shard, buf_str(&q), NULL, reterr);
}

/* The oldest partition of one shard that is due. 1: it has been dropped; 0: there is none. */
static int drop_one(struct store_clickhouse *s, size_t shard, int64_t day, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(4096);
	_cleanup_(sql_table_done) struct sql_table t = {0};
	const struct sql_cell *name;
	int r;

	buf_puts(&q,
		"SELECT table, toInt64(partition) AS day, sum(rows) FROM system.parts WHERE active "
		"AND table != 'journal_local' AND database = ");
	store_quote(&q, s->names.database);
	buf_printf(
		&q, " AND day < %" PRId64 " GROUP BY table, day ORDER BY day, table LIMIT 1", day);
	r = clickhouse_store_run(s, shard, buf_str(&q), &t, reterr);
	if (r < 0 || t.row_count == 0)
		return r;
	name = sql_table_cell(&t, 0, 0);
	if (table_of(sql_table_bytes(&t, name), name->len) < 0)
		return 0;
	r = drop_partition(s, shard, sql_table_bytes(&t, name), cell_int(&t, 0, 1), reterr);
	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	s->stats.dropped_rows += (uint64_t)cell_int(&t, 0, 2);
	pthread_mutex_unlock(&s->lock);
	return 1;
}

int clickhouse_upkeep_run(struct store *store, int64_t now_ns, struct errinfo *reterr)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;
	int64_t day = (now_ns - (int64_t)s->retention_ns) / CLICKHOUSE_DAY_NS;

	for (size_t shard = 0; s->retention_ns && shard < clickhouse_store_shards(s); shard++) {
		int r = drop_one(s, shard, day, reterr);

		if (r != 0)
			return r;
	}
	return clickhouse_upkeep_count(s, reterr);
}
