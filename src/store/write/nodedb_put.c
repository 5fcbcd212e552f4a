/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_put.c - writing rows: what is not in a row's struct, and what takes several statements. Columns and
 * statements are those of schema/tables.c. Same thread as nodedb.c.
 *
 * Invariant: whatever takes several statements is one transaction, the caller's batch if it has one. */
#include <math.h>

#include "store/schema/incident_table.h"
#include "store/nodedb_private.h"
#include "base/buf.h"
#include "demangle/demangle.h"
#include "wire/names.h"

#define JSON_MAX        (64 << 10)
#define CMDLINE_MAX     4096
#define COUNT_COLUMN(v) SQL_I(MIN((uint64_t)(v), (uint64_t)INT64_MAX))

#define AGGREGATE_GET(table)                                                                       \
	"SELECT sketch FROM " table " WHERE bucket = ?1 AND source = ?2 AND op = ?3 AND pid = ?4"  \
	" AND nested = ?5"

static int prepare(struct nodedb *db, unsigned which, sql_stmt **ret, struct errinfo *reterr)
{
	static const char *const texts[STATEMENT_COUNT] = {
		[STATEMENT_FINE_GET] = AGGREGATE_GET("event_aggregates_5s"),
		[STATEMENT_COARSE_GET] = AGGREGATE_GET("event_aggregates"),
		[STATEMENT_SESSION_PLACE] =
			"UPDATE sessions SET rank = ?2, local_rank = ?3, world_size = ?4 WHERE id = ?1",
	};
	_cleanup_buf_ struct buf sql = BUF_INIT(INCIDENT_TABLE_TEXT);

	if (which < TABLE_COUNT)
		table_insert(&node_tables[which], &sql);
	else if (which == STATEMENT_INCIDENT)
		incident_table_insert(&sql);
	else
		buf_puts(&sql, texts[which]);
	return sql_prepare_buf(db->sql, &sql, ret, reterr);
}

/* The compiled statement, the store's. */
static int nodedb_statement(
	struct nodedb *db, enum nodedb_statement which, sql_stmt **ret, struct errinfo *reterr)
{
	int r = db->statements[which] ? 0 : prepare(db, which, &db->statements[which], reterr);

	*ret = db->statements[which];
	return r;
}

int nodedb_put_row(struct nodedb *db, enum node_table table, const void *row,
	const struct sql_value *given, struct errinfo *reterr)
{
	struct sql_value values[TABLE_COLUMNS_MAX];
	sql_stmt *stmt;
	int r = nodedb_statement(db, (enum nodedb_statement)table, &stmt, reterr);

	if (r < 0)
		return r;
	return sql_put(stmt, values,
		table_values(&node_tables[table], db->node, row, given, values), reterr);
}

/* nodedb_atomically - one transaction around @write unless the caller has one. */
static int nodedb_atomically(struct nodedb *db,
	int (*write)(struct nodedb *db, void *arg, struct errinfo *reterr), void *arg,
	struct errinfo *reterr)
{
	int r;

	if (db->sql && sql_in_batch(db->sql))
		return write(db, arg, reterr);
	r = nodedb_batch_begin(db, reterr);
	if (r < 0)
		return r;
	r = write(db, arg, reterr);
	if (r < 0) {
		nodedb_batch_rollback(db);
		return r;
	}
	return nodedb_batch_commit(db, reterr);
}

struct aggregate_args {
	bool coarse;
	const struct aggregate *aggregate;
};

/* The histogram the bucket's row holds already, added to @s. A damaged one is left out: the counts
 * are columns of their own and stay exact. */
static int add_stored_sketch(struct nodedb *db, const struct aggregate_args *args,
	const struct sql_value key[5], struct sketch *s, struct errinfo *reterr)
{
	const void *blob;
	sql_stmt *get;
	size_t len;
	int r = nodedb_statement(
		db, args->coarse ? STATEMENT_COARSE_GET : STATEMENT_FINE_GET, &get, reterr);

	r = r ?: sql_bind(get, key, 5, reterr);
	if (r < 0)
		return r;
	r = sql_step(get, reterr);
	if (r <= 0)
		return r;
	blob = sql_column_blob(get, 0, &len);
	if (blob)
		(void)sketch_decode(s, blob, len);
	sql_reset(get);
	return 0;
}

static int write_aggregate(struct nodedb *db, void *arg, struct errinfo *reterr)
{
	const struct aggregate_args *args = arg;
	const struct aggregate *a = args->aggregate;
	const struct sketch *s = &a->sketch;
	_cleanup_free_ struct sketch *merged = malloc(sizeof(*merged));
	_cleanup_free_ uint8_t *blob = malloc(SKETCH_BLOB_MAX);
	struct sql_value key[5] = {SQL_I(a->bucket.ns), SQL_I(a->source), SQL_I(a->op),
		SQL_I(a->pid), SQL_I(a->flags & WIRE_NESTED ? 1 : 0)};
	int r;

	if (!merged || !blob)
		return -ENOMEM;
	*merged = *s;
	r = add_stored_sketch(db, args, key, merged, reterr);
	if (r < 0)
		return r;
	return NODEDB_PUT(db, args->coarse ? TABLE_COARSE : TABLE_FINE, NULL, reterr, key[0],
		key[1], key[2], key[3], key[4], COUNT_COLUMN(s->count), COUNT_COLUMN(a->stored),
		COUNT_COLUMN(s->sum), COUNT_COLUMN(s->min), COUNT_COLUMN(s->max),
		COUNT_COLUMN(a->sum_arg0), SQL_B(blob, sketch_encode(merged, blob)));
}

int nodedb_add_aggregate(
	struct nodedb *db, bool coarse, const struct aggregate *a, struct errinfo *reterr)
{
	struct aggregate_args args = {.coarse = coarse, .aggregate = a};

	return nodedb_atomically(db, write_aggregate, &args, reterr);
}

int nodedb_put_of(struct nodedb *db, enum nodedb_row which, const void *row, struct errinfo *reterr)
{
	static const enum node_table tables[] = {[NODEDB_ROW_HOST] = TABLE_SAMPLES,
		[NODEDB_ROW_GPU] = TABLE_GPU_SAMPLES,
		[NODEDB_ROW_CONTAINER] = TABLE_CONTAINERS,
		[NODEDB_ROW_OVERHEAD] = TABLE_OVERHEAD,
		[NODEDB_ROW_CGROUP] = TABLE_GROUPS,
		[NODEDB_ROW_TEXT] = TABLE_NAMES};

	return nodedb_put_row(db, tables[which], row, NULL, reterr);
}

int nodedb_put_event(struct nodedb *db, struct event *e, struct errinfo *reterr)
{
	char text[EVENT_PEER_MAX];
	const char *peer = event_peer(e, text);
	int r = NODEDB_PUT(db, TABLE_EVENTS, e, reterr, SQL_I(db->next_seq),
		SQL_SN(event_peer_comm(e), COMM_LEN), SQL_S(peer));

	if (r < 0)
		return r;
	e->seq = db->next_seq++;
	return 0;
}

int nodedb_put_ledger(struct nodedb *db, const struct ledger_row *row, struct errinfo *reterr)
{
	bool is_stay = row->mark == MARK_STAY && row->stay_line < LEDGER_LINES;

	return NODEDB_PUT(db, TABLE_LEDGER, row, reterr,
		SQL_S(is_stay ? ledger_columns[row->stay_line] : ""));
}

/* Numbers of one rank are negative. A Send or Recv has none, but for one whose communicator's earlier ones are not
 * known. */
int nodedb_put_collective(struct nodedb *db, const struct event *e, const struct collective *c,
	struct errinfo *reterr)
{
	struct collective_row row = {.start = e->start,
		.dur_ns = e->dur_ns,
		.pid = e->pid,
		.tid = e->tid,
		.device = e->device,
		.ret = e->ret,
		.stream = e->stream,
		.c = *c};
	bool is_point = e->op == NCCL_SEND || e->op == NCCL_RECV;

	row.c.span_ns = MAX(c->span_ns, INT64_C(0));
	return NODEDB_PUT(db, TABLE_COLLECTIVES, &row, reterr,
		is_point && (int64_t)c->seq >= 0 ? SQL_NOTHING : SQL_I(c->seq),
		SQL_S(WIRE_NCCL_NAME(e->op)));
}

struct process_args {
	const struct process *process;
	const char *cmdline;
};

static int write_process(struct nodedb *db, void *arg, struct errinfo *reterr)
{
	const struct process_args *args = arg;
	int r = NODEDB_PUT(
		db, TABLE_PROCESSES, args->process, reterr, SQL_SN(args->cmdline, CMDLINE_MAX));

	return r < 0 ? r : nodedb_put_row(db, TABLE_PROCESS_NAMES, args->process, NULL, reterr);
}

int nodedb_put_process(
	struct nodedb *db, const struct process *p, const char *cmdline, struct errinfo *reterr)
{
	struct process_args args = {p, cmdline ? cmdline : ""};

	return nodedb_atomically(db, write_process, &args, reterr);
}

int nodedb_put_stack(struct nodedb *db, const struct stack_row *row, struct errinfo *reterr)
{
	return NODEDB_PUT(db, TABLE_STACKS, row, reterr, SQL_I(row->hash),
		SQL_SN(row->ips, row->ips_len), SQL_SN(row->frames, row->frames_len),
		SQL_SN(row->stop, row->stop_len));
}

/* A mangled name that was cut cannot be read: it stays as it is. */
int nodedb_put_kernel(struct nodedb *db, const struct kernel_row *k, struct errinfo *reterr)
{
	static const char *const origins[] = {
#define X(NAME, name, what) name,
		KERNEL_ORIGINS(X)
#undef X
	};
	char name[KERNEL_NAME_MAX];

	if (k->is_cut)
		snprintf(name, KERNEL_NAME_MAX, "%.*s…", KERNEL_NAME_MAX - 4, k->name);
	else
		demangle(k->name, name, KERNEL_NAME_MAX);
	return NODEDB_PUT(db, TABLE_KERNELS, k, reterr, SQL_S(name),
		SQL_S(origins[k->origin % ARRAY_SIZE(origins)]));
}

struct layers_args {
	int64_t session;
	uint32_t pid;
	uint64_t start_ticks;
	const struct process_layers *layers;
};

static int write_layers(struct nodedb *db, void *arg, struct errinfo *reterr)
{
	const struct layers_args *a = arg;
	int r = 0;

	for (int i = 0; r >= 0 && i < LAYER_COUNT; i++) {
		const struct layer_row *row = &a->layers->rows[i];

		r = NODEDB_PUT(db, TABLE_COVERAGE, row, reterr, SQL_I(a->session), SQL_I(a->pid),
			SQL_I(a->start_ticks), SQL_S(layer_name((enum layer)i)),
			SQL_S(layer_state_name(row->state)), SQL_S(row->detail),
			SQL_I(row->since.ns));
	}
	return r;
}

int nodedb_put_layers(struct nodedb *db, int64_t session, uint32_t pid, uint64_t start_ticks,
	const struct process_layers *l, struct errinfo *reterr)
{
	struct layers_args args = {session, pid, start_ticks, l};

	return nodedb_atomically(db, write_layers, &args, reterr);
}

int nodedb_put_call_gap(
	struct nodedb *db, int64_t session, const struct call_gap *g, struct errinfo *reterr)
{
	return NODEDB_PUT(db, TABLE_CALL_GAPS, g, reterr, SQL_I(session), SQL_I(call_gap_ns(g)),
		SQL_S(call_gap_reason_name(g->reason)));
}

int nodedb_session_begin(struct nodedb *db, struct session *s, struct errinfo *reterr)
{
	int r = NODEDB_PUT(db, TABLE_SESSIONS, s, reterr, SQL_NOTHING, SQL_NOTHING, SQL_NOTHING);

	if (r == 0)
		s->id = sql_last_id(db->sql);
	return r;
}

int nodedb_session_place(
	struct nodedb *db, int64_t session, struct placement place, struct errinfo *reterr)
{
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_SESSION_PLACE, &stmt, reterr);

	return r
		       ?: SQL_PUT(stmt, reterr, SQL_I(session), table_rank(&place, 0),
				  table_rank(&place, 1), table_rank(&place, 2));
}

struct accounting_args {
	int64_t session;
	const struct accounting *books;
};

static int write_account(struct nodedb *db, int64_t session, unsigned source,
	const struct account *a, struct errinfo *reterr)
{
	uint64_t lost = account_lost(a);
	int r;

	/* Known sources have a row even if nothing happened: its absence means a killed session. */
	if (!a->hits && !a->stored && !a->aggregated && !lost &&
		!(FIND_ROW(s, wire_sources, json, s->id == source)))
		return 0;
	r = NODEDB_PUT(db, TABLE_ACCOUNTING, a, reterr, SQL_I(session), SQL_I(source),
		SQL_I(a->hits), SQL_I(a->stored), SQL_I(a->aggregated), SQL_I(lost));
	for (int i = 0; r >= 0 && i < LOSS_COUNT; i++)
		if (a->lost[i])
			r = NODEDB_PUT(db, TABLE_LOSSES, a, reterr, SQL_I(session), SQL_I(source),
				SQL_S(wire_losses[i].name), SQL_I(a->lost[i]));
	return r;
}

static int write_accounting(struct nodedb *db, void *arg, struct errinfo *reterr)
{
	const struct accounting_args *args = arg;
	char sql[128];
	int r = 0;

	snprintf(sql, sizeof(sql),
		"DELETE FROM accounting WHERE session_id = %lld; "
		"DELETE FROM losses WHERE session_id = %lld",
		(long long)args->session, (long long)args->session);
	r = sql_exec(db->sql, sql, reterr);
	for (unsigned s = 0; r >= 0 && s < WIRE_SOURCE_MAX; s++)
		r = write_account(db, args->session, s, &args->books->source[s], reterr);
	return r;
}

struct cpu_losses_args {
	int64_t session;
	const struct cpu_losses *losses;
};

static int write_cpu_losses(struct nodedb *db, void *arg, struct errinfo *reterr)
{
	const struct cpu_losses_args *args = arg;
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < args->losses->count; i++) {
		const struct cpu_loss *l = &args->losses->rows[i];

		r = NODEDB_PUT(db, TABLE_CPU_LOSSES, l, reterr, SQL_I(args->session),
			SQL_I(l->source), SQL_S(wire_losses[l->reason].name), SQL_I(l->cpu),
			SQL_I(l->count));
	}
	return r;
}

int nodedb_put_cpu_losses(
	struct nodedb *db, int64_t session, const struct cpu_losses *l, struct errinfo *reterr)
{
	struct cpu_losses_args args = {session, l};

	return nodedb_atomically(db, write_cpu_losses, &args, reterr);
}

int nodedb_put_accounting(
	struct nodedb *db, int64_t session, const struct accounting *a, struct errinfo *reterr)
{
	struct accounting_args args = {session, a};

	return nodedb_atomically(db, write_accounting, &args, reterr);
}

struct incident_args {
	const struct incident *incident;
	wall_time detected;
};

static int write_chain_row(struct nodedb *db, const struct incident *i, const char *id,
	wall_time detected, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf fixes = BUF_INIT(JSON_MAX);
	_cleanup_buf_ struct buf timeline = BUF_INIT(JSON_MAX);
	char scratch[32];

	incident_json_fixes(i, &fixes);
	incident_json_timeline(i, &timeline);
	if (fixes.err || timeline.err)
		return fixes.err ? fixes.err : timeline.err;
	return NODEDB_PUT(db, TABLE_CHAINS, i, reterr, SQL_S(id), SQL_I(detected.ns),
		SQL_S(severity_name(i->severity)), SQL_S(i->summary), SQL_S(i->root_cause),
		SQL_S(i->explanation), SQL_S(buf_str(&fixes)),
		SQL_S(wire_op_name(i->source, i->op, scratch)), SQL_I(i->p99_ns / NS_PER_US),
		SQL_I(i->p50_ns / NS_PER_US), SQL_R(isfinite(i->tail_ratio) ? i->tail_ratio : 0.0),
		SQL_S(buf_str(&timeline)));
}

static int write_incident(struct nodedb *db, void *arg, struct errinfo *reterr)
{
	const struct incident_args *args = arg;
	const struct incident *i = args->incident;
	bool has_node = !db->node_len ||
			(!strncmp(i->id, db->node, db->node_len) && i->id[db->node_len] == ':');
	sql_stmt *stmt;
	char id[512];
	int r;

	snprintf(id, sizeof(id), "%s%s%s", has_node ? "" : db->node, has_node ? "" : ":", i->id);
	r = nodedb_statement(db, STATEMENT_INCIDENT, &stmt, reterr);
	r = r
		    ?: incident_table_put(stmt, i,
			       &(struct incident_origin){id, db->node, args->detected}, reterr);
	if (r < 0)
		return r;
	return write_chain_row(db, i, id, args->detected, reterr);
}

int nodedb_put_incident(
	struct nodedb *db, const struct incident *i, wall_time detected, struct errinfo *reterr)
{
	struct incident_args args = {i, detected};

	return nodedb_atomically(db, write_incident, &args, reterr);
}

int nodedb_put_annotation(
	struct nodedb *db, const struct annotation *a, int64_t *ret_id, struct errinfo *reterr)
{
	int r = nodedb_put_row(db, TABLE_ANNOTATIONS, a, NULL, reterr);

	if (r == 0)
		*ret_id = sql_last_id(db->sql);
	return r;
}

int nodedb_put_pruned(struct nodedb *db, int64_t session, const char *table, uint64_t rows,
	int64_t oldest_ns, int64_t newest_ns, struct errinfo *reterr)
{
	int r = NODEDB_PUT(db, TABLE_PRUNED, NULL, reterr, SQL_I(session), SQL_S(table),
		COUNT_COLUMN(rows), SQL_I(oldest_ns), SQL_I(newest_ns));

	if (r == 0)
		db->pruned_rows += rows;
	return r;
}

uint64_t nodedb_pruned(const struct nodedb *db)
{
	return db->pruned_rows;
}
