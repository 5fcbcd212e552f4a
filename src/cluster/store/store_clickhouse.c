/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse.c - the store on ClickHouse: opened, with its tables made, and closed. See
 * store_clickhouse.h; filling is in store_clickhouse_fill.c, asking in store_clickhouse_ask.c. */
#include "cluster/store/store_clickhouse.h"

#include <ctype.h>

#include "base/mutex.h"
#include "cluster/store/store_clickhouse_private.h"

#define SETTLE_NS (60 * NS_PER_S) /* Linux writes what is older than 30 s, every 5 s */

size_t clickhouse_store_shards(const struct store_clickhouse *s)
{
	return clickhouse_shard_count(s->client);
}

static const struct store_limits own_limits = {.rows_max = 1u << 20, .bytes_max = 64u << 20};

static struct clickhouse_ask own_ask(struct store_clickhouse *s, size_t shard, const char *query)
{
	return (struct clickhouse_ask){
		.shard = shard,
		.account = &s->writer,
		.query = query,
		.settings = s->slow_drops
				    ? "&database_atomic_wait_for_drop_and_detach_synchronously=1"
				    : NULL,
		.timeout_ns = CLICKHOUSE_TIMEOUT_NS,
		.answer_max = own_limits.bytes_max,
	};
}

int clickhouse_store_run(struct store_clickhouse *s, size_t shard, const char *query,
	struct sql_table *ret, struct errinfo *reterr)
{
	struct clickhouse_ask a = own_ask(s, shard, query);
	int r = clickhouse_ask_all(s->client, &a, 1, reterr);

	if (r == 0 && ret)
		r = clickhouse_tsv_read(buf_str(&a.answer), a.answer.len, &own_limits, ret, reterr);
	clickhouse_ask_done(&a);
	return r;
}

int clickhouse_store_run_all(struct store_clickhouse *s, const char *query, struct sql_table *ret,
	struct errinfo *reterr)
{
	struct clickhouse_ask asks[CLICKHOUSE_SHARDS_MAX];
	size_t count = clickhouse_store_shards(s);
	int r;

	for (size_t i = 0; i < count; i++)
		asks[i] = own_ask(s, i, query);
	r = clickhouse_ask_all(s->client, asks, count, reterr);
	for (size_t i = 0; i < count; i++) {
		if (r == 0 && ret)
			r = clickhouse_tsv_read(buf_str(&asks[i].answer), asks[i].answer.len,
				&own_limits, &ret[i], reterr);
		clickhouse_ask_done(&asks[i]);
	}
	return r;
}

/* ---- the tables ---- */

struct answers { /* of all shards */
	struct sql_table at[CLICKHOUSE_SHARDS_MAX];
};

static void answers_done(struct answers *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(a->at); i++)
		sql_table_done(&a->at[i]);
}

/* The integers of one row from each shard. */
static int get_row(struct store_clickhouse *s, const char *query, int columns, struct answers *ret,
	struct errinfo *reterr)
{
	int r = clickhouse_store_run_all(s, query, ret->at, reterr);

	for (size_t i = 0; r == 0 && i < clickhouse_store_shards(s); i++) {
		bool ok = ret->at[i].row_count == 1 && ret->at[i].column_count == columns;

		for (int c = 0; ok && c < columns; c++)
			ok = sql_table_cell(&ret->at[i], 0, c)->type == SQL_INT;
		if (!ok)
			r = errinfo_set(reterr, -EPROTO, "ClickHouse does not answer as expected");
	}
	return r;
}

/* What all servers can do that the oldest ones cannot. */
static int learn_features(struct store_clickhouse *s, struct errinfo *reterr)
{
	static const char query[] =
		"SELECT (SELECT count() FROM system.functions WHERE name = 'quantileExactInclusive'), "
		"(SELECT count() FROM system.settings WHERE name = 'joined_subquery_requires_alias'), "
		"(SELECT count() FROM system.settings WHERE name = 'async_insert'), "
		"(SELECT count() FROM system.settings WHERE name = "
		"'database_atomic_wait_for_drop_and_detach_synchronously'), "
		"(SELECT count() FROM system.merge_tree_settings WHERE name = 'fsync_after_insert')";
	bool *const features[] = {
		&s->exact_quantile, &s->plain_joins, &s->no_delay, &s->slow_drops, &s->synced};
	_cleanup_(answers_done) struct answers a = {0};
	int r = get_row(s, query, ARRAY_SIZE(features), &a, reterr);

	for (size_t f = 0; r == 0 && f < ARRAY_SIZE(features); f++) {
		*features[f] = true;
		for (size_t i = 0; i < clickhouse_store_shards(s); i++)
			*features[f] &= sql_table_cell(&a.at[i], 0, (int)f)->i > 0;
	}
	return r;
}

static int make_tables(struct store_clickhouse *s, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(64u << 10);
	int r = clickhouse_grow(s, s->names.database, "_local", reterr);

	for (size_t i = 0; r == 0 && clickhouse_schema_next(&q, &s->names, s->synced, i); i++) {
		r = q.err ? q.err : clickhouse_store_run_all(s, buf_str(&q), NULL, reterr);
		buf_clear(&q);
	}
	return r;
}

/* A position stands on a shard only if all shards had reached it: the greatest is true. */
static int learn_position(struct store_clickhouse *s, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(4096);
	_cleanup_(answers_done) struct answers a = {0};
	int r;

	buf_printf(&q, "SELECT max(position) FROM %s.journal_local", s->names.database);
	r = get_row(s, buf_str(&q), 1, &a, reterr);
	for (size_t i = 0; r == 0 && i < clickhouse_store_shards(s); i++)
		s->stats.durable =
			MAX(s->stats.durable, (uint64_t)sql_table_cell(&a.at[i], 0, 0)->i);
	s->stats.visible = s->taken = s->stats.durable;
	return r;
}

/* What retention believes of the time begins with the end of the newest day of which there are rows. */
static int learn_clock(struct store_clickhouse *s, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(4096);
	_cleanup_(answers_done) struct answers a = {0};
	int r;

	buf_puts(&q, "SELECT max(toInt64(partition)), count() FROM system.parts WHERE active AND "
		     "table != 'journal_local' AND database = ");
	store_quote(&q, s->names.database);
	r = get_row(s, buf_str(&q), 2, &a, reterr);
	for (size_t i = 0; r == 0 && i < clickhouse_store_shards(s); i++)
		if (sql_table_cell(&a.at[i], 0, 1)->i)
			s->clock.now_ns = MAX(s->clock.now_ns,
				(sql_table_cell(&a.at[i], 0, 0)->i + 1) * CLICKHOUSE_DAY_NS);
	return r;
}

/* ---- opening ---- */

static bool is_name(const char *text)
{
	if (!isalpha((unsigned char)*text))
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '_')
			return false;
	return true;
}

static int check_settings(const struct store_clickhouse_settings *s, struct errinfo *reterr)
{
	if (s->shard_count == 0 || s->shard_count > CLICKHOUSE_SHARDS_MAX)
		return errinfo_set(reterr, -EINVAL,
			"give the addresses of 1 to %d ClickHouse servers", CLICKHOUSE_SHARDS_MAX);
	if (s->shard_count > 1 && !s->cluster)
		return errinfo_set(reterr, -EINVAL,
			"several ClickHouse servers need the name of their cluster in remote_servers");
	if (!is_name(s->database) || (s->cluster && !is_name(s->cluster)) ||
		(s->reader && !is_name(s->reader)))
		return errinfo_set(reterr, -EINVAL,
			"names of ClickHouse's database, cluster and reader have letters, digits and _ only");
	return 0;
}

static const char *keep(struct store_clickhouse *s, int i, const char *text, bool *failed)
{
	if (!text)
		return NULL;
	s->texts[i] = strdup(text);
	*failed |= !s->texts[i];
	return s->texts[i];
}

static int prepare(struct store_clickhouse *s, const struct store_clickhouse_settings *from)
{
	bool failed = false;

	s->names.database = keep(s, 0, from->database, &failed);
	s->names.cluster = keep(s, 1, from->cluster, &failed);
	s->writer.user = keep(s, 2, from->user ? from->user : "default", &failed);
	s->writer.password = keep(s, 3, from->password, &failed);
	s->reader.user = keep(s, 4, from->reader, &failed);
	s->reader.password = keep(s, 5, from->reader_password, &failed);
	s->retention_ns = from->retention_ns;
	s->slots = calloc(from->shard_count * TABLE_COUNT, sizeof(*s->slots));
	if (failed || !s->slots)
		return -ENOMEM;
	for (size_t i = 0; i < from->shard_count * TABLE_COUNT; i++)
		s->slots[i].rows = BUF_INIT(CLICKHOUSE_BODY_MAX);
	return 0;
}

static void clickhouse_store_free(struct store *store)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;

	for (size_t i = 0; s->slots && s->client && i < clickhouse_store_shards(s) * TABLE_COUNT;
		i++) {
		buf_done(&s->slots[i].rows);
		free(s->slots[i].reached);
	}
	free(s->slots);
	for (size_t i = 0; i < s->scope_count; i++)
		free(s->scopes[i]);
	free(s->scopes);
	for (size_t i = 0; i < ARRAY_SIZE(s->texts); i++)
		free(s->texts[i]);
	clickhouse_freep(&s->client);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static uint64_t clickhouse_store_durable(struct store *store)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;

	MUTEX_HELD(&s->lock);
	return s->stats.durable;
}

static void clickhouse_store_stats(struct store *store, struct store_stats *ret)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;

	MUTEX_HELD(&s->lock);
	*ret = s->stats;
}

static const struct store_ops clickhouse_ops = {
	.name = "clickhouse",
	.free = clickhouse_store_free,
	.take = clickhouse_fill_take,
	.commit = clickhouse_fill_commit,
	.durable = clickhouse_store_durable,
	.select = clickhouse_ask_select,
	.sql = clickhouse_ask_sql,
	.seal = clickhouse_fill_seal,
	.upkeep = clickhouse_upkeep_run,
	.stats = clickhouse_store_stats,
};

int store_clickhouse_open(
	const struct store_clickhouse_settings *from, struct store **ret, struct errinfo *reterr)
{
	_cleanup_(store_freep) struct store *store = NULL;
	struct store_clickhouse *s;
	int r = check_settings(from, reterr);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->store.ops = &clickhouse_ops;
	pthread_mutex_init(&s->lock, NULL);
	store = &s->store;
	r = clickhouse_new(from->shards, from->shard_count, &s->client, reterr);
	r = r ?: prepare(s, from);
	r = r ?: learn_features(s, reterr);
	s->settle_ns = from->settle_ns ? from->settle_ns : s->synced ? NS_PER_S : SETTLE_NS;
	r = r ?: make_tables(s, reterr);
	r = r ?: learn_position(s, reterr);
	r = r ?: clickhouse_upkeep_count(s, reterr);
	r = r ?: from->trust_clock ? 0 : learn_clock(s, reterr);
	r = r ?: clickhouse_fill_learn(s, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(store);
	return 0;
}
