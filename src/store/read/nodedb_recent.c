/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_recent.c - see nodedb_recent.h. The collectives are in nodedb_collective.c, beside the reading
 * of their rows. */
#include "store/read/nodedb_recent.h"

#include <math.h>

#include "store/read/nodedb_reader.h"
#include "json/reader.h"
#include "wire/op_kind.h"

#define OUT_OF_MEMORY 2 /* cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY */
STATIC_ASSERT(OUT_OF_MEMORY == 2 && NCCL_SEND == 7 && NCCL_RECV == 8); /* in the SQL below */

static int prepare(
	struct nodedb_snapshot *l, const char *sql, sql_stmt **ret, struct errinfo *reterr)
{
	if (!nodedb_snapshot_is_ours(l))
		return errinfo_set(reterr, -ENOTSUP,
			"%s was not written by this program's `trace`: nothing can be passed on from it",
			nodedb_snapshot_path(l));
	return sql_prepare(l->reader.sql, sql, ret, reterr);
}

/* A whole number of 0 … @max in column @i; 0 else. */
static uint64_t number(sql_stmt *stmt, int i, uint64_t max)
{
	int64_t v = 0;

	return sql_column_is_int(stmt, i, &v) && v > 0 ? MIN((uint64_t)v, max) : 0;
}

static double real_or_unknown(sql_stmt *stmt, int i)
{
	double v;

	if (sql_column_type(stmt, i) == SQL_NULL)
		return -1;
	v = sql_column_real(stmt, i);
	return isfinite(v) && v >= 0 ? v : -1;
}

/* start - the statement with its parameters, of which one that it does not have is left out. */
static int start(struct nodedb_snapshot *l, const char *text, int64_t first, size_t second,
	sql_stmt **ret, struct errinfo *reterr)
{
	int r = prepare(l, text, ret, reterr);

	return r < 0 ? r
		     : sql_bind(*ret, (const struct sql_value[]){SQL_I(first), SQL_I(second)},
			       (size_t)sql_parameters(*ret), reterr);
}

int nodedb_recent_calls(struct nodedb_snapshot *l, int64_t from_ns, recent_calls_fn *fn, void *arg,
	struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = start(l,
		"SELECT bucket, pid, source, op, nested, count, sum_dur, sum_arg0 FROM"
		" event_aggregates_5s WHERE bucket >= ?1 AND " OP_KIND_GPU_SQL " ORDER BY bucket",
		from_ns, 0, &stmt, reterr);

	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0) {
		struct recent_calls c = {.bucket_ns = sql_column_int(stmt, 0),
			.pid = (uint32_t)number(stmt, 1, UINT32_MAX),
			.source = (uint8_t)number(stmt, 2, UINT8_MAX),
			.op = (uint16_t)number(stmt, 3, UINT16_MAX),
			.nested = number(stmt, 4, 1),
			.count = number(stmt, 5, UINT64_MAX),
			.sum_ns = number(stmt, 6, UINT64_MAX),
			.bytes = number(stmt, 7, UINT64_MAX)};

		r = fn(arg, &c);
	}
	return r;
}

int nodedb_recent_processes(
	struct nodedb_snapshot *l, recent_process_fn *fn, void *arg, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	struct recent_process p;
	int64_t rank;
	int r = start(l,
		"SELECT pid, start_time, last_seen, rank, world_size, job, cgroup_path, comm FROM"
		" processes ORDER BY last_seen DESC, start_time DESC LIMIT ?1",
		NODEDB_RECENT_PROCESSES, 0, &stmt, reterr);

	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0) {
		p = (struct recent_process){.pid = (uint32_t)number(stmt, 0, UINT32_MAX),
			.start_ticks = number(stmt, 1, UINT64_MAX),
			.last_seen_ns = sql_column_int(stmt, 2),
			.rank = -1,
			.world_size = (uint32_t)number(stmt, 4, INT32_MAX)};
		if (sql_column_is_int(stmt, 3, &rank) && rank >= 0 && rank <= INT32_MAX)
			p.rank = (int32_t)rank;
		if (!reader_text(stmt, 5, p.job, sizeof(p.job)) ||
			!reader_text(stmt, 6, p.cgroup, sizeof(p.cgroup)) ||
			!reader_text(stmt, 7, p.comm, sizeof(p.comm)) || !p.pid)
			continue;
		r = fn(arg, &p);
	}
	return r;
}

int nodedb_recent_marks(struct nodedb_snapshot *l, int64_t after, size_t max, recent_mark_fn *fn,
	void *arg, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = start(l,
		"SELECT rowid, timestamp + duration, pid, tid, mark, cpu_wait + cpu_wait_gpu FROM"
		" ledger WHERE rowid > ?1 ORDER BY rowid LIMIT ?2",
		after, max, &stmt, reterr);

	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0) {
		struct recent_mark m = {.row = sql_column_int(stmt, 0),
			.end_ns = sql_column_int(stmt, 1),
			.pid = (uint32_t)number(stmt, 2, UINT32_MAX),
			.tid = (uint32_t)number(stmt, 3, UINT32_MAX),
			.mark = (uint8_t)number(stmt, 4, UINT8_MAX),
			.stall_ns = number(stmt, 5, UINT64_MAX)};

		r = fn(arg, &m);
	}
	return r;
}

/* ---- numbers of rows ---- */

static int get_row(
	struct nodedb_snapshot *l, const struct buf *sql, int64_t *ret, struct errinfo *reterr)
{
	if (!nodedb_snapshot_is_ours(l))
		return prepare(l, "", NULL, reterr);
	return sql_get_int_buf(l->reader.sql, sql, ret, reterr);
}

int nodedb_recent_row(struct nodedb_snapshot *l, const char *table, int64_t before_ns, int64_t *ret,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(512);

	/* By the index on the time: rows are written in about its order. */
	buf_printf(&sql,
		"SELECT coalesce((SELECT rowid FROM %s WHERE timestamp < %lld ORDER BY timestamp"
		" DESC LIMIT 1), (SELECT min(rowid) - 1 FROM %s), 0)",
		table, (long long)before_ns, table);
	return get_row(l, &sql, ret, reterr);
}

int nodedb_recent_last_row(
	struct nodedb_snapshot *l, const char *table, int64_t *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(512);
	int r = schema_has_table(l->reader.sql, table, reterr);

	if (r == 0 && nodedb_snapshot_is_ours(l))
		return errinfo_set(reterr, -ENOTSUP,
			"%s was recorded by an older version: nothing can be passed on from it",
			nodedb_snapshot_path(l));
	if (r < 0)
		return r;
	buf_printf(&sql, "SELECT coalesce(max(rowid), 0) FROM %s", table);
	return get_row(l, &sql, ret, reterr);
}

int nodedb_recent_row_time(struct nodedb_snapshot *l, const char *table, int64_t row, int64_t *ret,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(512);

	buf_printf(&sql,
		"SELECT coalesce((SELECT timestamp FROM %s WHERE rowid = %lld), (SELECT CASE WHEN"
		" min(rowid) > %lld THEN 0 END FROM %s), -1)",
		table, (long long)row, (long long)row, table);
	return get_row(l, &sql, ret, reterr);
}

int nodedb_recent_stopped(struct nodedb_snapshot *l, int64_t *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(512);

	buf_puts(&sql,
		"SELECT coalesce((SELECT stopped_at FROM sessions ORDER BY id DESC LIMIT 1), 0)");
	return get_row(l, &sql, ret, reterr);
}

int nodedb_recent_points(struct nodedb_snapshot *l, int64_t up_to_row, recent_points_fn *fn,
	void *arg, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = start(l,
		"SELECT pid, comm, op = 'Send', peer, count(*) FROM collectives WHERE rowid <= ?1"
		" AND op IN ('Send', 'Recv') GROUP BY 1, 2, 3, 4",
		up_to_row, 0, &stmt, reterr);

	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0) {
		struct recent_points p = {.pid = (uint32_t)number(stmt, 0, UINT32_MAX),
			.comm = (uint64_t)sql_column_int(stmt, 1),
			.is_send = sql_column_int(stmt, 2),
			.peer = (int32_t)number(stmt, 3, INT32_MAX),
			.count = number(stmt, 4, UINT64_MAX)};

		r = fn(arg, &p);
	}
	return r;
}

/* ---- readings ---- */

/* first_since - the first row of a statement whose one parameter is a time; 1: there is one. */
static int first_since(struct nodedb_snapshot *l, const char *text, int64_t from_ns, sql_stmt **ret,
	struct errinfo *reterr)
{
	int r = start(l, text, from_ns, 0, ret, reterr);

	return r ?: sql_step(*ret, reterr);
}

static int read_host(struct nodedb_snapshot *l, int64_t from_ns, struct recent_readings *ret,
	struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = first_since(l,
		"SELECT avg(cpu_pct), avg(psi_memory), avg(CASE WHEN mem_total > 0 THEN mem_avail *"
		" 1.0 / mem_total END), max(coalesce((SELECT max(timestamp) FROM system_snapshots),"
		" 0), coalesce((SELECT max(timestamp) FROM overhead), 0)) FROM system_snapshots"
		" WHERE timestamp >= ?1",
		from_ns, &stmt, reterr);

	if (r <= 0)
		return r;
	ret->cpu_pct = real_or_unknown(stmt, 0);
	ret->psi_memory_pct = real_or_unknown(stmt, 1);
	ret->mem_avail_share = real_or_unknown(stmt, 2);
	ret->newest_ns = sql_column_int(stmt, 3);
	return 0;
}

static int read_gpus(struct nodedb_snapshot *l, int64_t from_ns, struct recent_readings *ret,
	struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = first_since(l,
		"SELECT avg(util_gpu_pct), avg(CASE WHEN util_gpu_pct > 0 THEN sm_clock_mhz END),"
		" count(DISTINCT gpu), coalesce(max(name), '') FROM gpu_samples WHERE timestamp >= ?1",
		from_ns, &stmt, reterr);

	if (r <= 0)
		return r;
	ret->gpu_busy_pct = real_or_unknown(stmt, 0);
	ret->sm_clock_mhz = real_or_unknown(stmt, 1);
	ret->gpus = (uint32_t)number(stmt, 2, INT32_MAX);
	reader_text(stmt, 3, ret->gpu_model, sizeof(ret->gpu_model));
	return 0;
}

static int read_failures(struct nodedb_snapshot *l, int64_t from_ns, struct recent_readings *ret,
	struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = first_since(l,
		"SELECT CAST(total(weight) AS INTEGER) FROM events WHERE timestamp >= ?1"
		" AND ret_code = 2 AND flags & 1 = 0 AND " OP_KIND_CUDA_SQL,
		from_ns, &stmt, reterr);

	if (r <= 0)
		return r;
	ret->failed_allocs = number(stmt, 0, UINT64_MAX);
	return 0;
}

int nodedb_recent_readings(struct nodedb_snapshot *l, int64_t from_ns, struct recent_readings *ret,
	struct errinfo *reterr)
{
	struct recent_readings got = {.cpu_pct = -1,
		.psi_memory_pct = -1,
		.mem_avail_share = -1,
		.gpu_busy_pct = -1,
		.sm_clock_mhz = -1};
	int r = read_host(l, from_ns, &got, reterr);

	r = r ?: read_gpus(l, from_ns, &got, reterr);
	r = r ?: read_failures(l, from_ns, &got, reterr);
	if (r == 0)
		*ret = got;
	return r;
}

/* ---- incidents ---- */

/* The first of the causes, which are in order: [{"cause":"block_io","layer":"IO","ns":5,…},…] */
static void first_cause(const char *text, size_t len, struct recent_incident *ret)
{
	struct json_reader r;

	json_reader_init(&r, text, len, 4096);
	if (json_read(&r) == JSON_READ_ARRAY && json_read(&r) == JSON_READ_OBJECT)
		while (json_read(&r) == JSON_READ_KEY) {
			bool is_name = json_read_is(&r, "cause"), is_ns = json_read_is(&r, "ns");
			enum json_read t = json_read(&r);

			if (is_name && t == JSON_READ_STRING)
				snprintf(ret->cause, sizeof(ret->cause), "%.31s", buf_str(&r.text));
			else if (is_ns && t == JSON_READ_INT && r.i >= 0)
				ret->cause_ns = (uint64_t)r.i;
			else if (!json_skip(&r, t))
				break;
		}
	json_reader_done(&r);
}

/* The first of ["…","…"]. */
static void first_fix(const char *text, size_t len, struct recent_incident *ret)
{
	struct json_reader r;

	json_reader_init(&r, text, len, 4096);
	if (json_read(&r) == JSON_READ_ARRAY && json_read(&r) == JSON_READ_STRING)
		snprintf(ret->fix, sizeof(ret->fix), "%.511s", buf_str(&r.text));
	json_reader_done(&r);
}

static int read_incident(sql_stmt *stmt, struct recent_incident *ret)
{
	struct recent_incident i = {.pid = (uint32_t)number(stmt, 1, UINT32_MAX),
		.last_ns = sql_column_int(stmt, 2),
		.is_over = sql_column_int(stmt, 3) != 0,
		.confidence = fmin(fmax(real_or_unknown(stmt, 4), 0), 1),
		.ordinary_ns = number(stmt, 5, UINT64_MAX),
		.slow_ns = number(stmt, 6, UINT64_MAX),
		.slow_count = number(stmt, 7, UINT64_MAX)};
	const char *text;
	size_t len;

	if (!reader_text(stmt, 0, i.id, sizeof(i.id)) ||
		!reader_text(stmt, 8, i.summary, sizeof(i.summary)) ||
		!reader_text(stmt, 9, i.root_cause, sizeof(i.root_cause)))
		return 0;
	text = sql_column_text(stmt, 10, &len);
	first_cause(text, len, &i);
	text = sql_column_text(stmt, 11, &len);
	first_fix(text, len, &i);
	*ret = i;
	return 1;
}

int nodedb_recent_incident(struct nodedb_snapshot *l, int64_t from_ns, struct recent_incident *ret,
	struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = first_since(l,
		"SELECT id, pid, last_seen, resolved_at, confidence, baseline_ns, slow_p50_ns, count,"
		" summary, root_cause, causes, coalesce((SELECT recommendations FROM causal_chains c"
		" WHERE c.id = incidents.id), '') FROM incidents WHERE last_seen >= ?1 ORDER BY"
		" resolved_at <> 0, CASE severity WHEN 'CRITICAL' THEN 0 WHEN 'HIGH' THEN 1 WHEN"
		" 'MEDIUM' THEN 2 ELSE 3 END, excess_ns DESC, id LIMIT 1",
		from_ns, &stmt, reterr);

	return r <= 0 ? r : read_incident(stmt, ret);
}

/* ---- chains ---- */

/* Half of an array is none, so what is too long is nothing. */
static void put_told(struct buf *sql, const char *value, const char *name)
{
	buf_printf(sql,
		", CASE WHEN typeof(%s) IN ('integer', 'real') OR (typeof(%s) = 'text' AND"
		" length(%s) <= %d) THEN %s END AS %s",
		value, value, value, RECENT_TEXT_MAX, value, name);
}

/* A recording of before a field has no column for it. */
static int put_added(struct nodedb_snapshot *l, struct buf *sql, struct errinfo *reterr)
{
	for (int n = 0; n < INCIDENT_FIELD_COUNT; n++) {
		const struct incident_field *f = &incident_fields[n];
		int r;

		if (!f->is_added)
			continue;
		r = reader_has_column(&l->reader, "incidents", f->column, reterr);
		if (r < 0)
			return r;
		if (r > 0)
			put_told(sql, FORMATTED(64, "i.%s", f->column), f->column);
	}
	return 0;
}

static int put_chains(struct nodedb_snapshot *l, struct buf *sql, struct errinfo *reterr)
{
	static const struct {
		const char *value, *name;
	} told[] = {{"c.id", "id"}, {"c.severity", "severity"}, {"c.summary", "summary"},
		{"c.root_cause", "root_cause"}, {"c.explanation", "explanation"},
		{"c.recommendations", "recommendations"}, {"c.timeline", "timeline"},
		{"c.cuda_op", "cuda_op"}, {"CAST(c.cuda_p99_us AS REAL)", "p99_us"},
		{"CAST(c.cuda_p50_us AS REAL)", "p50_us"}, {"c.tail_ratio", "tail_ratio"},
		{"i.count", "count"}, {"i.last_seen", "last_seen"}, {"i.excess_ns", "excess_ns"},
		{"i.confidence", "confidence"}};
	int r;

	buf_puts(sql,
		"SELECT c.detected_at AS detected_at, coalesce(i.resolved_at, 0) AS resolved_at");
	for (size_t i = 0; i < ARRAY_SIZE(told); i++)
		put_told(sql, told[i].value, told[i].name);
	r = put_added(l, sql, reterr);
	buf_puts(sql,
		" FROM causal_chains c LEFT JOIN incidents i ON i.id = c.id WHERE max(c.detected_at,"
		" coalesce(i.last_seen, 0), coalesce(i.resolved_at, 0)) >= ?1 ORDER BY c.rowid DESC LIMIT ?2");
	return r < 0 ? r : sql->err;
}

int nodedb_recent_chains(struct nodedb_snapshot *l, int64_t from_ns, size_t max,
	struct sql_table *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(16 << 10);
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = put_chains(l, &sql, reterr);

	r = r ?: start(l, buf_str(&sql), from_ns, max, &stmt, reterr);
	r = r ?: sql_table_begin(&t, stmt, NODEDB_LIST_BYTES);
	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0)
		r = sql_table_add(&t, stmt);
	if (r < 0)
		return r;
	*ret = t;
	t = (struct sql_table){0};
	return 0;
}
