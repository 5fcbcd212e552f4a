/* SPDX-License-Identifier: Apache-2.0 */
/* prune.c - deletes the oldest rows in portions until the store fits its limit. See prune.h.
 *
 * Invariants:
 *  1. Three quarters of the limit (or all but 32 MiB) are the database's, the rest is the log's.
 *     Only the size of the database decides about deleting: rows are no cure for a log that a
 *     reader holds. The log is checkpointed so often that it stays within its part; more often
 *     would cost two waits for the disk each time.
 *  2. Deleting starts above the database's part and goes to 90 % of it; what was deleted is free
 *     space in the file, which new rows use, and only an excess over the part is given back to the
 *     file system.
 *  3. One time line for all tables: a portion deletes everything up to one moment, chosen so that
 *     no table loses more than the portion allows. A bucket of aggregates counts as old as its end,
 *     since calls are still added to it until then.
 *  4. Every deleted row is counted in `pruned`, in the same transaction. */
#include "store/write/prune.h"

#include "store/schema/schema.h"
#include "base/log.h"
#include "base/text.h"

#define STEP_ROWS       20000
#define STEP_NS         (50 * NS_PER_MS)
#define STEP_CHUNKS     4
#define LIMIT_PER_ROW   1000 /* a portion is at most a fifth of the store: rows take 200 bytes */
#define LIMIT_PER_EVENT 1600 /* a transaction of events is at most an eighth of it */
#define LOG_PART_MAX    (32u << 20)
#define PAGE_BYTES      4096u
#define LOG_PAGES_MAX   4096u /* as sql_open_write() sets it */
#define VACUUM_PAGES    "64"
#define TIDE_NS         (60 * NS_PER_S) /* a limit that holds less than this is too small */
#define STUCK_REST_NS   (10 * NS_PER_S)

/* To add a table that grows with time: a row here. One that the store does not have is passed over.
 */
static const struct {
	const char *name, *time;
	int64_t span_ns; /* the row covers this much after its time */
} kinds[] = {
	{"events", "timestamp", 0},
	{"event_aggregates_5s", "bucket", (int64_t)NODEDB_BUCKET_FINE},
	{"event_aggregates", "bucket", (int64_t)NODEDB_BUCKET_COARSE},
	{"system_snapshots", "timestamp", 0},
	{"gpu_samples", "timestamp", 0},
	{"container_samples", "timestamp", 0},
	{"ledger", "timestamp", 0},
	{"overhead", "timestamp", 0},
	{"collectives", "timestamp", 0},
	{"cgroup_schedstat", "window_end", 0},
	{"causal_chains", "detected_at", 0},
	{"incidents", "last_seen", 0},
	{"annotations", "timestamp", 0},
};

struct pruned_table {
	sql_stmt *nth;   /* ?1: how many to skip -> time of the row behind them */
	sql_stmt *range; /* ?1: rows looked at, ?2: moment -> count, oldest, newest up to it */
	sql_stmt *remove;
	bool present;
};

struct prune {
	struct nodedb *db;
	int64_t session;
	uint64_t limit_bytes;
	uint64_t part_bytes; /* of the limit, for the database */
	size_t step_rows;
	bool active;
	bool fixed; /* the file cannot shrink: it was made without incremental vacuum */
	bool said_small, said_stuck;
	uint64_t stuck_until_ns;
	struct orphan_gc orphan_gc;
	struct pruned_table tables[ARRAY_SIZE(kinds)];
};

static size_t clamp(uint64_t v, size_t low, size_t high)
{
	return v < low ? low : v > high ? high : (size_t)v;
}

size_t prune_batch_max(uint64_t limit_bytes, size_t wanted)
{
	return limit_bytes ? MIN(wanted, clamp(limit_bytes / LIMIT_PER_EVENT, 100, 5000)) : wanted;
}

size_t prune_rows_per_step(const struct prune *p)
{
	return p->step_rows;
}

bool prune_swept(struct prune *p)
{
	bool swept = p->orphan_gc.removed;

	p->orphan_gc.removed = false;
	return swept;
}

/* ---- statements ---- */

/* Whether the oldest rows of the table can be found without reading all: by an index on their time;
 * else they are taken in the order in which they came. */
static int is_indexed(sql_db *db, const char *table, const char *column, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(db,
		"SELECT 1 FROM pragma_index_list(?1) l, pragma_index_info(l.name) i"
		" WHERE i.seqno = 0 AND i.name = ?2 AND l.partial = 0 LIMIT 1",
		&stmt, reterr);

	r = r ?: SQL_BIND(stmt, reterr, SQL_S(table), SQL_S(column));
	return r < 0 ? r : sql_step(stmt, reterr);
}

static int has_time(sql_db *db, const char *table, const char *column, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = schema_has_table(db, table, reterr);

	if (r <= 0)
		return r;
	r = sql_prepare(
		db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2 LIMIT 1", &stmt, reterr);
	r = r ?: SQL_BIND(stmt, reterr, SQL_S(table), SQL_S(column));
	return r < 0 ? r : sql_step(stmt, reterr);
}

/* The columns that name a row of a table without row numbers; "" if it has them. */
static int read_key(sql_db *db, const char *table, char *out, size_t size, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(db,
		"SELECT coalesce(group_concat(name, ', '), '') FROM (SELECT i.name FROM"
		" pragma_table_list(?1) t, pragma_table_info(?1) i WHERE t.schema = 'main'"
		" AND t.wr AND i.pk > 0 ORDER BY i.pk)",
		&stmt, reterr);

	r = r ?: SQL_BIND(stmt, reterr, SQL_S(table));
	if (r < 0)
		return r;
	r = sql_step(stmt, reterr);
	if (r > 0)
		snprintf(out, size, "%s", sql_column_text(stmt, 0, NULL));
	return MIN(r, 0);
}

static int compile(struct prune *p, sql_stmt **ret, struct errinfo *reterr, const char *fmt, ...)
	_printf_(4, 5);
static int compile(struct prune *p, sql_stmt **ret, struct errinfo *reterr, const char *fmt, ...)
{
	char sql[768];
	va_list args;

	va_start(args, fmt);
	vsnprintf(sql, sizeof(sql), fmt, args);
	va_end(args);
	return sql_prepare(p->db->sql, sql, ret, reterr);
}

static int prepare_table(struct prune *p, size_t i, struct errinfo *reterr)
{
	const char *name = kinds[i].name, *time = kinds[i].time, *order;
	struct pruned_table *t = &p->tables[i];
	char key[128] = "";
	int r = has_time(p->db->sql, name, time, reterr);

	if (r <= 0)
		return r;
	r = read_key(p->db->sql, name, key, sizeof(key), reterr);
	if (r < 0)
		return r;
	r = is_indexed(p->db->sql, name, time, reterr);
	if (r < 0)
		return r;
	order = r ? time : key[0] ? key : "rowid";
	r = compile(p, &t->nth, reterr, "SELECT %s FROM %s ORDER BY %s LIMIT 1 OFFSET ?1", time,
		name, order);
	r = r
		    ?: compile(p, &t->range, reterr,
			       "SELECT count(*), min(t), max(t) FROM (SELECT %s AS t FROM %s ORDER BY %s LIMIT ?1)"
			       " WHERE t <= ?2",
			       time, name, order);
	if (r < 0)
		return r;
	r = compile(p, &t->remove, reterr,
		"DELETE FROM %s WHERE (%s) IN (SELECT %s FROM (SELECT %s, %s AS t_ FROM %s"
		" ORDER BY %s LIMIT ?1) WHERE t_ <= ?2)",
		name, key[0] ? key : "rowid", key[0] ? key : "k_", key[0] ? key : "rowid AS k_",
		time, name, order);
	t->present = r == 0;
	return r;
}

void prune_free(struct prune *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		sql_finalize(p->tables[i].nth);
		sql_finalize(p->tables[i].range);
		sql_finalize(p->tables[i].remove);
	}
	free(p);
}
DEFINE_CLEANUP(struct prune *, prune_free)

/* The log restarts from its beginning after a checkpoint, and is cut to this size then. */
static int size_log(struct prune *p, struct errinfo *reterr)
{
	size_t pages = clamp(p->limit_bytes / 8 / PAGE_BYTES, 16, LOG_PAGES_MAX);
	char sql[128];

	snprintf(sql, sizeof(sql), "PRAGMA wal_autocheckpoint=%zu; PRAGMA journal_size_limit=%zu",
		pages, pages * PAGE_BYTES);
	return sql_exec(p->db->sql, sql, reterr);
}

int prune_new(struct nodedb *db, int64_t session, uint64_t limit_bytes, struct prune **ret_prune,
	struct errinfo *reterr)
{
	_cleanup_(prune_freep) struct prune *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->db = db;
	p->session = session;
	p->limit_bytes = MAX(limit_bytes, (uint64_t)PRUNE_LIMIT_MIN);
	p->part_bytes = p->limit_bytes - MIN(p->limit_bytes / 4, (uint64_t)LOG_PART_MAX);
	p->step_rows = clamp(p->limit_bytes / LIMIT_PER_ROW, 256, STEP_ROWS);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		r = prepare_table(p, i, reterr);
		if (r < 0)
			return r;
	}
	r = size_log(p, reterr);
	if (r < 0)
		return r;
	*ret_prune = TAKE(p);
	return 0;
}

/* ---- deleting ---- */

static int read_pages(
	struct prune *p, uint64_t *ret_file, uint64_t *ret_used, struct errinfo *reterr)
{
	int64_t pages, free_pages;
	int r = sql_get_int(p->db->sql, "PRAGMA page_count", &pages, reterr);

	if (r < 0)
		return r;
	r = sql_get_int(p->db->sql, "PRAGMA freelist_count", &free_pages, reterr);
	if (r < 0)
		return r;
	*ret_file = (uint64_t)pages * PAGE_BYTES;
	*ret_used = (uint64_t)(pages - MIN(free_pages, pages)) * PAGE_BYTES;
	return 0;
}

/* The moment up to which @rows rows of the table that has them earliest are older; INT64_MAX if
 * none has as many. */
static int choose_moment(struct prune *p, size_t rows, int64_t *ret_ns, struct errinfo *reterr)
{
	int64_t moment = INT64_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		sql_stmt *nth = p->tables[i].nth;
		int r;

		if (!p->tables[i].present)
			continue;
		r = SQL_BIND(nth, reterr, SQL_I(rows - 1));
		r = r ?: sql_step(nth, reterr);
		if (r < 0)
			return r;
		if (r > 0) {
			moment = MIN(moment, sql_column_int(nth, 0) + kinds[i].span_ns);
			sql_reset(nth);
		}
	}
	*ret_ns = moment;
	return 0;
}

/* Deletes what the table has up to @moment, of its @rows oldest. Returns the number of rows. */
static int delete_until(
	struct prune *p, size_t i, size_t rows, int64_t moment, struct errinfo *reterr)
{
	struct pruned_table *t = &p->tables[i];
	struct sql_value bound[] = {SQL_I(rows), SQL_I(moment - kinds[i].span_ns)};
	int64_t n, oldest, newest;
	int r = sql_bind(t->range, bound, 2, reterr);

	if (r < 0)
		return r;
	r = sql_step(t->range, reterr);
	if (r <= 0)
		return r;
	n = sql_column_int(t->range, 0);
	oldest = sql_column_int(t->range, 1);
	newest = sql_column_int(t->range, 2);
	sql_reset(t->range);
	if (!n)
		return 0;
	r = sql_put(t->remove, bound, 2, reterr);
	if (r < 0)
		return r;
	r = nodedb_put_pruned(
		p->db, p->session, kinds[i].name, (uint64_t)n, oldest, newest, reterr);
	return r < 0 ? r : (int)n;
}

static void say_if_small(struct prune *p, int64_t moment)
{
	int64_t newest;

	if (p->said_small ||
		sql_get_int(p->db->sql, "SELECT coalesce(max(timestamp), 0) FROM events", &newest,
			NULL) < 0 ||
		moment + (int64_t)TIDE_NS <= newest)
		return;
	p->said_small = true;
	log_warning(
		"the database limit of %s is less than a minute of events at this rate: older events are deleted; raise --max-db",
		TEXT_SIZE(p->limit_bytes));
}

static void say_stuck(struct prune *p)
{
	p->stuck_until_ns = mono_now().ns + STUCK_REST_NS;
	if (p->said_stuck)
		return;
	p->said_stuck = true;
	log_warning(
		"cannot keep the database below %s: all remaining rows belong to this session; raise --max-db",
		TEXT_SIZE(p->limit_bytes));
}

/* One moment further, in all tables. Returns the number of rows deleted. */
static int delete_chunk(struct prune *p, size_t rows, struct errinfo *reterr)
{
	int64_t moment = INT64_MAX;
	int total = 0, r;

	for (; rows > 0; rows /= 2) {
		r = choose_moment(p, rows, &moment, reterr);
		if (r < 0)
			return r;
		if (moment != INT64_MAX)
			break;
	}
	if (moment == INT64_MAX)
		return 0;
	say_if_small(p, moment);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!p->tables[i].present)
			continue;
		r = delete_until(p, i, rows, moment, reterr);
		if (r < 0)
			return r;
		total += r;
	}
	return total;
}

static bool has_time_left(uint64_t began_ns)
{
	return mono_now().ns - began_ns < STEP_NS;
}

static int delete_portion(struct prune *p, size_t rows_max, uint64_t began, struct errinfo *reterr)
{
	size_t chunk = MAX(rows_max / STEP_CHUNKS, (size_t)64), total = 0;
	uint64_t file, used;
	int r;

	while (total < rows_max && has_time_left(began)) {
		r = delete_chunk(p, chunk, reterr);
		if (r < 0)
			return r;
		if (r == 0) {
			say_stuck(p);
			return 0;
		}
		total += (size_t)r;
		r = read_pages(p, &file, &used, reterr);
		if (r < 0)
			return r;
		if (used <= p->part_bytes / 10 * 9)
			return 0;
	}
	return 1;
}

/* One transaction: rows by age, or, once enough of them are gone, what they leave behind. */
static int delete_step(struct prune *p, size_t rows, uint64_t used, struct errinfo *reterr)
{
	uint64_t began = mono_now().ns, swept = 0;
	bool by_age = used > p->part_bytes / 10 * 9 && p->active && began >= p->stuck_until_ns;
	int r = nodedb_batch_begin(p->db, reterr), q;

	if (r < 0)
		return r;
	if (by_age) {
		r = delete_portion(p, rows, began, reterr);
		if (r == 0)
			orphan_gc_begin(&p->orphan_gc);
		r = r < 0 ? r : 1;
	} else {
		r = orphan_gc_step(&p->orphan_gc, p->db, rows, p->session, &swept, reterr);
	}
	if (r < 0) {
		nodedb_batch_rollback(p->db);
		p->orphan_gc.stage = 0;
		return r;
	}
	q = nodedb_batch_commit(p->db, reterr);
	if (q < 0)
		p->orphan_gc.stage = 0;
	return q < 0 ? q : r;
}

static int vacuum_step(struct prune *p, struct errinfo *reterr)
{
	uint64_t began = mono_now().ns, before, file, used;
	int r = read_pages(p, &file, &used, reterr);

	if (r < 0)
		return r;
	do {
		before = file;
		r = sql_exec(p->db->sql, "PRAGMA incremental_vacuum(" VACUUM_PAGES ")", reterr);
		r = r ?: read_pages(p, &file, &used, reterr);
		if (r < 0)
			return r;
	} while (file < before && file > p->part_bytes && file > used && has_time_left(began));
	p->fixed = file >= before;
	p->active = !p->fixed && file > p->part_bytes && file > used;
	return p->active;
}

int prune_step(struct prune *p, size_t rows_max, struct errinfo *reterr)
{
	size_t rows = MAX(MIN(rows_max, p->step_rows), (size_t)64);
	uint64_t file, used;
	int r = read_pages(p, &file, &used, reterr);

	if (r < 0)
		return r;
	if ((p->fixed ? used : file) > p->part_bytes)
		p->active = true;
	if ((p->active && used > p->part_bytes / 10 * 9 && mono_now().ns >= p->stuck_until_ns) ||
		p->orphan_gc.stage) {
		r = delete_step(p, rows, used, reterr);
		return r < 0 ? r : r || p->active;
	}
	if (p->active && !p->fixed && file > p->part_bytes && file > used)
		return vacuum_step(p, reterr);
	p->active = false;
	return 0;
}
