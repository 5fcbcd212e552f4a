/* SPDX-License-Identifier: Apache-2.0 */
/* sql_allow.c - see sql_allow.h. Lists are of what is allowed; a new function or module of a later
 * SQLite is denied until it is listed. */
#include "sql/sql_allow.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/text.h"

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
	for (size_t i = 0; i < l->count; i++)
		if (!strcasecmp(l->items[i], name))
			return true;
	return false;
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
		char sql[64];

		snprintf(sql, sizeof(sql), "SELECT 1 FROM %s", *name);
		r = sql_prepare(db, sql, &stmt, reterr);
	}
	return r;
}

int sql_allow_new(sql_db *db, struct sql_allow **ret, struct errinfo *reterr)
{
	_cleanup_(sql_allow_freep) struct sql_allow *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	r = name_list_load(&a->tables, db, "SELECT name FROM sqlite_schema WHERE " REAL, reterr);
	if (r == 0)
		r = name_list_load(&a->modules, db,
			"SELECT name FROM pragma_module_list UNION ALL SELECT name FROM"
			" sqlite_schema WHERE type IN ('table', 'view') AND NOT (" REAL ")",
			reterr);
	if (r == 0)
		r = use_once(db, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(a);
	return 0;
}

void sql_allow_free(struct sql_allow *a)
{
	if (!a)
		return;
	name_list_done(&a->tables);
	name_list_done(&a->modules);
	free(a);
}

static bool listed(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (!strcasecmp(*list, name))
			return true;
	return false;
}

bool sql_allow_table(const struct sql_allow *a, const char *name, bool bare, const char *database)
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

bool sql_allow_function(const char *name)
{
	return name && listed(functions, name);
}

bool sql_allow_pragma(const struct sql_allow *a, const char *name, const char *argument)
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

void sql_allow_hint(
	const struct sql_allow *a, sql_db *db, const char *said, const char *text, struct buf *hint)
{
	int shown = 0;

	if (!strncmp(said, "integer overflow", 16))
		buf_puts(hint, "sum() of large integers overflows; total() does not");
	if (!strncmp(said, "no such table", 13)) {
		buf_puts(hint, "there are");
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
