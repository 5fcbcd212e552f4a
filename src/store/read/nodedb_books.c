/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_books.c - loads the books of a recording: what was hit, stored, counted and lost, which sessions have no clean
 * end, and which calls no probe could hit. */
#include <math.h>

#include "store/lock.h"
#include "store/read/nodedb_reader.h"
#include "wire/names.h"

/* Sessions that were at work in the time that is asked for. One without a clean end lasted until the next of its node
 * began. Of a recording asked for as a whole, and where the sessions' own times make no sense, all of them. */
static int put_sessions(
	struct reader *r, const char *column, struct buf *sql, struct errinfo *reterr)
{
	const struct scope *s = &r->filter->scope;
	_cleanup_buf_ struct buf chosen = BUF_INIT(SQL_TEXT_MAX), count = BUF_INIT(SQL_TEXT_MAX);
	int64_t n = 0;
	int res;

	if (!s->from_ns && !s->to_ns)
		return 0;
	buf_printf(&chosen,
		"FROM sessions s WHERE s.started_at <= %" PRId64
		" AND coalesce(nullif(s.stopped_at, 0), (SELECT min(n.started_at) - 1 FROM sessions n WHERE"
		" n.id > s.id%s), %" PRId64 ") >= %" PRId64,
		s->to_ns ? s->to_ns : INT64_MAX, r->merged ? " AND n.node = s.node" : "", INT64_MAX,
		s->from_ns);
	buf_puts(&count, "SELECT count(*) FROM sessions");
	res = reader_where(r, "sessions", (struct scope_columns){0}, &count, reterr);
	buf_printf(&count, " AND id IN (SELECT s.id %s)", buf_str(&chosen));
	res = res ?: sql_get_int_buf(r->sql, &count, &n, reterr);
	if (res == 0 && n > 0)
		buf_printf(sql, " AND %s IN (SELECT s.id %s)", column, buf_str(&chosen));
	return res;
}

static int books_where(struct reader *r, const char *table, struct buf *sql, struct errinfo *reterr)
{
	int res = reader_where(r, table, (struct scope_columns){0}, sql, reterr);

	return res ?: put_sessions(r, strcmp(table, "sessions") ? "session_id" : "id", sql, reterr);
}

static int books_prepare(struct reader *r, const char *select, const char *table, const char *order,
	sql_stmt **ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int res;

	buf_puts(&sql, select);
	res = books_where(r, table, &sql, reterr);
	buf_puts(&sql, order);
	return res < 0 ? res : reader_prepare(r, &sql, ret, reterr);
}

static int add_losses(struct reader *r, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int res = books_prepare(
		r, "SELECT source, count, reason FROM losses", "losses", "", &stmt, reterr);

	if (res < 0)
		return res;
	while ((res = sql_step(stmt, reterr)) > 0) {
		uint64_t source, count;
		char reason[64];
		int i = LOSS_COUNT;

		if (reader_count_at(stmt, 0, &source) && source < WIRE_SOURCE_MAX &&
			reader_count_at(stmt, 1, &count) &&
			reader_text(stmt, 2, reason, sizeof(reason)))
			for (i = 0; i < LOSS_COUNT && strcmp(wire_losses[i].name, reason) != 0;)
				i++;
		if (i < LOSS_COUNT)
			r->content->books.source[source].lost[i] += count;
		else
			r->content->skipped_rows++;
	}
	return res;
}

static int read_unclean(struct reader *r, int64_t before_id, int64_t *ret_count, int64_t *ret_last,
	struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int res;

	buf_puts(&sql, "SELECT count(*), coalesce(max(id), 0) FROM sessions");
	res = books_where(r, "sessions", &sql, reterr);
	buf_printf(&sql, " AND stopped_at = 0 AND id < %" PRId64, before_id);
	res = res ?: reader_prepare(r, &sql, &stmt, reterr);
	res = res ?: sql_step(stmt, reterr);
	if (res <= 0)
		return MIN(res, 0);
	*ret_count = sql_column_int(stmt, 0);
	*ret_last = sql_column_int(stmt, 1);
	return 0;
}

int reader_load_unclean(struct reader *r, struct accounting *books, struct errinfo *reterr)
{
	int64_t before = INT64_MAX, count = 0, last = 0, at = 0;
	char sql[256];
	int res = 0;

	/* The newest session of a file that is being written is not over. */
	if (store_lock_holder(r->path))
		res = sql_get_int(
			r->sql, "SELECT coalesce(max(id), 0) FROM sessions", &before, reterr);
	res = res ?: read_unclean(r, before, &count, &last, reterr);
	if (res < 0 || count <= 0)
		return res;
	snprintf(sql, sizeof(sql),
		"SELECT coalesce(max(timestamp), 0) FROM events WHERE timestamp < coalesce((SELECT"
		" min(started_at) FROM sessions WHERE id > %" PRId64 "), %" PRId64 ")",
		last, INT64_MAX);
	if (!r->merged) /* there the sessions of other nodes follow */
		res = sql_get_int(r->sql, sql, &at, reterr);
	if (res < 0)
		return res;
	books->unclean = (uint32_t)MIN(count, (int64_t)UINT32_MAX);
	books->unclean_ns = at;
	return 0;
}

static int add_call_gaps(struct reader *r, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	char who[320], last[320] = "";
	int res = schema_has_table(r->sql, "call_gaps", reterr);

	if (res <= 0)
		return res; /* an early file of ours */
	res = books_prepare(r,
		"SELECT pid, start_time, timestamp, duration, comm, file, reason,"
		" pid || ' ' || start_time || ' ' || node AS who"
		" FROM call_gaps",
		"call_gaps", " ORDER BY who", &stmt, reterr);
	if (res < 0)
		return res;
	while ((res = sql_step(stmt, reterr)) > 0) {
		struct call_gap g = {0};
		char reason[32];
		uint64_t pid, start, from, ns;

		if (!reader_count_at(stmt, 0, &pid) || pid > UINT32_MAX ||
			!reader_count_at(stmt, 1, &start) || !reader_count_at(stmt, 2, &from) ||
			!reader_count_at(stmt, 3, &ns) || ns > (uint64_t)INT64_MAX - from ||
			!reader_text(stmt, 4, g.comm, sizeof(g.comm)) ||
			!reader_text(stmt, 5, g.file, sizeof(g.file)) ||
			!reader_text(stmt, 6, reason, sizeof(reason)) ||
			!reader_text(stmt, 7, who, sizeof(who))) {
			r->content->skipped_rows++;
			continue;
		}
		g.pid = (uint32_t)pid;
		g.start_ticks = start;
		g.from.ns = (int64_t)from;
		g.to.ns = (int64_t)(from + ns);
		g.reason = call_gap_reason_find(reason);
		call_gap_sum_add(&r->content->books.unseen, &g, strcmp(who, last) != 0);
		memcpy(last, who, sizeof(last));
	}
	return res;
}

/* The names of what the kernel of any of the sessions could not do: sessions.missing up to each colon. */
static int add_missing(struct reader *r, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	char *out = r->content->books.missing, text[2048];
	size_t n = 0, size = sizeof(r->content->books.missing);
	int res = reader_has_column(r, "sessions", "missing", reterr);

	if (res <= 0)
		return res; /* an earlier file of ours */
	res = books_prepare(
		r, "SELECT DISTINCT missing FROM sessions", "sessions", "", &stmt, reterr);
	if (res < 0)
		return res;
	while ((res = sql_step(stmt, reterr)) > 0) {
		if (!reader_text(stmt, 0, text, sizeof(text))) {
			r->content->skipped_rows++;
			continue;
		}
		for (char *line = text; *line && n < size;) {
			size_t length = strcspn(line, "\n");
			int name = (int)strcspn(line, ":\n");

			if (!memmem(out, n, line, (size_t)name))
				n += (size_t)snprintf(
					out + n, size - n, "%s%.*s", n ? ", " : "", name, line);
			line += length + (line[length] == '\n');
		}
	}
	return res;
}

/* A session that was killed at once has events and no books: then the sum proves nothing. */
static int judge_books(struct reader *r, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int64_t sessions, without;
	int res;

	buf_puts(&sql, "SELECT count(*) FROM sessions");
	res = books_where(r, "sessions", &sql, reterr);
	res = res ?: sql_get_int_buf(r->sql, &sql, &sessions, reterr);
	if (res < 0)
		return res;
	buf_puts(&sql, " AND id NOT IN (SELECT session_id FROM accounting)");
	res = sql_get_int_buf(r->sql, &sql, &without, reterr);
	if (res == 0)
		r->content->has_books = sessions > 0 && without == 0;
	return res;
}

/* Of the sessions that are asked for, the one whose launches are known least: what it said last. */
int reader_load_launches(struct reader *r, struct accounting *books, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int res = reader_has_column(r, "overhead", "launch_error", reterr), by_node;

	if (res <= 0)
		return res; /* an earlier file of ours */
	by_node = r->merged ? reader_has_column(r, "overhead", "node", reterr) : 0;
	if (by_node < 0)
		return by_node;
	buf_puts(&sql, "SELECT o.launch_watched, o.launch_error FROM (SELECT * FROM sessions");
	res = books_where(r, "sessions", &sql, reterr);
	if (res < 0)
		return res;
	buf_printf(&sql,
		") s JOIN overhead o ON o.timestamp ="
		" (SELECT max(timestamp) FROM overhead p WHERE timestamp >= s.started_at AND (s.stopped_at ="
		" 0 OR timestamp <= s.stopped_at)%s)%s ORDER BY o.launch_error DESC LIMIT 1",
		by_node ? " AND p.node = s.node" : "", by_node ? " AND o.node = s.node" : "");
	res = reader_prepare(r, &sql, &stmt, reterr);
	res = res ?: sql_step(stmt, reterr);
	if (res <= 0)
		return res;
	books->launch_watched = fmin(fmax(sql_column_real(stmt, 0), 0), 1);
	books->launch_error = fmax(sql_column_real(stmt, 1), 0);
	return 0;
}

int reader_load_books(struct reader *r, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int res;

	if (r->kind != SCHEMA_OURS)
		return 0;
	res = books_prepare(r, "SELECT source, hits, stored, aggregated FROM accounting",
		"accounting", "", &stmt, reterr);
	if (res < 0)
		return res;
	while ((res = sql_step(stmt, reterr)) > 0) {
		uint64_t source, hits, stored, aggregated;
		struct account *a;

		if (!reader_count_at(stmt, 0, &source) || source >= WIRE_SOURCE_MAX ||
			!reader_count_at(stmt, 1, &hits) || !reader_count_at(stmt, 2, &stored) ||
			!reader_count_at(stmt, 3, &aggregated)) {
			r->content->skipped_rows++;
			continue;
		}
		a = &r->content->books.source[source];
		a->hits += hits;
		a->stored += stored;
		a->aggregated += aggregated;
	}
	if (res < 0)
		return res;
	res = add_losses(r, reterr);
	res = res ?: reader_load_unclean(r, &r->content->books, reterr);
	res = res ?: add_call_gaps(r, reterr);
	res = res ?: add_missing(r, reterr);
	res = res ?: reader_load_launches(r, &r->content->books, reterr);
	if (res < 0)
		return res;
	return judge_books(r, reterr);
}
