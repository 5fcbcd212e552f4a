/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_visit.c - short looks into a store that need not load it: its range of time, its totals
 * per process, an SQL statement. Read-only, also on read-only media; see nodedb_read.c. */

#include "store/read/nodedb_reader.h"
#include "sql/sql_worker.h"

#define DURATION_MAX (366LL * 24 * 3600 * (int64_t)NS_PER_S)

static int visit_open(sql_db *sql, const char *path, const struct nodedb_filter *f,
	reader_visitor visit, void *arg, struct errinfo *reterr)
{
	static const struct nodedb_filter all;
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	struct reader r = {.sql = sql, .path = path, .filter = f ? f : &all, .content = &content};
	int res = reader_identify(&r, reterr);

	if (res < 0)
		return res;
	res = sql_exec(sql, "BEGIN", reterr);
	return res < 0 ? res : visit(&r, arg, reterr);
}

static int visit_now(const char *path, const struct nodedb_filter *f, reader_visitor visit,
	void *arg, struct errinfo *reterr)
{
	for (int live = 0;; live = 1) {
		_cleanup_(sql_closep) sql_db *sql = NULL;
		struct sql_stamp stamp;
		int r = sql_open_read(path, live, &sql, &stamp, reterr);

		if (r < 0)
			return r;
		r = visit_open(sql, path, f, visit, arg, reterr);
		if (live || !sql_stamp_changed(path, &stamp))
			return r;
	}
}

int reader_visit(const char *path, const struct nodedb_filter *f, reader_visitor visit, void *arg,
	struct errinfo *reterr)
{
	int r = visit_now(path, f, visit, arg, reterr);

	return r < 0 && reader_came(path, r) ? visit_now(path, f, visit, arg, reterr) : r;
}

/* One end of the recording: start and end of its oldest or newest row; 0 if there is none. */
static int row_at(struct reader *r, const char *order, int64_t *ret_start, int64_t *ret_end,
	struct errinfo *reterr)
{
	static const struct reader_column columns[] = {{"timestamp", NULL}, {"duration", NULL},
		{"source", NULL}, {"op", NULL}, {NULL, NULL}};
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int64_t time, duration, source;
	bool at_end;
	int res = reader_select(r, "events", columns, &sql, reterr);

	*ret_start = *ret_end = 0;
	if (res < 0)
		return res;
	/* The bounds leave out texts too, which SQLite takes to be above every number. */
	buf_printf(&sql, " WHERE timestamp BETWEEN 1 AND %lld ORDER BY timestamp %s LIMIT 1",
		WALL_NS_MAX, order);
	res = reader_prepare(r, &sql, &stmt, reterr);
	res = res ?: sql_step(stmt, reterr);
	if (res <= 0)
		return res;
	time = sql_column_int(stmt, 0);
	duration = sql_column_int(stmt, 1);
	source = sql_column_int(stmt, 2);
	if (duration < 0 || duration > DURATION_MAX)
		duration = 0;
	at_end = r->kind == SCHEMA_PUBLISHED &&
		 (source == SOURCE_IO || source == SOURCE_NET ||
			 (source == SOURCE_HOST && sql_column_int(stmt, 3) == HOST_SCHED_SWITCH));
	*ret_start = at_end ? MAX(time - duration, INT64_C(1)) : time;
	*ret_end = at_end ? time : time + duration;
	return 0;
}

int reader_range(struct reader *r, struct nodedb_range *range, struct errinfo *reterr)
{
	int64_t ignored;
	int res = row_at(r, "ASC", &range->first_ns, &ignored, reterr);

	return res < 0 ? res : row_at(r, "DESC", &ignored, &range->last_ns, reterr);
}

static int visit_range(struct reader *r, void *arg, struct errinfo *reterr)
{
	return reader_range(r, arg, reterr);
}

int nodedb_range(const char *path, struct nodedb_range *ret, struct errinfo *reterr)
{
	struct nodedb_range range;
	int r = reader_visit(path, NULL, visit_range, &range, reterr);

	if (r == 0)
		*ret = range;
	return r;
}

struct usage_list {
	struct nodedb_usage *rows;
	size_t count;
};

static bool read_usage(sql_stmt *stmt, void *arg, void *row)
{
	struct nodedb_usage *u = row;
	int64_t v[6];

	for (int i = 0; i < 6; i++) {
		v[i] = sql_column_int(stmt, i);
		if ((sql_column_type(stmt, i) != SQL_INT && i != 4) || v[i] < 0)
			return false;
	}
	if (v[0] > UINT32_MAX || v[1] < 1 || v[1] >= WIRE_SOURCE_MAX || v[2] >= WIRE_OP_MAX)
		return false;
	*u = (struct nodedb_usage){.pid = (uint32_t)v[0],
		.source = (uint8_t)v[1],
		.op = (uint16_t)v[2],
		.count = (uint64_t)v[3],
		.sum_ns = (uint64_t)v[4],
		.max_ns = (uint64_t)v[5],
		.nested = sql_column_int(stmt, 6) != 0};
	if (sql_column_type(stmt, 7) == SQL_TEXT)
		(void)reader_text(stmt, 7, u->comm, sizeof(u->comm));
	return true;
}

static int usage_sql(struct reader *r, struct buf *sql, struct errinfo *reterr)
{
	bool ours = r->kind == SCHEMA_OURS;
	int64_t width = ours ? scope_bucket_ns(&r->filter->scope) : (int64_t)NODEDB_BUCKET_COARSE;
	const char *table = scope_bucket_table(width);
	int res = schema_has_table(r->sql, table, reterr);
	int names = schema_has_table(r->sql, "process_names", reterr);

	if (res <= 0 || names < 0)
		return MIN(res, names);
	buf_printf(sql,
		"SELECT pid, source, op, CAST(total(count) AS INTEGER) AS calls, total(sum_dur),"
		" max(max_dur), %s AS nested, %s, total(total(count)) OVER"
		" (PARTITION BY pid) AS all_calls FROM %s a",
		ours ? "nested" : "NULL", /* no 0: GROUP BY would take it for a place */
		!names      ? "NULL"
		: r->merged ? "(SELECT max(name) FROM process_names p WHERE p.pid = a.pid AND"
			      " p.node = a.node)"
			    : "(SELECT max(name) FROM process_names p WHERE p.pid = a.pid)",
		table);
	res = reader_where(r, table,
		(struct scope_columns){.time = "bucket", .pid = "pid", .width_ns = width}, sql,
		reterr);
	if (res < 0)
		return res;
	buf_printf(sql,
		" GROUP BY pid, source, op, nested HAVING calls > 0"
		" ORDER BY all_calls DESC, pid, calls DESC, source, op LIMIT %u",
		NODEDB_USAGE_MAX);
	return 1;
}

static int visit_usage(struct reader *r, void *arg, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct usage_list *list = arg;
	int res = usage_sql(r, &sql, reterr);

	free(list->rows);
	*list = (struct usage_list){0};
	if (res <= 0)
		return res;
	res = reader_prepare(r, &sql, &stmt, reterr);
	return res < 0 ? res
		       : reader_collect(stmt,
				 &(struct reader_rows){READER_INTO(list->rows, list->count),
					 .max = NODEDB_USAGE_MAX, .read = read_usage},
				 reterr);
}

int nodedb_usage(const char *path, const struct nodedb_filter *f, struct nodedb_usage **ret,
	size_t *ret_count, struct errinfo *reterr)
{
	struct usage_list list = {0};
	int r = reader_visit(path, f, visit_usage, &list, reterr);

	if (r < 0) {
		free(list.rows);
		return r;
	}
	*ret = list.rows;
	*ret_count = list.count;
	return 0;
}

struct node_list {
	struct nodedb_node *rows;
	size_t count;
};

const struct reader_query reader_nodes = {.table = "sessions",
	.columns = (const struct reader_column[]){{"node", "''"}, {NULL, NULL}},
	.rest = " GROUP BY 1 ORDER BY min(rowid)"};

static bool read_node(sql_stmt *stmt, void *arg, void *row)
{
	struct nodedb_node *n = row;

	return reader_text(stmt, 0, n->name, sizeof(n->name)) && n->name[0];
}

static int visit_nodes(struct reader *r, void *arg, struct errinfo *reterr)
{
	struct node_list *list = arg;

	free(list->rows);
	*list = (struct node_list){0};
	return reader_load(r, &reader_nodes,
		&(struct reader_rows){READER_INTO(list->rows, list->count), .max = NODEDB_NODES_MAX,
			.read = read_node},
		reterr);
}

int nodedb_nodes(
	const char *path, struct nodedb_node **ret, size_t *ret_count, struct errinfo *reterr)
{
	struct node_list list = {0};
	int r = reader_visit(path, NULL, visit_nodes, &list, reterr);

	if (r < 0) {
		free(list.rows);
		return r;
	}
	*ret = list.rows;
	*ret_count = list.count;
	return 0;
}

/* That it is ours was found out before. SQLite has also made what it keeps beside a live file,
 * which a worker may not. */
static int visit_nothing(struct reader *r, void *arg, struct errinfo *reterr)
{
	(void)r;
	(void)arg;
	(void)reterr;
	return 0;
}

int nodedb_ask(const char *path, const char *text, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr)
{
	int r = reader_visit(path, NULL, visit_nothing, NULL, reterr);

	return r < 0 ? r : sql_worker_ask(path, text, rules, ret, hint, reterr);
}
