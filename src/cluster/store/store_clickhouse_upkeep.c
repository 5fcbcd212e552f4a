/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse_upkeep.c - retention, a day at a time, and what the servers hold. Merging is theirs. */
#include <stdatomic.h>

#include "base/mutex.h"
#include "cluster/store/store_clickhouse_private.h"
#include "base/array.h"
#include "base/clock.h"

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
		int64_t oldest = sql_table_int(&t, i, 4) * CLICKHOUSE_DAY_NS;

		if (table < 0)
			continue;
		sum->rows[table] += (uint64_t)sql_table_int(&t, i, 1);
		sum->bytes += (uint64_t)sql_table_int(&t, i, 2);
		sum->parts += (uint64_t)sql_table_int(&t, i, 3);
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
	MUTEX_HELD(&s->lock);
	memcpy(s->stats.rows, sum.rows, sizeof(sum.rows));
	s->stats.bytes = sum.bytes;
	s->stats.parts = sum.parts;
	s->stats.oldest_ns = sum.oldest_ns;
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
	r = drop_partition(s, shard, sql_table_bytes(&t, name), sql_table_int(&t, 0, 1), reterr);
	if (r < 0)
		return r;
	MUTEX_HELD(&s->lock);
	s->stats.dropped_rows += (uint64_t)sql_table_int(&t, 0, 2);
	return 1;
}

int clickhouse_upkeep_run(struct store *store, int64_t now_ns, struct errinfo *reterr)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;
	int64_t day;

	now_ns = retention_clock_read(&s->clock, now_ns, mono_now().ns);
	day = (now_ns - (int64_t)s->retention_ns) / CLICKHOUSE_DAY_NS;
	pthread_mutex_lock(&s->lock);
	s->stats.ahead_ns = s->clock.ahead_ns;
	pthread_mutex_unlock(&s->lock);
	for (size_t shard = 0; s->retention_ns && shard < clickhouse_store_shards(s); shard++) {
		int r = drop_one(s, shard, day, reterr);

		if (r != 0)
			return r;
	}
	return clickhouse_upkeep_count(s, reterr);
}

/* tables that an earlier version made get the columns that have been added since.
 * What only reads them lists its columns: it is dropped, and made anew by whoever makes what is missing. Written
 * for servers that do not know ADD COLUMN IF NOT EXISTS. */

static bool text_is(const struct sql_table *t, size_t row, int column, const char *text)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	return c->type == SQL_TEXT && !strcmp(sql_table_bytes(t, c), text);
}

/* @columns has a row for each: its table and its name. @name NULL: any. */
static bool has_column(const struct sql_table *columns, const char *table, const char *name)
{
	return EXISTS(i, columns->row_count,
		text_is(columns, i, 0, table) && (!name || text_is(columns, i, 1, name)));
}

static int grow_table(struct store_clickhouse *s, size_t shard, const char *database,
	const char *suffix, enum store_table t, const struct sql_table *columns,
	struct errinfo *reterr)
{
	const struct table_desc *d = &store_tables[t];
	char table[64], sql[512];
	int r = 0;

	snprintf(table, sizeof(table), "%s%s", d->name, suffix);
	if (!has_column(columns, table, NULL))
		return 0; /* it will be made with all of them */
	for (int i = 0; r == 0 && i < d->column_count; i++) {
		if (has_column(columns, table, d->columns[i].name))
			continue;
		if (strcmp(suffix, "_local") != 0) {
			snprintf(sql, sizeof(sql), "DROP TABLE %s.%s", database, table);
			return clickhouse_store_run(s, shard, sql, NULL, reterr);
		}
		snprintf(sql, sizeof(sql), "ALTER TABLE %s.%s ADD COLUMN %s Nullable(%s)", database,
			table, d->columns[i].name, clickhouse_type(d->columns[i].type));
		r = clickhouse_store_run(s, shard, sql, NULL, reterr);
	}
	return r;
}

int clickhouse_grow(
	struct store_clickhouse *s, const char *database, const char *rows, struct errinfo *reterr)
{
	int r = 0;

	for (size_t shard = 0; r == 0 && shard < clickhouse_store_shards(s); shard++) {
		_cleanup_(sql_table_done) struct sql_table columns = {0};
		char sql[512];

		snprintf(sql, sizeof(sql),
			"SELECT table, name FROM system.columns WHERE database = '%s'", database);
		r = clickhouse_store_run(s, shard, sql, &columns, reterr);
		for (int t = 0; r == 0 && t < TABLE_COUNT; t++) {
			if (t == TABLE_METRICS)
				continue; /* computed */
			r = grow_table(s, shard, database, rows, t, &columns, reterr);
			r = r ?: grow_table(s, shard, database, "", t, &columns, reterr);
		}
	}
	return r;
}

/* questions to ClickHouse: our own as the writer, a stranger's as a reader who can
 * see nothing but a database with the rows of his clusters.
 * 
 * Old servers know no row policies, but they do know which databases a user may read, and a Distributed
 * table asks the shards as another user. So the stranger's tables are Distributed ones over views that
 * select his clusters; the views themselves he cannot read. */

#define SCOPES_MAX 4096

static size_t answer_max(const struct store_limits *l)
{
	return l->bytes_max * 2 + (1u << 20); /* a text's escapes double it at most */
}

static int ask(struct store_clickhouse *s, struct clickhouse_ask *a, struct buf *settings,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr)
{
	static _Atomic uint64_t counter;
	char id[64];
	int r;

	snprintf(id, sizeof(id), "ingero-%d-%" PRIu64 "-%" PRIu64, (int)getpid(),
		(uint64_t)wall_now().ns, (uint64_t)++counter);
	buf_printf(settings, "&query_id=%s", id);
	if (settings->err)
		return settings->err;
	a->settings = buf_str(settings);
	a->timeout_ns = limits->timeout_ns;
	a->answer_max = answer_max(limits);
	r = clickhouse_ask_all(s->client, a, 1, reterr);
	if (r == 0)
		r = clickhouse_tsv_read(
			a->answer.data ? a->answer.data : "", a->answer.len, limits, ret, reterr);
	else if (r == -ETIMEDOUT) {
		_cleanup_buf_ struct buf q = BUF_INIT(256);

		/* Nobody waits for it any more. */
		buf_printf(&q, "KILL QUERY WHERE query_id = '%s' ASYNC", id);
		(void)clickhouse_store_run(s, 0, buf_str(&q), NULL, NULL);
	}
	clickhouse_ask_done(a);
	return r;
}

/* ---- our own ---- */

static void put_table(void *arg, struct buf *b, enum store_table t, const struct store_scope *scope)
{
	const struct store_clickhouse *s = arg;

	clickhouse_put_table(b, &s->names, t, scope);
}

int clickhouse_ask_select(struct store *store, const struct store_scope *scope,
	const char *question, const struct store_limits *limits, struct sql_table *ret,
	struct errinfo *reterr)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;
	_cleanup_buf_ struct buf q = BUF_INIT(1u << 20), settings = BUF_INIT(4096);
	struct store_dialect dialect = {
		.table = put_table,
		.quantile =
			s->exact_quantile ? "quantileExactInclusive(@1)(@2)" : "quantile(@1)(@2)",
		.last = "argMax(@1, @2)",
		.div = "intDiv(@1, @2)",
		.text = "toString(@1)",
	};
	struct clickhouse_ask a = {.account = &s->writer};
	int r = store_expand(&dialect, s, question, scope, &q, reterr);

	if (r < 0)
		return r;
	buf_printf(&settings,
		"&join_use_nulls=1&readonly=1&max_execution_time=%" PRIu64
		"&max_result_rows=%zu&max_result_bytes=%zu&result_overflow_mode=break%s",
		(uint64_t)(limits->timeout_ns / NS_PER_S + 1), limits->rows_max + 1,
		limits->bytes_max, s->plain_joins ? "&joined_subquery_requires_alias=0" : "");
	a.query = buf_str(&q);
	return ask(s, &a, &settings, limits, ret, reterr);
}

/* ---- a stranger's ---- */

static bool scope_is_made(struct store_clickhouse *s, const char *name)
{
	bool is = false;

	MUTEX_HELD(&s->lock);
	is = EXISTS(i, s->scope_count, !strcmp(s->scopes[i], name));
	return is;
}

static int remember_scope(struct store_clickhouse *s, const char *name)
{
	_cleanup_free_ char *copy = strdup(name);
	int r;

	pthread_mutex_lock(&s->lock);
	r = copy ? ARRAY_RESERVE(s->scopes, s->scope_room, s->scope_count + 1, SCOPES_MAX)
		 : -ENOMEM;
	if (r == 0)
		s->scopes[s->scope_count++] = TAKE(copy);
	pthread_mutex_unlock(&s->lock);
	return r == -ENOBUFS ? 0 : r; /* made again each time: slower, not wrong */
}

static int make_scope(struct store_clickhouse *s, const struct store_scope *scope, const char *name,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(64u << 10);
	int r = 0;

	if (scope_is_made(s, name))
		return 0;
	r = clickhouse_grow(s, name, "_scope", reterr);
	for (size_t i = 0; r == 0 && clickhouse_scope_next(&q, &s->names, name, scope, i); i++) {
		r = q.err ? q.err : clickhouse_store_run_all(s, buf_str(&q), NULL, reterr);
		buf_clear(&q);
	}
	return r < 0 ? r : remember_scope(s, name);
}

/* A reader's account is the operator's to make: say which one is missing. */
static int explain(int r, const char *user, struct errinfo *reterr)
{
	if (r == -EACCES)
		return errinfo_set(reterr, -EPERM,
			"ClickHouse has no user %s for SQL of these clusters: define it as docs/clickhouse.md says",
			user);
	return r == -EIO ? -EINVAL : r;
}

int clickhouse_ask_sql(struct store *store, const struct store_scope *scope, const char *text,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;
	_cleanup_buf_ struct buf settings = BUF_INIT(4096), database = BUF_INIT(1024),
				 user = BUF_INIT(1024);
	struct clickhouse_account account = {.password = s->reader.password};
	struct clickhouse_ask a = {.account = &account, .query = text};
	bool scoped = scope && scope->clusters;
	int r;

	if (!s->reader.user)
		return errinfo_set(reterr, -EPERM,
			"SQL needs a user of ClickHouse who may only read: see docs/clickhouse.md");
	if (scoped && !s->names.cluster)
		return errinfo_set(reterr, -EPERM,
			"SQL of some clusters only needs the name of the servers' cluster: see docs/clickhouse.md");
	r = clickhouse_guard_check(text, reterr);
	r = r ?: clickhouse_guard_name(s->names.database, scope, &database, reterr);
	r = r ?: clickhouse_guard_name(s->reader.user, scope, &user, reterr);
	if (r == 0 && scoped)
		r = make_scope(s, scope, buf_str(&database), reterr);
	if (r < 0)
		return r;
	account.user = buf_str(&user);
	buf_printf(&settings, "&database=%s", buf_str(&database));
	return explain(ask(s, &a, &settings, limits, ret, reterr), account.user, reterr);
}
