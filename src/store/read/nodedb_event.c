/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_event.c - rows of `events`, of any schema, as struct event.
 *
 * Published files (0.8 to 0.10) stamp block I/O, socket and sched_switch rows with their END; here
 * their start is timestamp - duration, as for every other row. They have no comm before 0.10: the
 * name is then the pid's last one in process_names. Rows are taken newest first, by the index on
 * timestamp, so that a limit keeps the newest. */

#include "base/search.h"
#include "base/array.h"

#include "store/schema/event_column.h"
#include "store/read/nodedb_reader.h"

#define NAMES_MAX 65536
/* Rows that published files stamp with their end: io, net, sched_switch. */
#define STAMPED_AT_END "(source IN (5, 7) OR (source = 3 AND op = 1))"
STATIC_ASSERT(SOURCE_IO == 5 && SOURCE_NET == 7 && SOURCE_HOST == 3 && HOST_SCHED_SWITCH == 1);

void reader_names_done(struct pid_names *n)
{
	free(n->rows);
}

static bool read_name(sql_stmt *stmt, void *arg, void *row)
{
	struct pid_name *n = row;

	*n = (struct pid_name){.pid = sql_column_int(stmt, 0)};
	return sql_column_type(stmt, 0) == SQL_INT &&
	       reader_text(stmt, 1, n->name, sizeof(n->name));
}

int reader_load_names(struct reader *r, struct pid_names *ret, struct errinfo *reterr)
{
	return reader_load(r,
		&(struct reader_query){.table = "process_names",
			.select = "SELECT pid, name",
			.rest = " ORDER BY pid"},
		&(struct reader_rows){READER_INTO(ret->rows, ret->count), .max = NAMES_MAX,
			.read = read_name, .skipped = &r->content->skipped_rows},
		reterr);
}

ORDER(by_pid, struct pid_name, ASCENDING(pid))

/* "node:seq" of 0.9 and later, or the integer of 0.8; 0 if neither. */
static uint64_t seq_of(const struct sql_value *v)
{
	char text[32];
	const char *colon;

	if (v->type == SQL_INT)
		return (uint64_t)v->i;
	colon = v->type == SQL_TEXT ? memrchr(v->p, ':', v->len) : NULL;
	if (!colon)
		return 0;
	snprintf(text, sizeof(text), "%.*s",
		(int)MIN(v->len - (size_t)(colon + 1 - (const char *)v->p), sizeof(text)),
		colon + 1);
	return strtoull(text, NULL, 10);
}

/* The other end of a connection, which is stored as text. */
static void read_peer(const struct sql_value *v, struct event *e)
{
	char text[EVENT_PEER_MAX];

	if ((e->source == SOURCE_NET || e->source == SOURCE_TCP) &&
		table_copy_text(v, text, sizeof(text)) && text[0])
		event_peer_set(e, text);
}

/* The row as an event; false if it makes no sense. */
static bool read_row(enum schema_kind kind, const struct sql_value *values, struct event *e)
{
	*e = (struct event){0};
	if (!table_read(&node_tables[TABLE_EVENTS], values, e) || !e->source ||
		!event_in_range(e->start.ns, 1, WALL_NS_MAX) ||
		!table_copy_text(&values[COL_PEER_COMM], e->peer_comm, sizeof(e->peer_comm)))
		return false;
	e->seq = seq_of(&values[COL_ID]);
	read_peer(&values[COL_DETAIL], e);
	if (kind == SCHEMA_PUBLISHED) {
		if (event_stamped_at_end(e->source, e->op))
			e->start.ns -= (int64_t)e->dur_ns;
		if (e->source == SOURCE_HOST && e->op == HOST_PROCESS_FORK && e->arg1 <= UINT32_MAX)
			e->peer_pid = (uint32_t)e->arg1;
	}
	return e->start.ns > 0;
}

const char *reader_name_of(const struct pid_names *names, uint32_t pid)
{
	struct pid_name key = {.pid = pid}, *found = NULL;

	if (names->count)
		found = bsearch(&key, names->rows, names->count, sizeof(key), by_pid);
	return found ? found->name : NULL;
}

int reader_event_select(struct reader *r, bool node, struct buf *sql, struct errinfo *reterr)
{
	return reader_select_of(r, "events", node_tables[TABLE_EVENTS].columns,
		node ? COL_COUNT : COL_NODE, NULL, sql, reterr);
}

const char *reader_event_node(sql_stmt *stmt, size_t *ret_len)
{
	if (sql_column_type(stmt, COL_NODE) != SQL_TEXT) {
		*ret_len = 0;
		return "";
	}
	return sql_column_text(stmt, COL_NODE, ret_len);
}

bool reader_event_row(
	enum schema_kind kind, sql_stmt *stmt, const struct pid_names *names, struct event *ret)
{
	struct sql_value values[READER_EVENT_COLUMNS];

	for (int i = 0; i < READER_EVENT_COLUMNS; i++)
		values[i] = sql_column_value(stmt, i);
	return reader_event_values(kind, values, names, ret);
}

STATIC_ASSERT(READER_EVENT_COLUMNS == COL_NODE);
void reader_event_columns(const char *ret[READER_EVENT_COLUMNS])
{
	for (int i = 0; i < READER_EVENT_COLUMNS; i++)
		ret[i] = node_tables[TABLE_EVENTS].columns[i].name;
}

bool reader_event_values(enum schema_kind kind, const struct sql_value *values,
	const struct pid_names *names, struct event *ret)
{
	const char *name;

	if (!read_row(kind, values, ret))
		return false;
	name = ret->comm[0] ? NULL : reader_name_of(names, ret->pid);
	if (name)
		memcpy(ret->comm, name, sizeof(ret->comm));
	return true;
}

/* WHERE … for events. Of a published file a row stamped at its end may start before `to` and be
 * stamped after it: read_row() and reader_event_accept() decide by the start. */
int reader_event_where(struct reader *r, struct buf *sql, struct errinfo *reterr)
{
	struct scope s = r->filter->scope;
	long long to = s.to_ns;
	int res;

	if (r->kind == SCHEMA_PUBLISHED)
		s.to_ns = 0;
	res = reader_where_of(r, &s, "events",
		(struct scope_columns){.time = "timestamp", .pid = "pid", .op = true}, sql, reterr);
	if (r->kind == SCHEMA_PUBLISHED && to)
		buf_printf(sql,
			" AND (timestamp <= %lld OR (" STAMPED_AT_END
			" AND timestamp - duration <= %lld))",
			to, to);
	return res;
}

void reader_event_order(const struct reader *r, struct buf *sql)
{
	if (r->kind == SCHEMA_PUBLISHED)
		buf_puts(sql, " ORDER BY timestamp - iif(" STAMPED_AT_END
			      ", duration, 0), duration DESC");
	else
		buf_puts(sql, " ORDER BY timestamp, duration DESC");
}

bool reader_event_accept(const struct nodedb_filter *f, const struct event *e)
{
	const struct scope *s = &f->scope;

	return (!s->from_ns || e->start.ns >= s->from_ns) && (!s->to_ns || e->start.ns <= s->to_ns);
}

static int count_older(struct reader *r, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int64_t total = 0;
	int res;

	buf_puts(&sql, "SELECT count(*) FROM events");
	res = reader_event_where(r, &sql, reterr);
	if (res < 0)
		return res;
	res = sql_get_int_buf(r->sql, &sql, &total, reterr);
	if (res >= 0)
		r->content->older_events = (uint64_t)total - NODEDB_EVENTS_MAX;
	return res;
}

struct order {                          /* of one event */
	uint32_t start_high, start_low; /* halves of its start, which is above 0 */
	uint64_t seq;
	size_t at; /* where it is */
};

ORDER(by_start, struct order,
	ASCENDING(start_high) ?: ASCENDING(start_low) ?: ASCENDING(seq) ?: DESCENDING(at))

/* Moves every event to its place, cycle by cycle: no second array of them. */
static void permute(struct event *events, struct order *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct event first = events[i];
		size_t to = i, from;

		if (keys[i].at == i)
			continue;
		while ((from = keys[to].at) != i) {
			events[to] = events[from];
			keys[to].at = to;
			to = from;
		}
		events[to] = first;
		keys[to].at = to;
	}
}

static bool is_in_order(const struct event *events, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (events[i].start.ns < events[i - 1].start.ns ||
			(events[i].start.ns == events[i - 1].start.ns &&
				events[i].seq <= events[i - 1].seq))
			return false;
	return true;
}

/* Rows come newest first, more or less. Sorted are keys of 24 bytes and not rows of 160. */
int reader_event_sort(struct event *events, size_t n)
{
	_cleanup_free_ struct order *keys = NULL;

	if (is_in_order(events, n))
		return 0;
	keys = reallocarray(NULL, n, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct event *e = &events[n - 1 - i];

		keys[i] = (struct order){
			(uint32_t)(e->start.ns >> 32), (uint32_t)e->start.ns, e->seq, n - 1 - i};
	}
	SORT_DEALT(keys, n, by_start, offsetof(struct order, start_high),
		offsetof(struct order, start_low));
	permute(events, keys, n);
	return 0;
}

static int put_in_order(struct nodedb_content *c)
{
	int res = reader_event_sort(c->events, c->event_count);

	if (res < 0 || !c->event_count)
		return res;
	c->first_ns = c->events[0].start.ns;
	for (size_t i = 0; i < c->event_count; i++)
		c->last_ns = MAX(c->last_ns, event_end_ns(&c->events[i]));
	return 0;
}

static int read_rows(struct reader *r, sql_stmt *stmt, size_t limit, const struct pid_names *names,
	bool *ret_more, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;
	size_t capacity = 0, rows = 0;
	int res;

	*ret_more = false;
	while ((res = sql_step(stmt, reterr)) > 0) {
		struct event e;

		if (rows++ == limit) {
			*ret_more = true;
			sql_reset(stmt);
			return 0;
		}
		if (!reader_event_row(r->kind, stmt, names, &e)) {
			c->skipped_rows++;
			continue;
		}
		if (!reader_event_accept(r->filter, &e))
			continue;
		res = ARRAY_RESERVE(c->events, capacity, c->event_count + 1, NODEDB_EVENTS_MAX);
		if (res < 0)
			return errinfo_set(reterr, res,
				"not enough memory for the events of %s: select fewer with --last "
				"or a time range",
				r->path);
		c->events[c->event_count++] = e;
	}
	return res;
}

static int load_newest(struct reader *r, const struct pid_names *names, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	size_t limit = r->filter->last ? MIN(r->filter->last, (size_t)NODEDB_EVENTS_MAX)
				       : (size_t)NODEDB_EVENTS_MAX;
	bool more = false;
	int res = reader_event_select(r, false, &sql, reterr);

	if (res < 0)
		return res;
	res = reader_event_where(r, &sql, reterr);
	if (res < 0)
		return res;
	buf_printf(&sql, " ORDER BY timestamp DESC, rowid DESC LIMIT %zu", limit + 1);
	res = reader_prepare(r, &sql, &stmt, reterr);
	res = res ?: read_rows(r, stmt, limit, names, &more, reterr);
	if (res < 0)
		return res;
	if (more && (!r->filter->last || r->filter->last > limit))
		return count_older(r, reterr);
	return 0;
}

/* Whether rows of ordinary calls are to be left out: aggregates must be there to speak for them. */
static int is_thinned(struct reader *r, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int64_t rows;
	int res;

	if (r->filter->thin == NODEDB_THIN_NEVER || r->filter->last || r->kind != SCHEMA_OURS ||
		r->merged || !r->content->aggregate_count)
		return 0;
	if (r->filter->thin == NODEDB_THIN_ALWAYS)
		return 1;
	buf_puts(&sql, "SELECT count(*) FROM (SELECT 1 FROM events"); /* the index tells */
	scope_where(&r->filter->scope, &(struct scope_columns){.time = "timestamp"}, &sql);
	buf_printf(&sql, " LIMIT %u)", NODEDB_WHOLE_MAX + 1);
	res = sql_get_int_buf(r->sql, &sql, &rows, reterr);
	return res < 0 ? res : rows > NODEDB_WHOLE_MAX;
}

int reader_load_events(struct reader *r, struct errinfo *reterr)
{
	_cleanup_(reader_names_done) struct pid_names names = {0};
	struct nodedb_content *c = r->content;
	int res = reader_load_names(r, &names, reterr);

	if (res < 0)
		return res;
	res = is_thinned(r, reterr);
	if (res < 0)
		return res;
	res = res ? reader_load_thinned(r, &names, reterr) : load_newest(r, &names, reterr);
	res = res ?: put_in_order(c);
	c->total_calls = c->total_calls ?: c->event_count + c->older_events + c->thinned_rows;
	return res;
}
