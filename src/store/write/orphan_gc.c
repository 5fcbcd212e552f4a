/* SPDX-License-Identifier: Apache-2.0 */
/* orphan_gc.c - rows that only make sense for others that are gone. See prune.h.
 *
 * Stacks and cgroups: mark and sweep. All that are there when a round begins are candidates (a
 * temporary table); events and ledger are then read once, in portions by row number, and strike out
 * what they refer to; what is left at their end has no reader. A portion deletes only after marking
 * has reached the newest rows in the same transaction, so nothing written meanwhile is missed, and no
 * index on them is needed, which every insert would pay for.
 *
 * A round over many millions of events reads them all, so the next one rests ten times as long as
 * the last one took. */
#include "store/write/prune.h"

#include "base/clock.h"

#define REST_RATIO     10
#define REST_MIN_NS    (10 * NS_PER_S)
#define CANDIDATES_MAX 100000 /* stacks, and cgroups, looked at in one round: 40 ms to list */

enum stage {
	STAGE_REST,
	STAGE_LIST,
	STAGE_MARK,
	STAGE_PROCESSES,
	STAGE_COVERAGE,
	STAGE_NAMES,
	STAGE_SESSIONS,
};

struct portion {
	struct nodedb *db;
	size_t rows;
	int64_t session;
	uint64_t *deleted;
};

void orphan_gc_begin(struct orphan_gc *s)
{
	uint64_t now = mono_now().ns;

	if (s->stage != STAGE_REST || now < s->rest_until_ns)
		return;
	s->stage = STAGE_LIST;
	s->began_ns = now;
}

static int rest(struct orphan_gc *s)
{
	uint64_t now = mono_now().ns, took = now - s->began_ns;

	s->rest_until_ns = now + MAX(took * REST_RATIO, (uint64_t)REST_MIN_NS);
	s->stage = STAGE_REST;
	return 0;
}

/* Runs a DELETE and books what it removed. Returns the number of rows. */
static int delete_rows(
	struct portion *p, const char *table, const char *sql, struct errinfo *reterr)
{
	int64_t rows;
	int r = sql_exec(p->db->sql, sql, reterr);

	if (r < 0)
		return r;
	r = sql_get_int(p->db->sql, "SELECT changes()", &rows, reterr);
	if (r < 0 || rows == 0)
		return r;
	*p->deleted += (uint64_t)rows;
	r = nodedb_put_pruned(p->db, p->session, table, (uint64_t)rows, 0, 0, reterr);
	return r < 0 ? r : (int)MIN(rows, (int64_t)INT32_MAX);
}

/* The next ones of @table into @list, from the beginning again after the last. */
static int list_next(struct portion *p, const char *table, const char *column, const char *list,
	int64_t *after, struct errinfo *reterr)
{
	char sql[512];
	int r;

	snprintf(sql, sizeof(sql),
		"CREATE TEMP TABLE IF NOT EXISTS %s (id INTEGER PRIMARY KEY); DELETE FROM %s;"
		"INSERT INTO %s SELECT %s FROM %s WHERE %s > %" PRId64 " ORDER BY 1 LIMIT %d",
		list, list, list, column, table, column, *after, CANDIDATES_MAX);
	r = sql_exec(p->db->sql, sql, reterr);
	snprintf(sql, sizeof(sql),
		"SELECT iif(count(*) = %d, max(id), -9223372036854775807 - 1) FROM %s",
		CANDIDATES_MAX, list);
	return r ?: sql_get_int(p->db->sql, sql, after, reterr);
}

static int list_candidates(struct orphan_gc *s, struct portion *p, struct errinfo *reterr)
{
	int64_t found;
	int r = list_next(p, "stack_traces", "hash", "orphan_stacks", &s->stacks_at, reterr);

	if (r == 0)
		r = list_next(p, "cgroup_metadata", "cgroup_id", "orphan_cgroups", &s->cgroups_at,
			reterr);
	if (r == 0)
		r = sql_exec(p->db->sql,
			"DELETE FROM orphan_cgroups WHERE id IN (SELECT cgroup_id FROM container_samples)",
			reterr);
	if (r == 0)
		r = sql_get_int(p->db->sql,
			"SELECT EXISTS (SELECT 1 FROM orphan_stacks)"
			" OR EXISTS (SELECT 1 FROM orphan_cgroups)",
			&found, reterr);
	if (r < 0)
		return r;
	s->cursor = s->row_cursor = 0;
	s->pid = s->start = -1;
	s->stage = found ? STAGE_MARK : STAGE_PROCESSES;
	return 1;
}

/* Strikes out of @list what @column of the next rows of @table refers to. */
static int strike(struct portion *p, const char *list, const char *table, const char *column,
	int64_t cursor, struct errinfo *reterr)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
		"DELETE FROM %s WHERE id IN (SELECT %s FROM %s WHERE rowid > %" PRId64
		" ORDER BY rowid LIMIT %zu)",
		list, column, table, cursor, p->rows);
	return sql_exec(p->db->sql, sql, reterr);
}

/* Moves the cursor behind the rows that were looked at. Returns 1 when there are no more. */
static int advance(struct portion *p, const char *table, int64_t *cursor, struct errinfo *reterr)
{
	char sql[256];
	int64_t last;
	int r;

	snprintf(sql, sizeof(sql),
		"SELECT coalesce(max(n), 0) FROM (SELECT rowid AS n FROM %s WHERE rowid > %" PRId64
		" ORDER BY rowid LIMIT %zu)",
		table, *cursor, p->rows);
	r = sql_get_int(p->db->sql, sql, &last, reterr);
	if (r < 0)
		return r;
	if (last)
		*cursor = last;
	snprintf(sql, sizeof(sql), "SELECT coalesce(max(rowid), 0) FROM %s", table);
	r = sql_get_int(p->db->sql, sql, &last, reterr);
	return r < 0 ? r : *cursor >= last;
}

/* Strikes out what the next events and ledger rows refer to. Returns 1 when there are no more. */
static int mark(struct orphan_gc *s, struct portion *p, struct errinfo *reterr)
{
	int r = strike(p, "orphan_stacks", "events", "stack_hash", s->cursor, reterr), rest;

	if (r >= 0)
		r = strike(p, "orphan_cgroups", "events", "cgroup_id", s->cursor, reterr);
	if (r >= 0)
		r = strike(p, "orphan_stacks", "ledger", "stack_hash", s->row_cursor, reterr);
	if (r >= 0)
		r = advance(p, "events", &s->cursor, reterr);
	if (r < 0)
		return r;
	rest = advance(p, "ledger", &s->row_cursor, reterr);
	return rest < 0 ? rest : r && rest;
}

static int remove_orphans(struct orphan_gc *s, struct portion *p, const char *table,
	const char *column, const char *list, struct errinfo *reterr)
{
	char sql[256];
	int r, n;

	snprintf(sql, sizeof(sql),
		"DELETE FROM %s WHERE %s IN (SELECT id FROM %s ORDER BY id LIMIT %zu)", table,
		column, list, p->rows);
	n = delete_rows(p, table, sql, reterr);
	if (n < 0)
		return n;
	s->removed = s->removed || n > 0;
	snprintf(sql, sizeof(sql),
		"DELETE FROM %s WHERE id IN (SELECT id FROM %s ORDER BY id LIMIT %zu)", list, list,
		p->rows);
	r = sql_exec(p->db->sql, sql, reterr);
	return r < 0 ? r : n;
}

static int mark_and_remove(struct orphan_gc *s, struct portion *p, struct errinfo *reterr)
{
	int r = mark(s, p, reterr), n;

	if (r <= 0)
		return r < 0 ? r : 1;
	r = remove_orphans(s, p, "stack_traces", "hash", "orphan_stacks", reterr);
	if (r < 0)
		return r;
	n = remove_orphans(s, p, "cgroup_metadata", "cgroup_id", "orphan_cgroups", reterr);
	if (n < 0)
		return n;
	if (r == 0 && n == 0)
		s->stage = STAGE_PROCESSES;
	return 1;
}

#define OLDEST_EVENT "(SELECT coalesce(min(timestamp), 9223372036854775807) FROM events)"

/* The next processes of this node in the order of their key. */
static int remove_processes(struct orphan_gc *s, struct portion *p, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int64_t pid = INT64_MAX, start = INT64_MAX;
	char sql[640];
	int r = sql_prepare(p->db->sql,
		"SELECT pid, start_time FROM processes WHERE node = ?1"
		" AND (pid, start_time) > (?2, ?3) ORDER BY pid, start_time LIMIT 1 OFFSET ?4",
		&stmt, reterr);

	r = r
		    ?: SQL_BIND(stmt, reterr, SQL_S(p->db->node), SQL_I(s->pid), SQL_I(s->start),
			       SQL_I(p->rows - 1));
	if (r < 0)
		return r;
	r = sql_step(stmt, reterr);
	if (r < 0)
		return r;
	if (r > 0) {
		pid = sql_column_int(stmt, 0);
		start = sql_column_int(stmt, 1);
		sql_reset(stmt);
	}
	snprintf(sql, sizeof(sql),
		"DELETE FROM processes WHERE (pid, start_time) > (%" PRId64 ", %" PRId64 ")"
		" AND (pid, start_time) <= (%" PRId64 ", %" PRId64 ")"
		" AND node = (SELECT node FROM sessions WHERE id = %" PRId64 ")"
		" AND last_seen < " OLDEST_EVENT
		" AND NOT EXISTS (SELECT 1 FROM events e WHERE e.pid = processes.pid)",
		s->pid, s->start, pid, start, p->session);
	r = delete_rows(p, "processes", sql, reterr);
	if (r < 0)
		return r;
	s->removed = s->removed || r > 0;
	s->pid = pid;
	s->start = start;
	if (pid == INT64_MAX) {
		s->pid = -1;
		s->stage = STAGE_COVERAGE;
	}
	return 1;
}

/* What was seen of processes whose rows are gone. `since` is set only where something was. */
static int remove_coverage(struct orphan_gc *s, struct portion *p, struct errinfo *reterr)
{
	char sql[768];
	int r;

	snprintf(sql, sizeof(sql),
		"DELETE FROM coverage WHERE (session_id, node, pid, start_time, layer) IN"
		" (SELECT session_id, node, pid, start_time, layer FROM coverage c"
		" WHERE node = (SELECT node FROM sessions WHERE id = %" PRId64 ")"
		" AND since < " OLDEST_EVENT " AND NOT EXISTS (SELECT 1 FROM processes p"
		" WHERE p.node = c.node AND p.pid = c.pid AND p.start_time = c.start_time)"
		" AND NOT EXISTS (SELECT 1 FROM events e WHERE e.pid = c.pid) LIMIT %zu)",
		p->session, p->rows);
	r = delete_rows(p, "coverage", sql, reterr);
	if (r < 0)
		return r;
	s->removed = s->removed || r > 0;
	if (r == 0)
		s->stage = STAGE_NAMES;
	return 1;
}

static int remove_names(struct orphan_gc *s, struct portion *p, struct errinfo *reterr)
{
	int64_t pid;
	char sql[512];
	int r;

	snprintf(sql, sizeof(sql),
		"SELECT coalesce(max(pid), -1) FROM (SELECT pid FROM process_names WHERE pid > "
		"%" PRId64 " ORDER BY pid LIMIT %zu)",
		s->pid, p->rows);
	r = sql_get_int(p->db->sql, sql, &pid, reterr);
	if (r < 0)
		return r;
	if (pid < 0) {
		s->stage = STAGE_SESSIONS;
		return 1;
	}
	snprintf(sql, sizeof(sql),
		"DELETE FROM process_names WHERE pid > %" PRId64 " AND pid <= %" PRId64
		" AND seen_at < " OLDEST_EVENT
		" AND NOT EXISTS (SELECT 1 FROM events e WHERE e.pid = process_names.pid)",
		s->pid, pid);
	r = delete_rows(p, "process_names", sql, reterr);
	if (r < 0)
		return r;
	s->removed = s->removed || r > 0;
	s->pid = pid;
	return 1;
}

/* A session that was killed has no end: the next one's start is as late as it can have been. */
#define SESSION_END                                                                                \
	"coalesce(nullif(stopped_at, 0),"                                                          \
	" (SELECT min(n.started_at) FROM sessions n WHERE n.id > sessions.id))"

/* Sessions of which nothing is left, with their books; what they pruned is added to this one's. */
static int remove_sessions(struct orphan_gc *s, struct portion *p, struct errinfo *reterr)
{
	char sql[1800];
	int r;

	snprintf(sql, sizeof(sql),
		"CREATE TEMP TABLE IF NOT EXISTS gone_sessions (id INTEGER PRIMARY KEY);"
		"DELETE FROM gone_sessions;"
		"INSERT INTO gone_sessions SELECT id FROM sessions WHERE id <> %" PRId64
		" AND " SESSION_END " < min(" OLDEST_EVENT ","
		" (SELECT coalesce(min(bucket), 9223372036854775807) FROM event_aggregates),"
		" (SELECT coalesce(min(bucket), 9223372036854775807) FROM event_aggregates_5s))"
		" LIMIT %zu;"
		"DELETE FROM accounting WHERE session_id IN (SELECT id FROM gone_sessions);"
		"DELETE FROM losses WHERE session_id IN (SELECT id FROM gone_sessions);"
		"DELETE FROM losses_by_cpu WHERE session_id IN (SELECT id FROM gone_sessions);"
		"DELETE FROM call_gaps WHERE session_id IN (SELECT id FROM gone_sessions);"
		"INSERT INTO pruned SELECT %" PRId64
		", table_name, sum(rows), min(oldest_ns), max(newest_ns)"
		" FROM pruned WHERE session_id IN (SELECT id FROM gone_sessions) GROUP BY 2"
		" ON CONFLICT (session_id, table_name) DO UPDATE SET rows = rows + excluded.rows,"
		" oldest_ns = min(oldest_ns, excluded.oldest_ns),"
		" newest_ns = max(newest_ns, excluded.newest_ns);"
		"DELETE FROM pruned WHERE session_id IN (SELECT id FROM gone_sessions)",
		p->session, p->rows, p->session);
	r = sql_exec(p->db->sql, sql, reterr);
	if (r < 0)
		return r;
	r = delete_rows(p, "coverage",
		"DELETE FROM coverage WHERE session_id IN (SELECT id FROM gone_sessions)", reterr);
	if (r < 0)
		return r;
	r = delete_rows(p, "sessions",
		"DELETE FROM sessions WHERE id IN (SELECT id FROM gone_sessions)", reterr);
	return r < 0 ? r : rest(s);
}

int orphan_gc_step(struct orphan_gc *s, struct nodedb *db, size_t rows, int64_t session,
	uint64_t *ret_deleted, struct errinfo *reterr)
{
	struct portion p = {.db = db, .rows = rows, .session = session, .deleted = ret_deleted};

	switch ((enum stage)s->stage) {
	case STAGE_REST: return 0;
	case STAGE_LIST: return list_candidates(s, &p, reterr);
	case STAGE_MARK: return mark_and_remove(s, &p, reterr);
	case STAGE_PROCESSES: return remove_processes(s, &p, reterr);
	case STAGE_COVERAGE: return remove_coverage(s, &p, reterr);
	case STAGE_NAMES: return remove_names(s, &p, reterr);
	case STAGE_SESSIONS: return remove_sessions(s, &p, reterr);
	}
	return 0;
}
