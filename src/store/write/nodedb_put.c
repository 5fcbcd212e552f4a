/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_put.c - writing everything that is not an event: aggregates, host samples, the books,
 * incidents, annotations. Same thread as nodedb.c.
 *
 * Invariant: whatever takes several statements is one transaction, the caller's batch if it has
 * one. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "store/schema/incident_json.h"
#include "store/schema/incident_table.h"
#include "store/nodedb_private.h"
#include "base/buf.h"
#include "wire/names.h"

#define JSON_MAX        (64 << 10)
#define COUNT_COLUMN(v) SQL_I(MIN((uint64_t)(v), (uint64_t)INT64_MAX))

int nodedb_atomically(struct nodedb *db,
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
	int r;

	r = nodedb_statement(
		db, args->coarse ? STATEMENT_COARSE_GET : STATEMENT_FINE_GET, &get, reterr);
	if (r < 0)
		return r;
	r = sql_bind(get, key, 5, reterr);
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
	_cleanup_free_ struct sketch *merged = malloc(sizeof(*merged));
	_cleanup_free_ uint8_t *blob = malloc(SKETCH_BLOB_MAX);
	struct sql_value values[12] = {SQL_I(a->bucket.ns), SQL_I(a->source), SQL_I(a->op),
		SQL_I(a->pid), SQL_I(a->flags & WIRE_NESTED ? 1 : 0), COUNT_COLUMN(a->sketch.count),
		COUNT_COLUMN(a->stored), COUNT_COLUMN(a->sketch.sum), COUNT_COLUMN(a->sketch.min),
		COUNT_COLUMN(a->sketch.max), COUNT_COLUMN(a->sum_arg0)};
	sql_stmt *put;
	int r;

	if (!merged || !blob)
		return -ENOMEM;
	*merged = a->sketch;
	r = add_stored_sketch(db, args, values, merged, reterr);
	if (r < 0)
		return r;
	values[11] = SQL_B(blob, sketch_encode(merged, blob));
	r = nodedb_statement(
		db, args->coarse ? STATEMENT_COARSE_PUT : STATEMENT_FINE_PUT, &put, reterr);
	if (r < 0)
		return r;
	return sql_put(put, values, ARRAY_SIZE(values), reterr);
}

int nodedb_add_aggregate(
	struct nodedb *db, bool coarse, const struct aggregate *a, struct errinfo *reterr)
{
	struct aggregate_args args = {.coarse = coarse, .aggregate = a};

	return nodedb_atomically(db, write_aggregate, &args, reterr);
}

static struct sql_value known(double v)
{
	return v >= 0 ? SQL_R(v) : SQL_NOTHING;
}

int nodedb_put_sample(struct nodedb *db, const struct host_sample *s, struct errinfo *reterr)
{
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_SAMPLE, &stmt, reterr);

	if (r < 0)
		return r;
	return SQL_PUT(stmt, reterr, SQL_I(s->time.ns), SQL_R(s->cpu_pct), SQL_R(s->mem_pct),
		SQL_I(s->mem_avail_mb), SQL_I(s->swap_mb), SQL_R(s->load1), SQL_S(db->node),
		SQL_I(s->mem_total_mb), known(s->load5), known(s->major_faults_per_s),
		known(s->psi_cpu_pct), known(s->psi_memory_pct), known(s->psi_io_pct),
		known(s->busiest_cpu_pct), s->busiest_cpu < 0 ? SQL_NOTHING : SQL_I(s->busiest_cpu),
		s->swap_total_mb < 0 ? SQL_NOTHING : SQL_I(s->swap_total_mb), known(s->steal_pct),
		known(s->iowait_pct));
}

int nodedb_put_overhead(struct nodedb *db, const struct overhead *o, struct errinfo *reterr)
{
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_OVERHEAD, &stmt, reterr);

	if (r < 0)
		return r;
	return SQL_PUT(stmt, reterr, SQL_S(db->node), SQL_I(o->time.ns), SQL_R(o->share),
		SQL_R(o->budget), SQL_R(o->hit_ns), SQL_I(o->launch_weight), SQL_R(o->cpu_pct),
		SQL_I(o->rss_bytes), SQL_I(o->db_bytes), SQL_R(o->low), SQL_R(o->high),
		o->pairs ? SQL_I(o->pairs) : SQL_NOTHING, SQL_R(o->launch_watched),
		SQL_R(o->launch_error));
}

/* -1 stands for "the call has no such value". */
static struct sql_value int_or_null(int64_t v)
{
	return v < 0 ? (struct sql_value){.type = SQL_NULL} : SQL_I(v);
}

/* Those of one rank are negative. A Send or Recv has none, but for one whose communicator's earlier ones are not known. */
static struct sql_value number_or_null(const struct collective *c, bool is_point)
{
	int64_t seq = (int64_t)c->seq;

	return is_point && seq >= 0 ? (struct sql_value){.type = SQL_NULL} : SQL_I(seq);
}

int nodedb_put_collective(struct nodedb *db, const struct event *e, const struct collective *c,
	struct errinfo *reterr)
{
	bool is_point = e->op == NCCL_SEND || e->op == NCCL_RECV;
	char scratch[32];
	const char *name = wire_op_name(SOURCE_NCCL, e->op, scratch);
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_COLLECTIVE, &stmt, reterr);

	if (r < 0)
		return r;
	if (!strncmp(name, "nccl", 4))
		name += 4;
	return SQL_PUT(stmt, reterr, SQL_S(db->node), SQL_I(e->start.ns), SQL_I(e->pid),
		SQL_I(e->tid), SQL_I(c->comm_hash), number_or_null(c, is_point), SQL_S(name),
		int_or_null(c->rank), int_or_null(c->nranks), SQL_I(e->device), SQL_I(c->bytes),
		SQL_I(c->count), int_or_null(c->datatype), int_or_null(c->reduce_op),
		int_or_null(c->root), int_or_null(c->peer), SQL_I(e->stream), SQL_I(e->dur_ns),
		int_or_null(c->wait_ns), SQL_I(e->ret),
		int_or_null(c->span_ns > 0 ? c->span_ns : -1));
}

struct accounting_args {
	int64_t session;
	const struct accounting *books;
};

static bool is_known_source(unsigned source)
{
	for (const struct wire_source_row *s = wire_sources; s->json; s++)
		if (s->id == source)
			return true;
	return false;
}

static int write_account(struct nodedb *db, int64_t session, unsigned source,
	const struct account *a, struct errinfo *reterr)
{
	uint64_t lost = account_lost(a);
	sql_stmt *row, *loss;
	int r;

	/* Known sources have a row even if nothing happened: its absence means a killed session. */
	if (!a->hits && !a->stored && !a->aggregated && !lost && !is_known_source(source))
		return 0;
	r = nodedb_statement(db, STATEMENT_ACCOUNTING, &row, reterr);
	if (r < 0)
		return r;
	r = nodedb_statement(db, STATEMENT_LOSS, &loss, reterr);
	if (r < 0)
		return r;
	r = SQL_PUT(row, reterr, SQL_I(session), SQL_S(db->node), SQL_I(source), SQL_I(a->hits),
		SQL_I(a->stored), SQL_I(a->aggregated), SQL_I(lost));
	for (int i = 0; r >= 0 && i < LOSS_COUNT; i++)
		if (a->lost[i])
			r = SQL_PUT(loss, reterr, SQL_I(session), SQL_S(db->node), SQL_I(source),
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
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_CPU_LOSS, &stmt, reterr);

	for (uint32_t i = 0; r >= 0 && i < args->losses->count; i++) {
		const struct cpu_loss *l = &args->losses->rows[i];

		r = SQL_PUT(stmt, reterr, SQL_I(args->session), SQL_S(db->node), SQL_I(l->source),
			SQL_S(wire_losses[l->reason].name), SQL_I(l->cpu), SQL_I(l->count));
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
	sql_stmt *stmt;
	int r;

	incident_json_fixes(i, &fixes);
	incident_json_timeline(i, &timeline);
	if (fixes.err || timeline.err)
		return fixes.err ? fixes.err : timeline.err;
	r = nodedb_statement(db, STATEMENT_CHAIN, &stmt, reterr);
	if (r < 0)
		return r;
	return SQL_PUT(stmt, reterr, SQL_S(id), SQL_I(detected.ns),
		SQL_S(severity_name(i->severity)), SQL_S(i->summary), SQL_S(i->root_cause),
		SQL_S(i->explanation), SQL_S(buf_str(&fixes)),
		SQL_S(wire_op_name(i->source, i->op, scratch)), SQL_I(i->p99_ns / NS_PER_US),
		SQL_I(i->p50_ns / NS_PER_US), SQL_R(isfinite(i->tail_ratio) ? i->tail_ratio : 0.0),
		SQL_S(buf_str(&timeline)), SQL_S(db->node));
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
	if (r == 0)
		r = incident_table_put(
			stmt, i, &(struct incident_origin){id, db->node, args->detected}, reterr);
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
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_ANNOTATION, &stmt, reterr);

	if (r < 0)
		return r;
	r = SQL_PUT(stmt, reterr, SQL_I(a->time.ns), SQL_SN(a->labels, sizeof(a->labels)),
		SQL_I(a->pid), SQL_I(a->start_time), SQL_I(a->span_start_ns), SQL_I(a->span_end_ns),
		SQL_I(a->peer_uid), SQL_I(a->peer_gid), SQL_I(a->peer_pid));
	if (r < 0)
		return r;
	*ret_id = sql_last_id(db->sql);
	return 0;
}

int nodedb_put_pruned(struct nodedb *db, int64_t session, const char *table, uint64_t rows,
	int64_t oldest_ns, int64_t newest_ns, struct errinfo *reterr)
{
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_PRUNED, &stmt, reterr);

	if (r == 0)
		r = SQL_PUT(stmt, reterr, SQL_I(session), SQL_S(table), COUNT_COLUMN(rows),
			SQL_I(oldest_ns), SQL_I(newest_ns));
	if (r == 0)
		db->pruned_rows += rows;
	return r;
}

uint64_t nodedb_pruned(const struct nodedb *db)
{
	return db->pruned_rows;
}
