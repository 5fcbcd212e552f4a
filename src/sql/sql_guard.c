/* SPDX-License-Identifier: Apache-2.0 */
/* sql_guard.c - see sql_guard.h.
 *
 * Invariants:
 *  1. What is not listed is denied: tables by the file's own list of real tables, functions by
 *     name, PRAGMAs by name, every other action altogether.
 *  2. SQLite's own compiler says where a statement ends and whether it writes; no text is searched
 *     for words, so that a literal may hold any.
 *  3. Of a denial the first reason is kept: SQLite itself only says "not authorized". */
#include "sql/sql_guard.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"
#include "sql/sql_allow.h"
#include "sql/sql_code.h"

#define STEPS_PER_LOOK 1000 /* of SQLite's machine between two looks at the clock: some 10 µs */

struct guard {
	const struct sql_guard_rules *rules;
	struct sql_allow *allow;
	uint64_t deadline_ns; /* of the monotonic clock; 0: none */
	char denied[160];     /* why; "": nothing was */
	char said[256];       /* SQLite's words about a wrong statement */
};

static int deny(struct guard *g, const char *what, const char *name)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	if (!g->denied[0]) {
		text_escape_terminal(&b, name ? name : "");
		snprintf(g->denied, sizeof(g->denied), "%s%s%.80s", what, b.len ? " " : "",
			buf_str(&b));
	}
	return SQLITE_DENY;
}

static int judge(void *arg, int action, const char *a, const char *b, const char *database,
	const char *within)
{
	struct guard *g = arg;

	(void)within;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE: return SQLITE_OK;
	case SQLITE_READ:
		if (sql_allow_table(g->allow, a, b && !*b, database))
			return SQLITE_OK;
		return deny(g, "unknown table:", a);
	case SQLITE_FUNCTION:
		return sql_allow_function(b) ? SQLITE_OK : deny(g, "not available:", b);
	case SQLITE_PRAGMA:
		return sql_allow_pragma(g->allow, a, b) ? SQLITE_OK
							: deny(g, "not available: PRAGMA", a);
	case SQLITE_ATTACH:
	case SQLITE_DETACH: return deny(g, "other files cannot be opened", "");
	case SQLITE_TRANSACTION:
	case SQLITE_SAVEPOINT: return deny(g, "transactions are not available", "");
	case SQLITE_UPDATE:
		if (a && (!strcasecmp(a, "sqlite_master") || !strcasecmp(a, "sqlite_schema")))
			return deny(g, "virtual tables and the schema cannot be used", "");
		/* fallthrough */
	default: return deny(g, "only reading is allowed", "");
	}
}

static int look_at_clock(void *arg)
{
	const struct guard *g = arg;

	return g->deadline_ns && mono_now().ns > g->deadline_ns;
}

static void limit(sqlite3 *db)
{
	static const struct {
		int id, value;
	} limits[] = {
		{SQLITE_LIMIT_LENGTH, SQL_GUARD_VALUE_MAX},
		{SQLITE_LIMIT_SQL_LENGTH, SQL_GUARD_TEXT_MAX},
		{SQLITE_LIMIT_COLUMN, 500},
		{SQLITE_LIMIT_EXPR_DEPTH, 100},
		{SQLITE_LIMIT_COMPOUND_SELECT, 50},
		{SQLITE_LIMIT_VDBE_OP, 25000},
		{SQLITE_LIMIT_FUNCTION_ARG, 64},
		{SQLITE_LIMIT_ATTACHED, 0},
		/* Matching takes time that grows with every % to the power of their number, and
		 * looks at no clock. */
		{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
		{SQLITE_LIMIT_VARIABLE_NUMBER, 0},
		{SQLITE_LIMIT_TRIGGER_DEPTH, 0},
		{SQLITE_LIMIT_WORKER_THREADS, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		sqlite3_limit(db, limits[i].id, limits[i].value);
}

static int fail(struct guard *g, sqlite3 *db, int code, struct errinfo *reterr)
{
	const char *path = sqlite3_db_filename(db, "main"), *said = sqlite3_errmsg(db);
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	char n[TEXT_MAX];

	text_escape_terminal(&b, said);
	snprintf(g->said, sizeof(g->said), "%s", said);
	/* A denial inside a table-valued function comes as a plain error. */
	if ((code & 0xff) == SQLITE_AUTH || ((code & 0xff) == SQLITE_ERROR && g->denied[0]))
		return errinfo_set_exit(reterr, EXIT_USAGE, -EPERM, "this SQL is not allowed: %s",
			g->denied[0] ? g->denied : buf_str(&b));
	switch (code & 0xff) {
	case SQLITE_INTERRUPT:
		return errinfo_set_exit(reterr, EXIT_FAILED, -ETIMEDOUT,
			"the SQL timed out after %s: select less, or raise --timeout",
			text_format_duration(n, g->rules->timeout_ns));
	case SQLITE_NOMEM:
		return errinfo_set_exit(reterr, EXIT_FAILED, -ENOMEM,
			"the SQL needs more memory than %s: select less",
			text_format_bytes(n, g->rules->memory_bytes));
	case SQLITE_TOOBIG:
		return errinfo_set_exit(reterr, EXIT_USAGE, -E2BIG,
			"the SQL or one of its values is too long (a value: %d bytes)",
			SQL_GUARD_VALUE_MAX);
	case SQLITE_ERROR:
		/* ENABLE_VIEW is off: whoever made the file could hide anything behind one. */
		return errinfo_set(reterr, -EINVAL, "SQL error: %.380s", buf_str(&b));
	default:
		return sql_code_error(code, sqlite3_system_errno(db),
			path && *path ? path : "the database", said, reterr);
	}
}

/* The only statement of @text: SQLite's own compiler finds its end, comments and all. */
static int prepare_one(struct guard *g, sqlite3 *db, const char *text, sqlite3_stmt **ret_stmt,
	struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sqlite3_stmt *first = NULL;

	while (*text) {
		_cleanup_(sql_finalizep) sqlite3_stmt *stmt = NULL;
		const char *tail = NULL;
		int code = sqlite3_prepare_v2(db, text, -1, &stmt, &tail);

		if (first && (code != SQLITE_OK || stmt))
			return errinfo_set(reterr, -EINVAL, "only one SQL statement is allowed");
		if (code != SQLITE_OK)
			return fail(g, db, code, reterr);
		if (stmt)
			first = TAKE(stmt);
		if (tail == text)
			break;
		text = tail;
	}
	if (!first)
		return errinfo_set(reterr, -EINVAL, "the SQL is empty");
	if (!sqlite3_stmt_readonly(first) || !sqlite3_column_count(first))
		return errinfo_set_exit(reterr, EXIT_USAGE, -EPERM,
			"this SQL is not allowed: only reading is allowed");
	*ret_stmt = TAKE(first);
	return 0;
}

static int collect(struct guard *g, sqlite3 *db, sqlite3_stmt *stmt, struct sql_table *t,
	struct errinfo *reterr)
{
	int code, r = sql_table_begin(t, stmt, g->rules->bytes_max);

	while (r == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
		t->truncated = t->row_count == g->rules->rows_max;
		if (t->truncated)
			return 0;
		r = sql_table_add(t, stmt);
		if (r == -ENOBUFS) {
			t->truncated = true;
			return 0;
		}
	}
	if (r < 0)
		return errinfo_set(reterr, r, "not enough memory for the answer");
	return code == SQLITE_DONE ? 0 : fail(g, db, code, reterr);
}

static int select_guarded(
	struct guard *g, sqlite3 *db, const char *text, struct sql_table *t, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sqlite3_stmt *stmt = NULL;
	int r = prepare_one(g, db, text, &stmt, reterr);

	return r < 0 ? r : collect(g, db, stmt, t, reterr);
}

int sql_guard_select(sql_db *db, const char *text, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr)
{
	_cleanup_(sql_allow_freep) struct sql_allow *allow = NULL;
	struct guard g = {.rules = rules};
	struct sql_table t = {0};
	int64_t before = 0;
	int r;

	if (strlen(text) > SQL_GUARD_TEXT_MAX)
		return errinfo_set_exit(reterr, EXIT_USAGE, -E2BIG,
			"the SQL is longer than %d bytes", SQL_GUARD_TEXT_MAX);
	r = sql_allow_new(db, &allow, reterr);
	if (r < 0)
		return r;
	g.allow = allow;
	if (rules->timeout_ns)
		g.deadline_ns = mono_now().ns + rules->timeout_ns;
	limit(db);
	sqlite3_set_authorizer(db, judge, &g);
	sqlite3_progress_handler(db, STEPS_PER_LOOK, look_at_clock, &g);
	if (rules->memory_bytes)
		before = sqlite3_hard_heap_limit64(
			sqlite3_memory_used() + (int64_t)rules->memory_bytes);
	r = select_guarded(&g, db, text, &t, reterr);
	if (rules->memory_bytes)
		sqlite3_hard_heap_limit64(before);
	/* The authorizer stays until the end: a denied table gives no hint about others. */
	sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 1);
	if (r == -EINVAL && hint)
		sql_allow_hint(allow, db, g.said, text, hint);
	sqlite3_progress_handler(db, 0, NULL, NULL);
	sqlite3_set_authorizer(db, NULL, NULL);
	if (r < 0) {
		sql_table_done(&t);
		return r;
	}
	*ret = t;
	return 0;
}
