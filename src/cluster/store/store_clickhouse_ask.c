/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse_ask.c - questions to ClickHouse: our own as the writer, a stranger's as a reader who can
 * see nothing but a database with the rows of his clusters.
 *
 * Old servers know no row policies, but they do know which databases a user may read, and a Distributed
 * table asks the shards as another user. So the stranger's tables are Distributed ones over views that
 * select his clusters; the views themselves he cannot read. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cluster/store/clickhouse_guard.h"
#include "cluster/store/clickhouse_tsv.h"
#include "cluster/store/store_clickhouse_private.h"

#define SCOPES_MAX 4096

static size_t answer_max(const struct store_limits *l)
{
	return l->bytes_max * 2 + (1u << 20); /* a text's escapes double it at most */
}

/* Nobody waits for @id any more. */
static void kill_query(struct store_clickhouse *s, const char *id)
{
	_cleanup_buf_ struct buf q = BUF_INIT(256);

	buf_printf(&q, "KILL QUERY WHERE query_id = '%s' ASYNC", id);
	(void)clickhouse_store_run(s, 0, buf_str(&q), NULL, NULL);
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
	else if (r == -ETIMEDOUT)
		kill_query(s, id);
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

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->scope_count && !is; i++)
		is = !strcmp(s->scopes[i], name);
	pthread_mutex_unlock(&s->lock);
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
	if (r == 0)
		r = clickhouse_guard_name(s->names.database, scope, &database, reterr);
	if (r == 0)
		r = clickhouse_guard_name(s->reader.user, scope, &user, reterr);
	if (r == 0 && scoped)
		r = make_scope(s, scope, buf_str(&database), reterr);
	if (r < 0)
		return r;
	account.user = buf_str(&user);
	buf_printf(&settings, "&database=%s", buf_str(&database));
	return explain(ask(s, &a, &settings, limits, ret, reterr), account.user, reterr);
}
