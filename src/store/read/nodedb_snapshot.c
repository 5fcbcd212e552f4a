/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_snapshot.c - see nodedb_snapshot.h; the lists are in nodedb_list.c. */
#include "store/read/nodedb_reader.h"

#define COUNT_EXACT 100000 /* rows that are counted one by one: some milliseconds */

struct visiting {
	nodedb_snapshot_fn *fn;
	void *arg;
};

static int visit(struct reader *r, void *arg, struct errinfo *reterr)
{
	const struct visiting *visiting = arg;
	struct nodedb_snapshot l = {.reader = *r};
	int res = visiting->fn(&l, visiting->arg, reterr);

	sql_finalize(l.stack);
	return res;
}

int nodedb_snapshot_read(
	const char *path, nodedb_snapshot_fn *fn, void *arg, struct errinfo *reterr)
{
	struct visiting visiting = {fn, arg};

	return reader_visit(path, NULL, visit, &visiting, reterr);
}

const char *nodedb_snapshot_schema(const struct nodedb_snapshot *l)
{
	return l->reader.content->schema;
}

bool nodedb_snapshot_is_ours(const struct nodedb_snapshot *l)
{
	return l->reader.kind == SCHEMA_OURS;
}

const char *nodedb_snapshot_path(const struct nodedb_snapshot *l)
{
	return l->reader.path;
}

int nodedb_snapshot_caveats(
	struct nodedb_snapshot *l, struct accounting *books, struct errinfo *reterr)
{
	int r;

	if (!nodedb_snapshot_is_ours(l))
		return 0;
	r = reader_load_unclean(&l->reader, books, reterr);
	return r < 0 ? r : reader_load_launches(&l->reader, books, reterr);
}

/* ---- time ---- */

static int widen(struct nodedb_snapshot *l, const char *table, const char *column, int64_t width_ns,
	struct nodedb_range *range, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int64_t first, last;
	int r = schema_has_table(l->reader.sql, table, reterr);

	if (r > 0)
		r = reader_has_column(&l->reader, table, column, reterr);
	if (r <= 0)
		return r;
	buf_printf(&sql,
		"SELECT (SELECT min(%s) FROM %s WHERE %s BETWEEN 1 AND %lld),"
		" (SELECT max(%s) FROM %s WHERE %s BETWEEN 1 AND %lld)",
		column, table, column, WALL_NS_MAX, column, table, column, WALL_NS_MAX);
	r = reader_prepare(&l->reader, &sql, &stmt, reterr);
	r = r ?: sql_step(stmt, reterr);
	if (r <= 0 || !sql_column_is_int(stmt, 0, &first) || !sql_column_is_int(stmt, 1, &last))
		return MIN(r, 0);
	last += width_ns;
	range->first_ns = range->first_ns ? MIN(range->first_ns, first) : first;
	range->last_ns = MAX(range->last_ns, last);
	return 0;
}

int nodedb_snapshot_range(
	struct nodedb_snapshot *l, struct nodedb_range *ret, struct errinfo *reterr)
{
	static const struct {
		const char *table, *column;
		int64_t width_ns;
	} timed[] = {{"system_snapshots", "timestamp", 0}, {"gpu_samples", "timestamp", 0},
		{"event_aggregates_5s", "bucket", (int64_t)NODEDB_BUCKET_FINE - 1}};
	int r = reader_range(&l->reader, ret, reterr);

	/* A bucket begins before what is in it and ends after: only if nothing else says when. */
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(timed) && !(timed[i].width_ns && ret->last_ns);
		i++)
		r = widen(l, timed[i].table, timed[i].column, timed[i].width_ns, ret, reterr);
	return r;
}

/* ---- counts ---- */

static int get_count(
	struct nodedb_snapshot *l, const struct buf *sql, uint64_t *ret, struct errinfo *e)
{
	int64_t v = 0;
	int r = sql->err ? sql->err : sql_get_int(l->reader.sql, buf_str(sql), &v, e);

	if (r == 0)
		*ret = (uint64_t)MAX(v, INT64_C(0));
	return r;
}

int nodedb_snapshot_count(struct nodedb_snapshot *l, const struct scope *s, uint64_t max,
	uint64_t *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int r;

	buf_puts(&sql, "SELECT count(*) FROM (SELECT 1 FROM events");
	r = reader_where_of(&l->reader, s, "events",
		(struct scope_columns){.time = "timestamp", .pid = "pid", .op = true}, &sql,
		reterr);
	if (r < 0)
		return r;
	buf_printf(&sql, " LIMIT %" PRIu64 ")", MIN(max, (uint64_t)INT64_MAX - 1) + 1);
	return get_count(l, &sql, ret, reterr);
}

static int count_table(
	struct nodedb_snapshot *l, const char *table, uint64_t *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);

	buf_printf(&sql, "SELECT count(*) FROM %s", table);
	return get_count(l, &sql, ret, reterr);
}

int nodedb_snapshot_totals(
	struct nodedb_snapshot *l, struct nodedb_totals *ret, struct errinfo *reterr)
{
	struct nodedb_totals t = {0};
	int64_t span = 0;
	int r = sql_get_int(l->reader.sql,
		"SELECT coalesce(max(rowid), 0) - coalesce((SELECT min(rowid) FROM events), 0) +"
		" (SELECT count(*) FROM (SELECT 1 FROM events LIMIT 1)) FROM events",
		&span, reterr);

	t.events = (uint64_t)MAX(span, INT64_C(0));
	t.events_exact = t.events <= COUNT_EXACT;
	if (r == 0 && t.events_exact)
		r = count_table(l, "events", &t.events, reterr);
	r = r ?: count_table(l, "causal_chains", &t.chains, reterr);
	r = r ?: count_table(l, "sessions", &t.sessions, reterr);
	if (r == 0)
		*ret = t;
	return r;
}

int nodedb_snapshot_has(struct nodedb_snapshot *l, const char *table, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	uint64_t n = 0;
	int r = schema_has_table(l->reader.sql, table, reterr);

	if (r <= 0)
		return r;
	buf_printf(&sql, "SELECT EXISTS (SELECT 1 FROM %s)", table);
	r = get_count(l, &sql, &n, reterr);
	return r < 0 ? r : n > 0;
}

/* ---- rows ---- */

int nodedb_snapshot_aggregates(struct nodedb_snapshot *l, const struct scope *s,
	nodedb_aggregate_fn *fn, void *arg, bool *ret_truncated, struct errinfo *reterr)
{
	int64_t width = scope_bucket_ns(s);
	const char *table = scope_bucket_table(width);
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	static __thread struct aggregate a; /* 5 kB */
	size_t n = 0;
	int r;

	*ret_truncated = false;
	if (!nodedb_snapshot_is_ours(l))
		return 0;
	buf_printf(&sql, "SELECT " READER_AGGREGATE " FROM %s", table);
	r = reader_where_of(&l->reader, s, table,
		(struct scope_columns){
			.time = "bucket", .pid = "pid", .op = true, .width_ns = width},
		&sql, reterr);
	if (r < 0)
		return r;
	buf_printf(&sql, " ORDER BY bucket DESC, source, op, pid, nested LIMIT %u",
		NODEDB_LIST_MAX + 1);
	r = reader_prepare(&l->reader, &sql, &stmt, reterr);
	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0) {
		if (n++ == NODEDB_LIST_MAX) {
			*ret_truncated = true;
			return 0;
		}
		if (reader_aggregate_row(stmt, &a) && (r = fn(arg, &a)) < 0)
			return r;
	}
	return r;
}

int nodedb_snapshot_collectives(struct nodedb_snapshot *l, const struct scope *s,
	struct collective_row **ret, size_t *ret_count, bool *ret_truncated, struct errinfo *reterr)
{
	struct nodedb_filter f = {.scope = {.from_ns = s->from_ns, .to_ns = s->to_ns}};
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	struct reader r = l->reader;
	size_t n = 0;
	int res;

	r.filter = &f;
	r.content = &c;
	res = reader_load_rows(&r, TABLE_COLLECTIVES, reterr);
	if (res < 0)
		return res;
	for (size_t i = 0; i < c.collective_count; i++)
		if (!s->node || !strcmp(s->node, c.collectives[i].node))
			c.collectives[n++] = c.collectives[i];
	*ret = TAKE(c.collectives);
	*ret_count = n;
	*ret_truncated = c.older_collectives > 0;
	return 0;
}

int nodedb_snapshot_stack(
	struct nodedb_snapshot *l, uint64_t hash, struct stack **ret, struct errinfo *reterr)
{
	int r = l->stack ? 0 : reader_query(&l->reader, &reader_stack, &l->stack, reterr);

	*ret = NULL;
	if (r == 0 && l->stack)
		r = reader_stack_read(&l->reader, l->stack, hash, ret, reterr);
	return MIN(r, 0);
}
