/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_scan.c - looks at all rows of `events` and loads those that ordinary.h keeps.
 *
 * Eight columns of a row say whether it is wanted; only then the others are unpacked. A file that
 * nobody changes is cut in two by seq, and each half is read by a thread and a connection of its own,
 * from the pages of the table (sql_pages.h). A live one is read on the caller's connection alone, whose
 * snapshot no other could share, and so is one whose pages are not plain: by a statement that walks the
 * table in order of seq and asks for each row by a function.
 *
 * Invariants: each half goes from its newest row to its oldest and stops at NODEDB_THINNED_MAX, so
 * what is kept of it are its newest rows, and the same whatever the threads' speed; the older half
 * gives way to the newer. Then each is put in order, so that little is left to do when they are one. */
#include <pthread.h>

#include "store/read/nodedb_reader.h"
#include "store/ordinary.h"
#include "base/array.h"
#include "base/search.h"
#include "sql/sql_pages.h"

struct half {
	sql_db *sql;
	bool frozen;
	const char *path, *text;   /* the statement, with ?1 <= seq <= ?2 */
	const struct scope *scope; /* what it selects, too; NULL: everything */
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

static void half_add(struct half *h, bool makes_sense)
{
	h->count += makes_sense;
	h->skipped += !makes_sense;
}

/* A row that is kept: 0, 1 to stop, or an error. */
static int keep_record(struct half *h, const struct sql_record *r)
{
	struct sql_value values[READER_EVENT_COLUMNS];
	int res;

	if (h->count == NODEDB_THINNED_MAX) {
		h->is_full = true;
		return 1;
	}
	res = half_room(h);
	if (res < 0)
		return res;
	sql_record_values(r, ORDINARY_COUNT, READER_EVENT_COLUMNS, values);
	half_add(h, reader_event_values(SCHEMA_OURS, values, h->names, &h->events[h->count]));
	return 0;
}

static int take_record(void *arg, const struct sql_record *r)
{
	int64_t row[ORDINARY_COUNT];
	struct half *h = arg;
	bool is_whole = sql_record_ints(r, 0, ORDINARY_COUNT, row);

	if (!is_whole)
		/* How SQLite compares such a value is its own affair. */
		return h->scope ? -ENOTSUP : keep_record(h, r);
	if (h->scope && !scope_accepts(h->scope, row[ORDINARY_TIMESTAMP], row[ORDINARY_PID]))
		return 0;
	return ordinary_keeps(&h->ordinary, row) ? keep_record(h, r) : 0;
}

/* Without SQL: a fifth of the time. -ENOTSUP if the file is not plain enough for it. */
static int half_read_pages(struct half *h)
{
	_cleanup_(sql_pages_closep) struct sql_pages *pages = NULL;
	const char *names[ORDINARY_COUNT + READER_EVENT_COLUMNS];
	int res;

	memcpy(names, ordinary_columns, sizeof(ordinary_columns));
	reader_event_columns(names + ORDINARY_COUNT);
	res = sql_pages_open(h->sql, "events", names, ARRAY_SIZE(names), &pages);
	res = res ?: sql_pages_read(pages, h->low, h->high, take_record, h);
	if (res == -ENOTSUP) {
		ordinary_reset(&h->ordinary);
		h->count = 0;
		h->skipped = 0;
	}
	return MIN(res, 0);
}

static int half_read_rows(struct half *h)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int res = sql_add_filter(
		h->sql, "ingero_keeps", ORDINARY_COUNT, keeps, &h->ordinary, &h->err);

	res = res ?: sql_prepare(h->sql, h->text, &stmt, &h->err);
	res = res ?: SQL_BIND(stmt, &h->err, SQL_I(h->low), SQL_I(h->high));
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
		half_add(h, reader_event_row(SCHEMA_OURS, stmt, h->names, &h->events[h->count]));
	}
	return res;
}

static int half_read(struct half *h)
{
	int res = h->frozen ? half_read_pages(h) : -ENOTSUP;

	return res == -ENOTSUP ? half_read_rows(h) : res;
}

/* The older half, on a connection of its own. */
static int half_open(struct half *h, sql_db **ret)
{
	struct sql_stamp stamp;
	int res = sql_open_read(h->path, false, ret, &stamp, &h->err);

	if (res == 0 && !stamp.frozen)
		res = errinfo_set(&h->err, -EAGAIN, "%s is being written", h->path);
	h->sql = *ret;
	return res;
}

static void *half_main(void *arg)
{
	struct half *h = arg;
	_cleanup_(sql_closep) sql_db *own = NULL;

	h->res = h->sql ? 0 : half_open(h, &own);
	if (h->res == 0)
		h->res = half_read(h);
	return NULL;
}

static void *half_sort(void *arg)
{
	struct half *h = arg;

	h->res = reader_event_sort(h->events, h->count);
	return NULL;
}

/* @count halves, the newest first; the caller's thread does that one. */
static int do_halves(
	struct half *halves, int count, void *(*work)(void *half), struct errinfo *reterr)
{
	bool has_thread = false;
	pthread_t thread;

	if (count > 1)
		has_thread = pthread_create(&thread, NULL, work, &halves[1]) == 0;
	work(&halves[0]);
	if (has_thread)
		pthread_join(thread, NULL);
	else if (count > 1)
		work(&halves[1]);
	for (int i = 0; i < count; i++)
		if (halves[i].res < 0) {
			if (reterr)
				*reterr = halves[i].err;
			return halves[i].res;
		}
	return 0;
}

/* What @newer holds goes behind what @older holds, which becomes c's. Both are in order; where they
 * overlap, rows were not written in order of time. */
static int take_events(struct nodedb_content *c, struct half *older, struct half *newer)
{
	size_t n = older->count + newer->count, from, to;
	struct event *p;

	c->event_count = n;
	if (!older->count || !newer->count) {
		c->events = older->count ? TAKE(older->events) : TAKE(newer->events);
		return 0;
	}
	p = reallocarray(older->events, n, sizeof(*p));
	if (!p)
		return -ENOMEM;
	older->events = NULL;
	c->events = p;
	memcpy(p + older->count, newer->events, newer->count * sizeof(*p));
	free(TAKE(newer->events));
	from = LOWER_BOUND(i, older->count, p[i].start.ns < p[older->count].start.ns);
	to = older->count + LOWER_BOUND(i, newer->count,
				    p[older->count + i].start.ns <= p[older->count - 1].start.ns);
	return reader_event_sort(p + from, to - from);
}

/* Rows that were left out and yet have to be there: to the half that each is of. */
static int add_edges(
	struct reader *r, struct half *older, struct half *newer, struct errinfo *reterr)
{
	_cleanup_free_ uint64_t *edges = calloc(2 * newer->ordinary.count + 1, sizeof(*edges));
	size_t n = edges ? ordinary_edges(&newer->ordinary, edges) : 0;
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct nodedb_content *c = r->content;
	int res;

	if (!edges)
		return -ENOMEM;
	res = reader_event_select(r, false, &sql, reterr);
	if (res < 0)
		return res;
	buf_puts(&sql, " WHERE seq = ?1");
	res = reader_prepare(r, &sql, &stmt, reterr);
	for (size_t i = 0; res >= 0 && i < n; i++) {
		struct half *h = (int64_t)edges[i] >= newer->low ? newer : older;

		res = ARRAY_RESERVE(h->events, h->capacity, h->count + 1, NODEDB_THINNED_MAX + n);
		res = res ?: SQL_BIND(stmt, reterr, SQL_I(edges[i]));
		res = res ?: sql_step(stmt, reterr);
		if (res <= 0)
			continue;
		half_add(h, reader_event_row(SCHEMA_OURS, stmt, h->names, &h->events[h->count]));
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
	buf_puts(sql, " AND seq BETWEEN ?1 AND ?2 AND ingero_keeps(");
	for (int i = 0; i < ORDINARY_COUNT; i++)
		buf_printf(sql, "%s%s", i ? ", " : "", ordinary_columns[i]);
	buf_puts(sql, ") ORDER BY seq DESC");
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
	struct half *newer = &halves[0], *older = &halves[1]; /* the older one may be empty */
	size_t room = NODEDB_THINNED_MAX - newer->count;
	bool is_cut = newer->is_full || older->is_full || older->count > room;
	int res;

	older->count = MIN(older->count, room);
	if (count > 1)
		ordinary_merge(&newer->ordinary, &older->ordinary);
	c->thinned_rows = ordinary_thinned(&newer->ordinary);
	res = add_edges(r, older, newer, reterr);
	c->skipped_rows += newer->skipped + older->skipped;
	res = res ?: do_halves(halves, count, half_sort, reterr);
	res = res ?: take_events(c, older, newer);
	return res == 0 && is_cut ? count_older(r, reterr) : res;
}

int reader_load_thinned(struct reader *r, const struct pid_names *names, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct nodedb_content *c = r->content;
	const struct scope *s = &r->filter->scope;
	struct half halves[2] = {{.sql = r->sql}};
	int count = r->frozen ? 2 : 1;
	int64_t low, high;
	int res = sql_get_int(r->sql, "SELECT coalesce(min(seq), 1) FROM events", &low, reterr);

	res = res ?: sql_get_int(r->sql, "SELECT coalesce(max(seq), 0) FROM events", &high, reterr);
	res = res ?: write_statement(r, &sql, reterr);
	res = res ?: ordinary_init(&halves[0].ordinary, c->aggregates, c->aggregate_count);
	if (res < 0)
		return res;
	halves[0].ordinary.from_ns = r->filter->scope.from_ns;
	halves[0].ordinary.to_ns = r->filter->scope.to_ns;
	if (count > 1)
		res = ordinary_clone(&halves[1].ordinary, &halves[0].ordinary);
	for (int i = 0; i < count; i++) {
		halves[i].frozen = r->frozen;
		halves[i].scope = s->from_ns || s->to_ns || s->pid_count ? s : NULL;
		halves[i].path = r->path;
		halves[i].text = buf_str(&sql);
		halves[i].names = names;
		halves[i].low = low;
		halves[i].high = high;
	}
	if (count > 1) /* by sums of halves: seq may be anything in a hostile file */
		halves[0].low = 1 + (halves[1].high = low / 2 + high / 2);
	res = res ?: do_halves(halves, count, half_main, reterr);
	res = res ?: join_halves(r, halves, count, reterr);
	half_done(&halves[0]);
	half_done(&halves[1]);
	return res;
}
