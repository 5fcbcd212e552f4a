/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_list.c - the lists of nodedb_snapshot.h: one row of a table each. Columns that an older file
 * lacks are replaced by what stands beside them; a table that it lacks is empty. */

#include "store/read/nodedb_reader.h"
#include "wire/op_kind.h"

struct list_column {
	const char *key;       /* name in the result */
	const char *column;    /* which has to be there for `what` */
	const char *what;      /* NULL: the column itself */
	const char *otherwise; /* NULL: NULL */
};

struct list_row {
	const char *table;
	const struct list_column *columns; /* ended by a key of NULL */
	enum node_table
		all; /* all columns of this table, but for what `columns` says of some; 0: those alone */
	struct scope_columns scope;
	const char *also; /* a further condition */
	const char *ours; /* and one for our own files */
	const char *order;
};

/* clang-format off */
#define SAME(name)            {name, name, NULL, NULL}
#define TEXT(name)            {name, name, NULL, "''"}
#define CAST_TEXT(name)       {name, name, "coalesce(CAST(" name " AS TEXT), '')", "''"}
#define MADE(key, name, what) {key, name, what, NULL}
#define ROW_END               {NULL, NULL, NULL, NULL}
/* clang-format on */

static const struct list_column numbered[] = {SAME("id"), ROW_END};

/* The published agent keeps the last name of each pid. */
static const struct list_column process_names[] = {{"comm", "name", NULL, NULL},
	{"first_seen", "seen_at", NULL, NULL}, {"last_seen", "seen_at", NULL, NULL}, ROW_END};

static const struct list_column nodes[] = {TEXT("node"), MADE("sessions", "id", "count(*)"),
	MADE("first_ns", "started_at", "min(started_at)"),
	MADE("last_ns", "stopped_at", "max(max(started_at, stopped_at))"), ROW_END};

static const struct list_column calls[] = {SAME("pid"),
	{"calls", "nested", "CAST(total(CASE WHEN nested THEN 0 ELSE count END) AS INTEGER)",
		"CAST(total(count) AS INTEGER)"},
	{"ns", "nested", "total(CASE WHEN nested THEN 0 ELSE sum_dur END)", "total(sum_dur)"},
	ROW_END};

static const struct list_column op_sums[] = {SAME("source"), SAME("op"),
	MADE("calls", "count", "CAST(total(count) AS INTEGER)"),
	MADE("ns", "sum_dur", "total(sum_dur)"), MADE("min", "min_dur", "min(min_dur)"),
	MADE("max", "max_dur", "max(max_dur)"),
	MADE("stored", "stored", "CAST(total(stored) AS INTEGER)"), ROW_END};

static const struct list_column severities[] = {
	SAME("severity"), MADE("n", "id", "count(*)"), ROW_END};

static const struct list_column incidents[] = {SAME("id"), TEXT("node"), SAME("first_seen"),
	SAME("last_seen"), SAME("resolved_at"), SAME("severity"), SAME("pid"), TEXT("summary"),
	ROW_END};

static const struct list_column graph_events[] = {SAME("timestamp"), SAME("pid"), TEXT("comm"),
	SAME("op"), SAME("duration"), SAME("arg0"), SAME("arg1"), {"stream", "stream", NULL, "0"},
	SAME("ret_code"), {"weight", "weight", NULL, "1"}, ROW_END};

/* Of a foreign file they may be anything. */
static const struct list_column kernels[] = {CAST_TEXT("name"), CAST_TEXT("origin"),
	MADE("launches", "launches", "CAST(total(launches) AS INTEGER)"),
	MADE("processes", "pid", "count(DISTINCT pid)"), ROW_END};

STATIC_ASSERT(SOURCE_GRAPH == 8); /* in the SQL below */
static const struct list_row rows[NODEDB_LIST_COUNT] = {
	[NODEDB_SESSIONS] = {.table = "sessions",
		.all = TABLE_SESSIONS,
		.columns = numbered,
		.order = "ORDER BY started_at DESC, id DESC"},
	[NODEDB_NODES] = {.table = "sessions",
		.columns = nodes,
		.order = "GROUP BY 1 ORDER BY min(rowid)"},
	[NODEDB_PROCESSES] = {.table = "processes",
		.all = TABLE_PROCESSES,
		.scope = {.time = "first_seen", .pid = "pid"},
		/* those that are followed first */
		.order = "ORDER BY EXISTS (SELECT 1 FROM coverage c WHERE c.pid = processes.pid"
			 " AND c.start_time = processes.start_time AND c.node ="
			 " processes.node) DESC, last_seen DESC, pid"},
	[NODEDB_COVERAGE] = {.table = "coverage",
		.all = TABLE_COVERAGE,
		.scope = {.pid = "pid"},
		.also = "session_id = (SELECT max(session_id) FROM coverage c WHERE"
			" c.node = coverage.node AND c.pid = coverage.pid AND"
			" c.start_time = coverage.start_time)",
		.order = "ORDER BY node, pid, start_time, layer"},
	[NODEDB_CALLS] = {.table = "event_aggregates",
		.columns = calls,
		.scope = {.time = "bucket", .pid = "pid", .width_ns = NODEDB_BUCKET_COARSE},
		.also = OP_KIND_GPU_SQL,
		.order = "GROUP BY pid ORDER BY 2 DESC"},
	[NODEDB_OP_SUMS] = {.table = "event_aggregates",
		.columns = op_sums,
		.scope = {.time = "bucket",
			.pid = "pid",
			.op = true,
			.width_ns = NODEDB_BUCKET_COARSE},
		.order = "GROUP BY source, op HAVING calls > 0 ORDER BY ns DESC"},
	[NODEDB_CHAINS] = {.table = "causal_chains",
		.all = TABLE_CHAINS,
		.scope = {.time = "detected_at"},
		.order = "ORDER BY detected_at DESC, id DESC"},
	[NODEDB_WORST_CHAINS] = {.table = "causal_chains",
		.all = TABLE_CHAINS,
		.scope = {.time = "detected_at"},
		.order = "ORDER BY CASE severity WHEN 'CRITICAL' THEN 0 WHEN 'HIGH' THEN 1 WHEN"
			 " 'MEDIUM' THEN 2 WHEN 'LOW' THEN 3 ELSE 4 END, detected_at DESC, id"},
	[NODEDB_SEVERITIES] = {.table = "causal_chains",
		.columns = severities,
		.scope = {.time = "detected_at"},
		.order = "GROUP BY 1 ORDER BY 2 DESC"},
	[NODEDB_ACTIVE] = {.table = "incidents",
		.columns = severities,
		.scope = {.time = "last_seen"},
		.also = "resolved_at = 0",
		.order = "GROUP BY 1 ORDER BY 2 DESC"},
	[NODEDB_INCIDENTS] = {.table = "incidents",
		.columns = incidents,
		.order = "ORDER BY last_seen DESC, id"},
	[NODEDB_SNAPSHOTS] = {.table = "system_snapshots",
		.all = TABLE_SAMPLES,
		.scope = {.time = "timestamp"},
		.order = "ORDER BY timestamp DESC"},
	[NODEDB_GPU_SAMPLES] = {.table = "gpu_samples",
		.all = TABLE_GPU_SAMPLES,
		.scope = {.time = "timestamp"},
		.order = "ORDER BY timestamp DESC, node, gpu"},
	[NODEDB_OVERHEAD] = {.table = "overhead",
		.all = TABLE_OVERHEAD,
		.scope = {.time = "timestamp"},
		.order = "ORDER BY timestamp DESC"},
	[NODEDB_GRAPH_EVENTS] = {.table = "events",
		.columns = graph_events,
		.scope = {.time = "timestamp", .pid = "pid"},
		.also = "source = 8",
		.ours = "flags & 1 = 0", /* the driver's call inside the runtime's is the same one */
		.order = "ORDER BY timestamp DESC"},
	[NODEDB_KERNELS] = {.table = "kernels",
		.columns = kernels,
		.scope = {.pid = "pid"},
		.order = "GROUP BY name, origin ORDER BY 3 DESC, name"},
	[NODEDB_ACCOUNTING] = {.table = "accounting",
		.all = TABLE_ACCOUNTING,
		.order = "ORDER BY session_id DESC, node, source"},
	[NODEDB_LOSSES] = {.table = "losses",
		.all = TABLE_LOSSES,
		.also = "count > 0",
		.order = "ORDER BY session_id DESC, node, source, count DESC"},
	[NODEDB_CPU_LOSSES] = {.table = "losses_by_cpu",
		.all = TABLE_CPU_LOSSES,
		.also = "count > 0",
		.order = "ORDER BY session_id DESC, count DESC"},
	[NODEDB_CALL_GAPS] = {.table = "call_gaps",
		.all = TABLE_CALL_GAPS,
		.order = "ORDER BY duration DESC, timestamp"},
	[NODEDB_PRUNED] = {.table = "pruned",
		.all = TABLE_PRUNED,
		.order = "ORDER BY session_id DESC, table_name"},
};

/* ---- lists ---- */

static int put_column(struct nodedb_snapshot *l, const char *table, const struct list_column *c,
	struct buf *sql, struct errinfo *reterr)
{
	int found = reader_has_column(&l->reader, table, c->column, reterr);

	if (found < 0)
		return found;
	buf_printf(sql, "%s AS \"%s\", ",
		!found    ? c->otherwise ? c->otherwise : "NULL"
		: c->what ? c->what
			  : c->column,
		c->key);
	return 0;
}

/* What @row says of the column @key of its table; NULL: nothing. */
static const struct list_column *find_column(const struct list_row *row, const char *key)
{
	return FIND_ROW(c, row->columns, key, !strcmp(c->key, key));
}

static int put_columns(struct nodedb_snapshot *l, const struct list_row *row, struct buf *sql,
	struct errinfo *reterr)
{
	const struct table *all = row->all ? &node_tables[row->all] : NULL;
	int r = 0;

	buf_puts(sql, "SELECT ");
	for (const struct list_column *c = row->columns; r == 0 && c && c->key; c++)
		if (!all || table_place(all, c->key) == table_place(all, NULL))
			r = put_column(l, row->table, c, sql, reterr);
	for (const struct column *c = all ? all->columns : NULL; c && c < all->columns + all->count;
		c++) {
		struct list_column it = {c->json ? c->json : c->name, c->name, NULL, c->otherwise};
		const struct list_column *said = find_column(row, it.key);

		if (r == 0 && c->kind != COLUMN_DECLARED)
			r = put_column(l, row->table, said ? said : &it, sql, reterr);
	}
	if (sql->len >= 2)
		sql->len -= 2; /* the last comma */
	buf_printf(sql, " FROM %s", row->table);
	return r;
}

/* Time by call stack, of calls that are not part of others; a question for one op is for that one.
 */
static int put_stack_totals(
	struct nodedb_snapshot *l, const struct scope *s, struct buf *sql, struct errinfo *reterr)
{
	bool weighs = nodedb_snapshot_is_ours(l);
	int named = reader_has_column(&l->reader, "events", "comm", reterr);
	int r = MIN(named, 0);

	if (r < 0)
		return r;
	buf_printf(sql,
		"SELECT source, op, stack_hash AS hash, CAST(total(weight) AS INTEGER) AS n,"
		" total(duration * 1.0 * weight) AS ns, min(duration) AS min, max(duration) AS max,"
		" group_concat(DISTINCT pid || ' ' || comm) AS processes, count(*) AS rows FROM (SELECT source, op,"
		" stack_hash, duration, pid, %s AS weight, %s AS comm FROM events",
		weighs ? "weight" : "1", named ? "comm" : "''");
	r = reader_where_of(&l->reader, s, "events",
		(struct scope_columns){.time = "timestamp", .pid = "pid", .op = true}, sql, reterr);
	if (!s->source)
		buf_puts(sql, " AND " OP_KIND_GPU_SQL);
	if (weighs && !s->op)
		buf_puts(sql, " AND flags & 1 = 0");
	buf_puts(sql, " AND typeof(duration) = 'integer' AND duration >= 0) GROUP BY source, op,"
		      " stack_hash ORDER BY ns DESC");
	return r;
}

static int put_list(struct nodedb_snapshot *l, const struct list_row *row, const struct scope *s,
	struct buf *sql, struct errinfo *reterr)
{
	int r = put_columns(l, row, sql, reterr);

	if (r < 0)
		return r;
	r = reader_where_of(&l->reader, s, row->table, row->scope, sql, reterr);
	if (row->also)
		buf_printf(sql, " AND %s", row->also);
	if (row->ours && nodedb_snapshot_is_ours(l))
		buf_printf(sql, " AND %s", row->ours);
	buf_printf(sql, " %s", row->order);
	return r;
}

static int collect(sql_stmt *stmt, size_t limit, struct sql_table *t, struct errinfo *reterr)
{
	int r = sql_table_begin(t, stmt, NODEDB_LIST_BYTES);

	while (r == 0 && (r = sql_step(stmt, reterr)) > 0) {
		t->truncated = t->row_count == limit;
		if (t->truncated)
			return 0;
		r = sql_table_add(t, stmt);
		if (r == -ENOBUFS) {
			t->truncated = true;
			return 0;
		}
	}
	return r;
}

/* What of a process a published file knows stands elsewhere; of a short time the finer buckets
 * tell. */
static const struct list_row *find_row(
	struct nodedb_snapshot *l, enum nodedb_list list, const struct scope *s)
{
	static const struct list_row fine_calls = {.table = "event_aggregates_5s",
		.columns = calls,
		.scope = {.time = "bucket", .pid = "pid", .width_ns = NODEDB_BUCKET_FINE},
		.also = OP_KIND_GPU_SQL,
		.order = "GROUP BY pid ORDER BY 2 DESC"};
	static const struct list_row names = {.table = "process_names",
		.all = TABLE_PROCESSES,
		.columns = process_names,
		.scope = {.pid = "pid"},
		.order = "ORDER BY seen_at DESC, pid"};

	static const struct list_row uncovered = {.table = "processes",
		.all = TABLE_PROCESSES,
		.scope = {.time = "first_seen", .pid = "pid"},
		.order = "ORDER BY last_seen DESC, pid"};

	if (!nodedb_snapshot_is_ours(l))
		return list == NODEDB_PROCESSES ? &names : &rows[list];
	if (list == NODEDB_PROCESSES && schema_has_table(l->reader.sql, "coverage", NULL) <= 0)
		return &uncovered;
	return list == NODEDB_CALLS && scope_bucket_ns(s) == (int64_t)NODEDB_BUCKET_FINE
		       ? &fine_calls
		       : &rows[list];
}

int nodedb_snapshot_list(struct nodedb_snapshot *l, enum nodedb_list list, const struct scope *s,
	size_t limit, struct sql_table *ret, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_(sql_table_done) struct sql_table t = {0};
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	const struct list_row *row = find_row(l, list, s);
	bool totals = list == NODEDB_STACK_TOTALS;
	int r = totals ? 1 : schema_has_table(l->reader.sql, row->table, reterr);

	if (r < 0)
		return r;
	if (r == 0) {
		*ret = (struct sql_table){0};
		return 0;
	}
	r = totals ? put_stack_totals(l, s, &sql, reterr) : put_list(l, row, s, &sql, reterr);
	r = r ?: reader_prepare(&l->reader, &sql, &stmt, reterr);
	r = r ?: collect(stmt, limit ? limit : NODEDB_LIST_MAX, &t, reterr);
	if (r < 0)
		return r;
	*ret = t;
	t = (struct sql_table){0};
	return 0;
}
