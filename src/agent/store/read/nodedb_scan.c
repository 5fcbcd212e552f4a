/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_scan.c - looks at all rows of `events` and loads those that ordinary.h keeps.
 *
 * SQLite walks the table in order of seq and asks for each row, by a function that reads eight
 * columns, whether it is wanted; only then the other columns are unpacked. A file that nobody
 * changes is cut in two by seq, and each half is read by a thread and a connection of its own; a
 * live one is read on the caller's connection alone, whose snapshot no other could share.
 *
 * Invariants: each half goes from its newest row to its oldest and stops at NODEDB_THINNED_MAX, so
 * what is kept of it are its newest rows, and the same whatever the threads' speed; the older half
 * gives way to the newer. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "agent/store/read/nodedb_reader.h"
#include "agent/store/write/ordinary.h"
#include "base/array.h"

#define SQL_TEXT_MAX (64 << 10)

struct half {
	sql_db *sql;
	const char *path, *text; /* the statement, with ?1 <= seq <= ?2 */
	const struct pid_names *names;
	int64_t low, high;
	struct ordinary ordinary;
	struct event *events; /* newest first */
	size_t count, capacity;
	uint64_t skipped;
	bool is_full;
	int res;
	struct errinfo err;
};

static void half_done(struct half *h)
{
	ordinary_done(&h->ordinary);
	free(h->events);
}

static bool keeps(void *arg, const int64_t *values)
{
	return ordinary_keeps(arg, values);
}

static int half_room(struct half *h)
{
	int res = ARRAY_RESERVE(h->events, h->capacity, h->count + 1, NODEDB_THINNED_MAX);

	return res == 0 ? 0
			: errinfo_set(&h->err, res,
				  "not enough memory for the events of %s: select fewer with "
				  "--last or a time range",
				  h->path);
}

static int half_read(struct half *h)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int res = sql_add_filter(
		h->sql, "ingero_keeps", ORDINARY_COUNT, keeps, &h->ordinary, &h->err);

	if (res == 0)
		res = sql_prepare(h->sql, h->text, &stmt, &h->err);
	if (res == 0)
		res = SQL_BIND(stmt, &h->err, SQL_I(h->low), SQL_I(h->high));
	if (res < 0)
		return res;
	while ((res = sql_step(stmt, &h->err)) > 0) {
		if (h->count == NODEDB_THINNED_MAX) {
			h->is_full = true;
			return 0;
		}
		res = half_room(h);
		if (res < 0)
			return res;
		if (reader_event_row(SCHEMA_OURS, stmt, h->names, &h->events[h->count]))
			h->count++;
		else
			h->skipped++;
	}
	return res;
}

/* The older half, on a connection of its own. */
static void *half_main(void *arg)
{
	struct half *h = arg;
	_cleanup_(sql_closep) sql_db *sql = NULL;
	struct sql_stamp stamp;

	h->res = sql_open_read(h->path, false, &sql, &stamp, &h->err);
	if (h->res == 0 && !stamp.frozen)
		h->res = errinfo_set(&h->err, -EAGAIN, "%s is being written", h->path);
	h->sql = sql;
	if (h->res == 0)
		h->res = half_read(h);
	return NULL;
}

/* @count halves, the newest first; the caller's thread reads that one. */
static int read_halves(struct half *halves, int count, struct errinfo *reterr)
{
	bool has_thread = false;
	pthread_t thread;

	if (count > 1)
		has_thread = pthread_create(&thread, NULL, half_main, &halves[1]) == 0;
	halves[0].res = half_read(&halves[0]);
	if (has_thread)
		pthread_join(thread, NULL);
	else if (count > 1)
		half_main(&halves[1]);
	for (int i = 0; i < count; i++)
		if (halves[i].res < 0) {
			if (reterr)
				*reterr = halves[i].err;
			return halves[i].res;
		}
	return 0;
}

/* What @from holds goes behind what c holds, as far as there is room. */
static int append(struct nodedb_content *c, const struct half *from)
{
	size_t n = MIN(from->count, (size_t)NODEDB_THINNED_MAX - c->event_count);
	struct event *p = reallocarray(c->events, c->event_count + n + 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	c->events = p;
	if (n)
		memcpy(p + c->event_count, from->events, n * sizeof(*p));
	c->event_count += n;
	return 0;
}

/* Rows that were left out and yet have to be there. */
static int add_edges(struct reader *r, const struct half *h, struct errinfo *reterr)
{
	_cleanup_free_ uint64_t *edges = calloc(2 * h->ordinary.count + 1, sizeof(*edges));
	size_t n = edges ? ordinary_edges(&h->ordinary, edges) : 0;
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct nodedb_content *c = r->content;
	struct event *p;
	int res;

	if (!edges)
		return -ENOMEM;
	p = reallocarray(c->events, c->event_count + n + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	c->events = p;
	res = reader_event_select(r, false, &sql, reterr);
	if (res < 0)
		return res;
	buf_puts(&sql, " WHERE seq = ?1");
	res = reader_prepare(r, &sql, &stmt, reterr);
	for (size_t i = 0; res >= 0 && i < n; i++) {
		res = SQL_BIND(stmt, reterr, SQL_I(edges[i]));
		if (res == 0)
			res = sql_step(stmt, reterr);
		if (res <= 0)
			continue;
		if (reader_event_row(SCHEMA_OURS, stmt, h->names, &c->events[c->event_count]))
			c->event_count++;
		else
			c->skipped_rows++;
		c->thinned_rows--;
		sql_reset(stmt);
	}
	return MIN(res, 0);
}

static const struct scope_columns columns = {.time = "timestamp", .pid = "pid"};

static int write_statement(struct reader *r, struct buf *sql, struct errinfo *reterr)
{
	int res = reader_event_select(r, false, sql, reterr);

	if (res < 0)
		return res;
	buf_puts(sql, " NOT INDEXED"); /* the table itself is in order of seq */
	scope_where(&r->filter->scope, &columns, sql);
	buf_puts(sql, " AND seq BETWEEN ?1 AND ?2 AND ingero_keeps(" ORDINARY_COLUMNS
		      ") ORDER BY seq DESC");
	if (sql->err == -ENOBUFS)
		return errinfo_set(reterr, -E2BIG, "too many process ids: give fewer");
	return sql->err;
}

static int count_older(struct reader *r, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	uint64_t known = c->event_count + c->thinned_rows + c->skipped_rows;
	int64_t total = 0;
	int res;

	buf_puts(&sql, "SELECT count(*) FROM events");
	scope_where(&r->filter->scope, &columns, &sql);
	res = sql_get_int_buf(r->sql, &sql, &total, reterr);
	if (res >= 0)
		c->older_events = (uint64_t)total > known ? (uint64_t)total - known : 0;
	return res;
}

static int join_halves(struct reader *r, struct half *halves, int count, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;
	bool is_cut = halves[0].is_full;
	int res;

	c->events = TAKE(halves[0].events);
	c->event_count = halves[0].count;
	c->skipped_rows += halves[0].skipped;
	if (count > 1) {
		c->skipped_rows += halves[1].skipped;
		is_cut = is_cut || halves[1].is_full ||
			 halves[1].count > NODEDB_THINNED_MAX - c->event_count;
		res = append(c, &halves[1]);
		if (res < 0)
			return res;
		ordinary_merge(&halves[0].ordinary, &halves[1].ordinary);
	}
	c->thinned_rows = ordinary_thinned(&halves[0].ordinary);
	res = add_edges(r, &halves[0], reterr);
	return res == 0 && is_cut ? count_older(r, reterr) : res;
}

int reader_load_thinned(struct reader *r, const struct pid_names *names, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct nodedb_content *c = r->content;
	struct half halves[2] = {{.sql = r->sql}};
	int count = r->frozen ? 2 : 1;
	int64_t low, high;
	int res;

	res = sql_get_int(r->sql, "SELECT coalesce(min(seq), 1) FROM events", &low, reterr);
	if (res == 0)
		res = sql_get_int(
			r->sql, "SELECT coalesce(max(seq), 0) FROM events", &high, reterr);
	if (res == 0)
		res = write_statement(r, &sql, reterr);
	if (res == 0)
		res = ordinary_init(&halves[0].ordinary, c->aggregates, c->aggregate_count);
	if (res < 0)
		return res;
	halves[0].ordinary.from_ns = r->filter->scope.from_ns;
	halves[0].ordinary.to_ns = r->filter->scope.to_ns;
	if (count > 1)
		res = ordinary_clone(&halves[1].ordinary, &halves[0].ordinary);
	for (int i = 0; i < count; i++) {
		halves[i].path = r->path;
		halves[i].text = buf_str(&sql);
		halves[i].names = names;
		halves[i].low = low;
		halves[i].high = high;
	}
	if (count > 1) /* by sums of halves: seq may be anything in a hostile file */
		halves[0].low = 1 + (halves[1].high = low / 2 + high / 2);
	if (res == 0)
		res = read_halves(halves, count, reterr);
	if (res == 0)
		res = join_halves(r, halves, count, reterr);
	half_done(&halves[0]);
	half_done(&halves[1]);
	return res;
}
