/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_table.c - tables that are loaded as they are: samples, collectives, the ledger.
 *
 * Collectives, ledger and control groups are not selected by the filter's pids: who came last shows only beside
 * the other ranks, and what a thread waited for is in the rows of others. */
#include "store/read/nodedb_reader.h"
#include "store/read/nodedb_recent.h"
#include "wire/names.h"

int reader_select_of(struct reader *r, const char *table, const struct column *columns,
	size_t count, const char *also, struct buf *sql, struct errinfo *reterr)
{
	struct reader_column names[TABLE_COLUMNS_MAX + 2];
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (columns[i].kind != COLUMN_DECLARED)
			names[n++] = (struct reader_column){columns[i].name, columns[i].otherwise};
	names[n++] = (struct reader_column){also, also};
	names[n] = (struct reader_column){NULL, NULL};
	return reader_select(r, table, names, sql, reterr);
}

/* reader_row - table_read() of the columns of reader_select_of(). */
static bool reader_row(const struct table *t, sql_stmt *stmt, void *row)
{
	struct sql_value values[TABLE_COLUMNS_MAX];
	int i = 0;

	for_each_column (c, t) {
		values[i] = sql_column_value(stmt, i);
		i++;
	}
	return table_read(t, values, row);
}

/* comm is the communicator's hash, which all its ranks share. 0 for a seq of NULL; a rank's own are negative. */
static bool finish_collective(sql_stmt *stmt, const int *places, void *ret)
{
	int seq = places[0], op = places[1];
	struct collective_row *row = ret;
	const struct wire_op_row *found;
	char name[40] = "nccl";
	int64_t number = 0;

	if (sql_column_type(stmt, seq) != SQL_NULL && !sql_column_is_int(stmt, seq, &number))
		return false;
	row->c.seq = (uint64_t)number;
	if (!reader_text(stmt, op, name + 4, sizeof(name) - 4) ||
		!reader_text(stmt, 0, row->node, sizeof(row->node)))
		return false;
	found = wire_op_by_name(name);
	if (!found || found->source != SOURCE_NCCL)
		return false;
	row->op = found->op;
	return true;
}

/* The lines of a row add up to its duration: a row with more is damaged; what a file does not say because it
 * knows a line that this reader does not is `blocked`, "anything else". So is the line of such a stay. */
static bool finish_ledger(sql_stmt *stmt, const int *places, void *ret)
{
	struct ledger_row *row = ret;
	uint64_t rest = row->dur_ns;
	char name[32];

	for (int i = 0; i < LEDGER_LINES; i++) {
		if (row->ns[i] > rest)
			return false;
		rest -= row->ns[i];
	}
	row->ns[LEDGER_BLOCKED] += rest;
	if (!reader_text(stmt, places[0], name, sizeof(name)))
		return false;
	row->stay_line = name[0] ? LEDGER_BLOCKED : 0;
	for (uint8_t i = 0; i < LEDGER_LINES; i++)
		if (!strcmp(name, ledger_columns[i]))
			row->stay_line = i;
	return row->start.ns <= INT64_MAX / 2;
}

/* ---- loading ---- */

static const struct loaded {
	enum node_table table;
	const char *order; /* of rows of one moment */
	bool of_all_nodes, is_asked_for;
	size_t row_bytes, max;
	size_t items, count, older; /* members of struct nodedb_content; older 0: not counted */
	/* After reader_row(); NULL: nothing to do. @places: where the columns in `given` are. */
	bool (*finish)(sql_stmt *stmt, const int *places, void *row);
	const char *given[2];
} loaded[] = {
#define INTO(member, n)                                                                            \
	.row_bytes = sizeof(*((struct nodedb_content *)0)->member),                                \
	.items = offsetof(struct nodedb_content, member),                                          \
	.count = offsetof(struct nodedb_content, n)
#define OLDER(member) .older = offsetof(struct nodedb_content, member)
	{.table = TABLE_SAMPLES,
		.order = "rowid DESC",
		INTO(samples, sample_count),
		.max = NODEDB_SAMPLES_MAX},
	{.table = TABLE_GPU_SAMPLES,
		.order = "gpu DESC",
		INTO(gpu_samples, gpu_sample_count),
		OLDER(older_gpu_samples),
		.max = NODEDB_GPU_MAX},
	{.table = TABLE_COLLECTIVES,
		.order = "rowid DESC",
		.of_all_nodes = true,
		INTO(collectives, collective_count),
		OLDER(older_collectives),
		.max = NODEDB_COLLECTIVES_MAX,
		.finish = finish_collective,
		.given = {"seq", "op"}},
	{.table = TABLE_LEDGER,
		.order = "rowid DESC",
		.is_asked_for = true,
		INTO(ledger, ledger_count),
		OLDER(older_ledger),
		.max = NODEDB_LEDGER_MAX,
		.finish = finish_ledger,
		.given = {"stay_line"}},
	{.table = TABLE_CONTAINERS,
		.order = "cgroup_id DESC",
		.is_asked_for = true,
		INTO(containers, container_count),
		OLDER(older_containers),
		.max = NODEDB_CONTAINERS_MAX},
};

static int select_newest(
	struct reader *r, const struct loaded *t, sql_stmt **ret, struct errinfo *reterr)
{
	const struct scope_columns by_time = {.time = "timestamp"};
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	const struct table *table = &node_tables[t->table];
	int res =
		reader_select_of(r, table->name, table->columns, table->count, NULL, &sql, reterr);

	if (res < 0)
		return res;
	if (t->of_all_nodes)
		scope_where(&r->filter->scope, &by_time, &sql);
	else
		res = reader_where(r, table->name, by_time, &sql, reterr);
	if (res < 0)
		return res;
	buf_printf(&sql, " ORDER BY timestamp DESC, %s", t->order);
	return reader_prepare(r, &sql, ret, reterr);
}

struct loading {
	const struct loaded *what;
	int places[2]; /* of what->given */
};

static bool read_loaded(sql_stmt *stmt, void *arg, void *row)
{
	const struct loading *l = arg;

	memset(row, 0, l->what->row_bytes);
	return reader_row(&node_tables[l->what->table], stmt, row) &&
	       (!l->what->finish || l->what->finish(stmt, l->places, row));
}

int reader_load_rows(struct reader *r, enum node_table table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	const struct table *described = &node_tables[table];
	const struct loaded *t = loaded;
	char *content = (char *)r->content;
	struct loading loading;
	int res;

	while (t->table != table)
		t++;
	if (t->is_asked_for && !r->filter->ledger)
		return 0;
	loading = (struct loading){
		t, {table_place(described, t->given[0]), table_place(described, t->given[1])}};
	res = schema_has_table(r->sql, described->name, reterr);
	if (res > 0)
		res = select_newest(r, t, &stmt, reterr);
	if (res >= 0)
		res = reader_collect(stmt,
			&(struct reader_rows){.items = content + t->items,
				.count = (size_t *)(content + t->count),
				.bytes = t->row_bytes,
				.max = t->max,
				.read = read_loaded,
				.arg = &loading,
				.skipped = &r->content->skipped_rows,
				.older = t->older ? (uint64_t *)(content + t->older) : NULL},
			reterr);
	reader_reverse(
		*(char **)(content + t->items), *(size_t *)(content + t->count), t->row_bytes);
	return res;
}

int nodedb_recent_collectives(struct nodedb_snapshot *l, int64_t after, size_t max,
	recent_collective_fn *fn, void *arg, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(4096);
	const struct table *t = &node_tables[TABLE_COLLECTIVES];
	int number = table_place(t, NULL), r;
	int places[] = {table_place(t, "seq"), table_place(t, "op")};

	if (!nodedb_snapshot_is_ours(l))
		return -ENOTSUP;
	r = reader_select_of(&l->reader, t->name, t->columns, t->count, "rowid", &sql, reterr);
	if (r < 0)
		return r;
	buf_printf(&sql, " WHERE rowid > %lld ORDER BY rowid LIMIT %zu", (long long)after, max);
	r = reader_prepare(&l->reader, &sql, &stmt, reterr);
	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0) {
		struct collective_row row = {0};
		bool is_sound = reader_row(t, stmt, &row) && finish_collective(stmt, places, &row);

		r = fn(arg, sql_column_int(stmt, number), is_sound ? &row : NULL);
		if (r < 0)
			return r;
	}
	return r;
}
