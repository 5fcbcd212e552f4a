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

#include <ctype.h>
#include <sqlite3.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"

/* ---- what a guarded statement may touch ---- */

#define TABLES_MAX       1000
#define HINT_TABLES_MAX  3
#define HINT_COLUMNS_MAX 60

struct name_list {
	char **items;
	size_t count;
};

struct sql_allow {
	struct name_list tables;  /* real ones of the file */
	struct name_list modules; /* of virtual tables that need no CREATE, and names of the file
				     that are no real tables */
};

static void name_list_done(struct name_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i]);
	free(l->items);
}

static bool name_list_has(const struct name_list *l, const char *name)
{
	return EXISTS(i, l->count, !strcasecmp(l->items[i], name));
}

static int name_list_load(struct name_list *l, sql_db *db, const char *sql, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(db, sql, &stmt, reterr);

	l->items = calloc(TABLES_MAX, sizeof(*l->items));
	if (!l->items)
		return -ENOMEM;
	while (r >= 0 && l->count < TABLES_MAX && (r = sql_step(stmt, reterr)) > 0) {
		l->items[l->count] = strdup(sql_column_text(stmt, 0, NULL));
		if (!l->items[l->count])
			return -ENOMEM;
		l->count++;
	}
	return MIN(r, 0);
}

/* A row of the schema is a real table only if it has a page and its text says so: a forged row may
 * have either, and SQLite goes by the text. */
#define REAL "type = 'table' AND rootpage > 0 AND sql GLOB 'CREATE TABLE*'"

/* Tables that are no tables: SQLite's list of them all, and functions that read their argument. */
static const char *const harmless_tables[] = {"sqlite_master", "sqlite_schema", "json_each",
	"json_tree", "pragma_table_info", "pragma_table_xinfo", "pragma_index_list",
	"pragma_index_info", NULL};

/* SQLite asks the authorizer for an UPDATE of its schema when such a table is first used: that is
 * done before there is one. */
static int use_once(sql_db *db, struct errinfo *reterr)
{
	int r = 0;

	for (const char *const *name = harmless_tables; r == 0 && *name; name++) {
		_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;

		r = sql_prepare(db, FORMATTED(64, "SELECT 1 FROM %s", *name), &stmt, reterr);
	}
	return r;
}

static void sql_allow_free(struct sql_allow *a)
{
	if (!a)
		return;
	name_list_done(&a->tables);
	name_list_done(&a->modules);
	free(a);
}
DEFINE_CLEANUP(struct sql_allow *, sql_allow_free)

/* Lists the real tables of @db: no views, no virtual tables. */
static int sql_allow_new(sql_db *db, struct sql_allow **ret, struct errinfo *reterr)
{
	_cleanup_(sql_allow_freep) struct sql_allow *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	r = name_list_load(&a->tables, db, "SELECT name FROM sqlite_schema WHERE " REAL, reterr);
	r = r
		    ?: name_list_load(&a->modules, db,
			       "SELECT name FROM pragma_module_list UNION ALL SELECT name FROM"
			       " sqlite_schema WHERE type IN ('table', 'view') AND NOT (" REAL ")",
			       reterr);
	r = r ?: use_once(db, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(a);
	return 0;
}

static bool listed(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (!strcasecmp(*list, name))
			return true;
	return false;
}

/* May @name be read? @bare: SQLite asks about a table of which no column is used,
 * and then about names that a WITH clause made up, too. */
static bool sql_allow_table(
	const struct sql_allow *a, const char *name, bool bare, const char *database)
{
	if (!name)
		return bare;
	if (name_list_has(&a->tables, name) || listed(harmless_tables, name))
		return true;
	return bare && !database && !name_list_has(&a->modules, name) &&
	       strncasecmp(name, "pragma_", 7) != 0 && strncasecmp(name, "sqlite_", 7) != 0;
}

/* Pure, and what they make is no larger than what they are given or than a value may be. Not here:
 * printf and format (their precision has no ceiling and no clock), zeroblob and randomblob,
 * load_extension and the like, and what tells about the process (sqlite_version stays). */
static const char *const functions[] = {"->", "->>", "abs", "acos", "acosh", "asin", "asinh",
	"atan", "atan2", "atanh", "avg", "ceil", "ceiling", "char", "coalesce", "concat",
	"concat_ws", "cos", "cosh", "count", "cume_dist", "current_date", "current_time",
	"current_timestamp", "date", "datetime", "degrees", "dense_rank", "exp", "first_value",
	"floor", "glob", "group_concat", "hex", "ifnull", "iif", "instr", "json", "json_array",
	"json_array_length", "json_extract", "json_group_array", "json_group_object", "json_object",
	"json_quote", "json_type", "json_valid", "julianday", "lag", "last_value", "lead", "length",
	"like", "likelihood", "likely", "ln", "log", "log10", "log2", "lower", "ltrim", "max",
	"min", "mod", "nth_value", "ntile", "nullif", "octet_length", "percent_rank", "pi", "pow",
	"power", "quote", "radians", "rank", "replace", "round", "row_number", "rtrim", "sign",
	"sin", "sinh", "sqlite_version", "sqrt", "strftime", "string_agg", "substr", "substring",
	"sum", "tan", "tanh", "time", "timediff", "total", "trim", "trunc", "typeof", "unhex",
	"unicode", "unixepoch", "unlikely", "upper", NULL};

static bool sql_allow_function(const char *name)
{
	return name && listed(functions, name);
}

static bool sql_allow_pragma(const struct sql_allow *a, const char *name, const char *argument)
{
	static const char *const of_tables[] = {"table_info", "table_xinfo", "index_list", NULL};
	static const char *const of_file[] = {"user_version", "schema_version", "application_id",
		"page_count", "page_size", "freelist_count", "encoding", NULL};

	if (listed(of_tables, name))
		return argument && name_list_has(&a->tables, argument);
	if (!strcasecmp(name, "index_info"))
		return true;
	return !argument && listed(of_file, name); /* with an argument it would set it */
}

/* Is @word a word of @text? */
static bool mentions(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = text; len && *p; p++) {
		bool begins = p == text || (!isalnum((unsigned char)p[-1]) && p[-1] != '_');

		if (begins && !strncasecmp(p, word, len) && !isalnum((unsigned char)p[len]) &&
			p[len] != '_')
			return true;
	}
	return false;
}

static void hint_columns(sql_db *db, const char *table, struct buf *hint)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int n = 0;

	if (sql_prepare(db, "SELECT name FROM pragma_table_xinfo(?1)", &stmt, NULL) < 0 ||
		SQL_BIND(stmt, NULL, SQL_S(table)) < 0)
		return;
	buf_puts(hint, hint->len ? "\n" : "");
	text_escape_terminal(hint, table);
	buf_puts(hint, " has");
	while (n < HINT_COLUMNS_MAX && sql_step(stmt, NULL) > 0) {
		buf_puts(hint, n++ ? ", " : " ");
		text_escape_terminal(hint, sql_column_text(stmt, 0, NULL));
	}
}

/* For SQLite's message @said about @text: the columns of the tables that @text
 * names, or the tables; nothing if it is about something else. */
static void sql_allow_hint(
	const struct sql_allow *a, sql_db *db, const char *said, const char *text, struct buf *hint)
{
	int shown = 0;

	if (!strncmp(said, "integer overflow", 16))
		buf_puts(hint, "sum() of large integers overflows; total() does not");
	if (!strncmp(said, "no such table", 13)) {
		buf_puts(hint, "Tables:");
		for (size_t i = 0; i < MIN(a->tables.count, (size_t)HINT_COLUMNS_MAX); i++) {
			buf_puts(hint, i ? ", " : " ");
			text_escape_terminal(hint, a->tables.items[i]);
		}
	}
	if (strncmp(said, "no such column", 14) != 0)
		return;
	for (size_t i = 0; i < a->tables.count && shown < HINT_TABLES_MAX; i++)
		if (mentions(text, a->tables.items[i])) {
			hint_columns(db, a->tables.items[i], hint);
			shown++;
		}
}

/* ---- running it ---- */

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
	const char *said = sqlite3_errmsg(db);
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	text_escape_terminal(&b, said);
	snprintf(g->said, sizeof(g->said), "%s", said);
	/* A denial inside a table-valued function comes as a plain error. */
	if ((code & 0xff) == SQLITE_AUTH || ((code & 0xff) == SQLITE_ERROR && g->denied[0]))
		return errinfo_set_exit(reterr, EXIT_USAGE, -EPERM, "this SQL is not allowed: %s",
			g->denied[0] ? g->denied : buf_str(&b));
	switch (code & 0xff) {
	case SQLITE_INTERRUPT:
		return errinfo_set_exit(reterr, EXIT_FAILED, -ETIMEDOUT,
			"the SQL timed out after %s: select less",
			TEXT_DURATION(g->rules->timeout_ns));
	case SQLITE_NOMEM:
		return errinfo_set_exit(reterr, EXIT_FAILED, -ENOMEM,
			"the SQL needs more memory than %s: select less",
			TEXT_SIZE(g->rules->memory_bytes));
	case SQLITE_TOOBIG:
		return errinfo_set_exit(reterr, EXIT_USAGE, -E2BIG,
			"the SQL or one of its values is too long (a value: %d bytes)",
			SQL_GUARD_VALUE_MAX);
	case SQLITE_ERROR:
		/* ENABLE_VIEW is off: whoever made the file could hide anything behind one. */
		return errinfo_set(reterr, -EINVAL, "SQL error: %.380s", buf_str(&b));
	default: return sql_db_error(db, code, sqlite3_system_errno(db), reterr);
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
