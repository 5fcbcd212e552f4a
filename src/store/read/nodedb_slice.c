/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_slice.c - see nodedb_slice.h. What makes sense is decided as for whole rows (nodedb_event.c). */
#include "store/read/nodedb_slice.h"

#include "store/schema/event_column.h"
#include "store/read/nodedb_reader.h"
#include "wire/op_kind.h"

/* The columns of EVENT_COLUMNS that are taken: numbers, then, after the row's own number, the others. The stack is
 * for the search. */
#define SLICE_NUMBERS_OF(X)                                                                        \
	X(TIMESTAMP)                                                                               \
	X(DURATION)                                                                                \
	X(PID)                                                                                     \
	X(TID)                                                                                     \
	X(SOURCE)                                                                                  \
	X(OP)                                                                                      \
	X(FLAGS)                                                                                   \
	X(WEIGHT)                                                                                  \
	X(STREAM)                                                                                  \
	X(WAIT)                                                                                    \
	X(PEER_PID)
#define SLICE_OTHERS_OF(X) X(RANK) X(COMM) X(PEER_COMM) X(NODE) X(STACK)

enum slice_column {
#define X(name) SLICE_##name,
	SLICE_NUMBERS_OF(X) SLICE_NUMBERS,
	SLICE_ROW = SLICE_NUMBERS,
	SLICE_OTHERS_OF(X) SLICE_COUNT
#undef X
};

static const enum event_column taken[SLICE_COUNT] = {
#define X(name) [SLICE_##name] = COL_##name,
	SLICE_NUMBERS_OF(X) SLICE_OTHERS_OF(X)
#undef X
};

static int select_slices(struct nodedb_snapshot *l, struct buf *sql, struct errinfo *reterr)
{
	struct reader_column columns[SLICE_COUNT + 1];

	for (int i = 0; i < SLICE_COUNT; i++) {
		const struct column *c = &node_tables[TABLE_EVENTS].columns[taken[i]];

		columns[i] = (struct reader_column){c->name, c->otherwise};
	}
	/* no column of the list, but of every table */
	columns[SLICE_ROW] = (struct reader_column){"rowid", "rowid"};
	columns[SLICE_COUNT].name = NULL;
	return reader_select(&l->reader, "events", columns, sql, reterr);
}

static void take_text(const struct nodedb_slice *s, int column, char out[COMM_LEN])
{
	sql_stmt *stmt = (sql_stmt *)s->texts;

	if (!reader_text(stmt, column, out, COMM_LEN))
		out[0] = 0;
}

void nodedb_slice_comm(const struct nodedb_slice *s, char out[COMM_LEN])
{
	take_text(s, SLICE_COMM, out);
}

void nodedb_slice_peer(const struct nodedb_slice *s, char out[COMM_LEN])
{
	take_text(s, SLICE_PEER_COMM, out);
}

const char *nodedb_slice_node(const struct nodedb_slice *s, size_t *ret_len)
{
	sql_stmt *stmt = (sql_stmt *)s->texts;

	if (sql_column_type(stmt, SLICE_NODE) != SQL_TEXT) {
		*ret_len = 0;
		return "";
	}
	return sql_column_text(stmt, SLICE_NODE, ret_len);
}

static bool read_slice(enum schema_kind kind, sql_stmt *stmt, struct nodedb_slice *s)
{
	int64_t v[SLICE_NUMBERS];

	for (int i = 0; i < SLICE_NUMBERS; i++)
		if (!sql_column_is_int(stmt, i, &v[i]) ||
			!table_takes(&node_tables[TABLE_EVENTS].columns[taken[i]], v[i]))
			return false;
	if (!event_in_range(v[SLICE_TIMESTAMP], 1, WALL_NS_MAX) || !v[SLICE_SOURCE])
		return false;
	*s = (struct nodedb_slice){.start_ns = v[SLICE_TIMESTAMP],
		.dur_ns = (uint64_t)v[SLICE_DURATION],
		.row = sql_column_int(stmt, SLICE_ROW),
		.pid = (uint32_t)v[SLICE_PID],
		.tid = (uint32_t)v[SLICE_TID],
		.source = (uint8_t)v[SLICE_SOURCE],
		.op = (uint16_t)v[SLICE_OP],
		.flags = (uint16_t)v[SLICE_FLAGS],
		.weight = (uint32_t)v[SLICE_WEIGHT],
		.stream = (uint64_t)v[SLICE_STREAM],
		.wait_ns = (uint64_t)v[SLICE_WAIT],
		.peer_pid = (uint32_t)v[SLICE_PEER_PID],
		.rank = -1,
		.texts = stmt};
	if (sql_column_type(stmt, SLICE_RANK) == SQL_INT &&
		event_in_range(sql_column_int(stmt, SLICE_RANK), 0, INT32_MAX))
		s->rank = (int32_t)sql_column_int(stmt, SLICE_RANK);
	if (kind == SCHEMA_PUBLISHED && event_stamped_at_end(s->source, s->op))
		s->start_ns -= v[SLICE_DURATION];
	return s->start_ns > 0;
}

static int write_sql(struct nodedb_snapshot *l, const struct nodedb_slices *w, struct buf *sql,
	struct errinfo *reterr)
{
	bool published = l->reader.kind == SCHEMA_PUBLISHED;
	struct scope s = w->scope ? *w->scope : (struct scope){0};
	int r = select_slices(l, sql, reterr);

	if (r < 0)
		return r;
	s.source = 0;
	s.op = 0;
	s.from_ns = w->from_ns;
	s.to_ns = w->to_ns && published ? w->to_ns + w->reach_ns : w->to_ns;
	r = reader_where_of(&l->reader, &s, "events",
		(struct scope_columns){.time = "timestamp", .pid = "pid"}, sql, reterr);
	if (w->after_row)
		buf_printf(sql, " AND rowid > %" PRId64, w->after_row);
	for (size_t i = 0; i < w->row_count; i++)
		buf_printf(sql, "%s%" PRId64, i ? "," : " AND rowid IN (", w->rows[i]);
	if (w->row_count)
		buf_putc(sql, ')');
	if (published)
		buf_puts(sql, " ORDER BY timestamp, duration DESC");
	else
		buf_puts(sql, w->from_ns || w->to_ns ? " ORDER BY timestamp" : " ORDER BY rowid");
	return r;
}

int nodedb_snapshot_slices(struct nodedb_snapshot *l, const struct nodedb_slices *what,
	nodedb_slice_fn *fn, void *arg, uint64_t *ret_skipped, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	uint64_t skipped = 0;
	int r = write_sql(l, what, &sql, reterr);

	r = r ?: reader_prepare(&l->reader, &sql, &stmt, reterr);
	while (r >= 0 && stmt && (r = sql_step(stmt, reterr)) > 0) {
		struct nodedb_slice s;

		if (!read_slice(l->reader.kind, stmt, &s)) {
			skipped++;
			continue;
		}
		if ((what->from_ns && s.start_ns < what->from_ns) ||
			(what->to_ns && s.start_ns > what->to_ns))
			continue;
		r = fn(arg, &s);
	}
	if (r >= 0)
		*ret_skipped = skipped;
	return MIN(r, 0);
}

/* ---- buckets ---- */

static const struct reader_column bucket_columns[] = {{"bucket", NULL}, {"pid", NULL},
	{"source", NULL}, {"op", NULL}, {"count", NULL}, {"sum_dur", NULL}, {"node", "''"},
	{NULL, NULL}};

static bool read_bucket(sql_stmt *stmt, struct nodedb_bucket *b)
{
	int64_t v[6];

	if (EXISTS(i, 6, !sql_column_is_int(stmt, i, &v[i])))
		return false;
	if (!event_in_range(v[0], 1, WALL_NS_MAX) || !event_in_range(v[1], 0, UINT32_MAX) ||
		!event_in_range(v[2], 1, WIRE_SOURCE_MAX - 1) ||
		!event_in_range(v[3], 0, WIRE_OP_MAX - 1) || v[4] < 0 || v[5] < 0)
		return false;
	*b = (struct nodedb_bucket){.start_ns = v[0],
		.pid = (uint32_t)v[1],
		.source = (uint8_t)v[2],
		.op = (uint16_t)v[3],
		.count = (uint64_t)v[4],
		.busy_ns = (uint64_t)v[5],
		.node = ""};
	if (sql_column_type(stmt, 6) == SQL_TEXT)
		b->node = sql_column_text(stmt, 6, &b->node_len);
	return true;
}

int nodedb_snapshot_buckets(struct nodedb_snapshot *l, int64_t fine_ns, nodedb_bucket_fn *fn,
	void *arg, int64_t *ret_width_ns, struct errinfo *reterr)
{
	static const struct scope all;
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	struct nodedb_range range = {0};
	bool ours = nodedb_snapshot_is_ours(l);
	int64_t width;
	int r = nodedb_snapshot_range(l, &range, reterr);

	width = ours && range.last_ns - range.first_ns <= fine_ns ? (int64_t)NODEDB_BUCKET_FINE
								  : (int64_t)NODEDB_BUCKET_COARSE;
	r = r
		    ?: reader_query(&l->reader,
			       &(struct reader_query){.table = scope_bucket_table(width),
				       .columns = bucket_columns,
				       .scope = &all,
				       .rest = ours ? " AND " OP_KIND_GPU_SQL
						      " AND nested = 0 ORDER BY bucket"
						    : " AND " OP_KIND_GPU_SQL " ORDER BY bucket"},
			       &stmt, reterr);
	*ret_width_ns = stmt ? width : 0;
	while (r >= 0 && stmt && (r = sql_step(stmt, reterr)) > 0) {
		struct nodedb_bucket b;

		if (read_bucket(stmt, &b))
			r = fn(arg, &b);
	}
	return MIN(r, 0);
}

/* ---- one row ---- */

int nodedb_snapshot_event(struct nodedb_snapshot *l, int64_t row, struct event *ret,
	char ret_node[256], struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_(reader_names_done) struct pid_names names = {0};
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	const char *node;
	size_t len;
	int r = reader_load_names(&l->reader, &names, reterr);

	r = r ?: reader_event_select(&l->reader, true, &sql, reterr);
	if (r < 0)
		return r;
	buf_printf(&sql, " WHERE rowid = %" PRId64, row);
	r = reader_prepare(&l->reader, &sql, &stmt, reterr);
	r = r ?: sql_step(stmt, reterr);
	if (r <= 0 || !reader_event_row(l->reader.kind, stmt, &names, ret))
		return MIN(r, 0);
	node = reader_event_node(stmt, &len);
	len = MIN(len, (size_t)255);
	memcpy(ret_node, node, len);
	ret_node[len] = 0;
	return 1;
}

/* ---- search ---- */

#define HASHES_MAX 500

/* " OR stack_hash IN (…)" of the stacks that have the text. */
static int put_hashes(
	struct nodedb_snapshot *l, const char *frame, struct buf *sql, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf like = BUF_INIT(4096);
	int r = frame[0] ? schema_has_table(l->reader.sql, "stack_traces", reterr) : 0;
	int n = 0;

	if (r > 0)
		r = reader_has_column(&l->reader, "stack_traces", "frames", reterr);
	if (r <= 0)
		return r;
	buf_putc(&like, '%');
	for (const char *p = frame; *p; p++)
		buf_printf(&like, *p == '%' || *p == '_' || *p == '\\' ? "\\%c" : "%c", *p);
	buf_putc(&like, '%');
	r = sql_prepare(l->reader.sql,
		"SELECT hash FROM stack_traces WHERE frames LIKE ?1 ESCAPE '\\' LIMIT ?2", &stmt,
		reterr);
	r = r ?: SQL_BIND(stmt, reterr, SQL_S(buf_str(&like)), SQL_I(HASHES_MAX));
	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0)
		buf_printf(sql, "%s%" PRId64, n++ ? "," : " OR stack_hash IN (",
			sql_column_int(stmt, 0));
	if (n)
		buf_putc(sql, ')');
	return MIN(r, 0);
}

/* Rows of @w's time and processes, whatever they are called. */
static int put_scope(struct nodedb_snapshot *l, const struct nodedb_search *w, struct buf *sql,
	struct errinfo *reterr)
{
	struct scope s = w->scope;

	s.source = 0;
	s.op = 0;
	return reader_where_of(&l->reader, &s, "events",
		(struct scope_columns){.time = "timestamp", .pid = "pid"}, sql, reterr);
}

/* Whether there are rows that were too old to be looked at. */
static int has_older(
	struct nodedb_snapshot *l, const struct nodedb_search *w, bool *ret, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int r;

	buf_puts(&sql, "SELECT 1 FROM events");
	r = put_scope(l, w, &sql, reterr);
	buf_printf(&sql, " ORDER BY timestamp DESC LIMIT 1 OFFSET %zu", w->looked_at);
	r = r ?: reader_prepare(&l->reader, &sql, &stmt, reterr);
	if (r >= 0)
		r = sql_step(stmt, reterr);
	*ret = r > 0;
	return MIN(r, 0);
}

/* Rows are taken from the time index, so that what is looked at has an end. */
static int write_search(struct nodedb_snapshot *l, const struct nodedb_search *w, struct buf *sql,
	struct errinfo *reterr)
{
	int r;

	buf_puts(sql, "SELECT * FROM (");
	r = select_slices(l, sql, reterr);
	r = r ?: put_scope(l, w, sql, reterr);
	buf_printf(sql, " ORDER BY timestamp DESC LIMIT %zu) WHERE (0", w->looked_at);
	for (int i = 0; i < WIRE_SOURCE_MAX; i++)
		if (w->ops[i])
			buf_printf(sql, " OR (source = %d AND (%" PRId64 " >> op) & 1)", i,
				(int64_t)w->ops[i]);
	r = r ?: put_hashes(l, w->frame, sql, reterr);
	buf_printf(sql, ") LIMIT %zu", w->limit + 1);
	return r;
}

int nodedb_snapshot_search(struct nodedb_snapshot *l, const struct nodedb_search *what,
	nodedb_slice_fn *fn, void *arg, bool *ret_truncated, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	size_t n = 0;
	int r = write_search(l, what, &sql, reterr);

	*ret_truncated = false;
	r = r ?: reader_prepare(&l->reader, &sql, &stmt, reterr);
	while (r >= 0 && stmt && (r = sql_step(stmt, reterr)) > 0) {
		struct nodedb_slice s;

		if (n == what->limit) {
			*ret_truncated = true;
			return 0;
		}
		if (!read_slice(l->reader.kind, stmt, &s))
			continue;
		n++;
		r = fn(arg, &s);
	}
	return r < 0 ? r : has_older(l, what, ret_truncated, reterr);
}
