/* SPDX-License-Identifier: Apache-2.0 */
/* test_sql_guard.c - hostile statements, each with what must happen. Control: what the guard denies
 * compiles on a connection without it, and what must end by a deadline or a ceiling answers there
 * when it asks for less. */
#include "store_fixture.h"

#include <sqlite3.h>

#include "base/text.h"
#include "sql/sql_guard.h"

enum verdict {
	GIVES,    /* one row whose first value is `word` */
	DENIED,   /* -EPERM; compiles without the guard */
	WRONG,    /* -EINVAL; there is nothing like it, guard or not */
	NOT_ONE,  /* -EINVAL: more than one statement */
	TOO_LONG, /* -ETIMEDOUT */
	TOO_MUCH, /* -ENOMEM or -E2BIG: memory, or a value's length */
};

struct trial {
	enum verdict verdict;
	const char *sql;
	const char *word; /* in the sentence, or the value; NULL: any */
};

static const struct trial trials[] = {
	/* what must work */
	{GIVES, "SELECT count(*) FROM events", "3"},
	{GIVES, "select pid from events where op = 3 limit 1 ; -- and a comment", "7"},
	{GIVES, ";; /* first */ SELECT 'a;b' ;;", "a;b"},
	{GIVES, "SELECT 'insert update delete drop attach pragma ' || 1", NULL},
	{GIVES, "SELECT replace('x y', 'x ', 'z')", "zy"},
	{GIVES,
		"WITH t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) "
		"SELECT count(*) FROM t",
		"5"},
	{GIVES, "WITH t AS (SELECT pid AS p FROM events) SELECT max(p) FROM t", "8"},
	{GIVES, "SELECT rank() OVER (ORDER BY pid) FROM events LIMIT 1", "1"},
	{GIVES, "SELECT json_extract(frames, '$[0].s') FROM stack_traces", "main"},
	{GIVES, "SELECT value FROM stack_traces, json_each('[5]')", "5"},
	{GIVES, "SELECT name FROM pragma_table_info('events') LIMIT 1", "id"},
	{GIVES, "PRAGMA table_info(events)", "0"},
	{GIVES, "PRAGMA user_version", "0"},
	{GIVES, "SELECT count(*) FROM sqlite_schema", NULL},
	{GIVES, "EXPLAIN QUERY PLAN SELECT * FROM events", NULL},
	{GIVES, "VALUES (42)", "42"},
	{GIVES, "SELECT datetime(1774360124, 'unixepoch')", "2026-03-24 13:48:44"},
	{GIVES, "SELECT round(avg(duration), 1) FROM events", "200.0"},
	{GIVES, "SELECT comm FROM events WHERE comm LIKE 'py%' LIMIT 1", "python3"},
	{GIVES, "SELECT (SELECT count(*) FROM events) - (SELECT 1)", "2"},
	{GIVES, "SELECT hex(x'00ff')", "00FF"},
	/* writing */
	{DENIED, "INSERT INTO events(pid) VALUES (1)", "only read"},
	{DENIED, "REPLACE INTO events(pid) VALUES (1)", "only read"},
	{DENIED, "UPDATE events SET pid = 1", "only read"},
	{DENIED, "DELETE FROM events", "only read"},
	{DENIED, "WITH x AS (SELECT 1)\tDELETE\tFROM events", "only read"},
	{DENIED, "WITH x AS (SELECT 1) INSERT INTO events(pid) SELECT 1 FROM x", "only read"},
	{DENIED, "INSERT INTO events(pid) VALUES (1) RETURNING pid", "only read"},
	{DENIED, "DROP TABLE events", "only read"},
	{DENIED, "ALTER TABLE events RENAME TO x", "only read"},
	{DENIED, "ALTER TABLE events ADD COLUMN x", "only read"},
	{DENIED, "CREATE TABLE x(a)", "only read"},
	{DENIED, "CREATE TEMP TABLE x(a)", "only read"},
	{DENIED, "CREATE TABLE x AS SELECT * FROM events", "only read"},
	{DENIED, "CREATE VIEW x AS SELECT 1", "only read"},
	{DENIED, "CREATE TEMP VIEW x AS SELECT 1", "only read"},
	{DENIED, "CREATE INDEX x ON events(pid)", "only read"},
	{DENIED, "CREATE TRIGGER x AFTER INSERT ON events BEGIN SELECT 1; END", "only read"},
	{DENIED, "CREATE VIRTUAL TABLE x USING fts5(a)", "only read"},
	{DENIED, "CREATE VIRTUAL TABLE temp.x USING rtree(a, b, c)", "only read"},
	{DENIED, "REINDEX events", "only read"},
	{DENIED, "ANALYZE", "only read"},
	{DENIED, "EXPLAIN DELETE FROM events", "only read"},
	{DENIED, "VACUUM", NULL},
	{DENIED, "VACUUM INTO '/tmp/ingero-guard-must-not-exist.db'", NULL},
	/* other files, the connection */
	{DENIED, "ATTACH '/tmp/ingero-guard-must-not-exist.db' AS x", "other files"},
	{DENIED, "ATTACH ':memory:' AS x", "other files"},
	{DENIED, "DETACH main", "other files"},
	{DENIED, "BEGIN", "transactions are"},
	{DENIED, "BEGIN EXCLUSIVE", "transactions are"},
	{DENIED, "COMMIT", "transactions are"},
	{DENIED, "ROLLBACK", "transactions are"},
	{DENIED, "SAVEPOINT x", "transactions are"},
	{DENIED, "RELEASE x", "transactions are"},
	{DENIED, "PRAGMA query_only = OFF", "PRAGMA query_only"},
	{DENIED, "PRAGMA writable_schema = ON", "PRAGMA writable_schema"},
	{DENIED, "PRAGMA journal_mode = DELETE", "PRAGMA journal_mode"},
	{DENIED, "PRAGMA user_version = 7", "PRAGMA user_version"},
	{DENIED, "PRAGMA schema_version = 7", "PRAGMA schema_version"},
	{DENIED, "PRAGMA hard_heap_limit = 4000000000", "PRAGMA hard_heap_limit"},
	{DENIED, "PRAGMA temp_store_directory = '/tmp'", "PRAGMA"},
	{DENIED, "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint"},
	{DENIED, "PRAGMA integrity_check", "PRAGMA integrity_check"},
	{DENIED, "PRAGMA database_list", "PRAGMA database_list"},
	{DENIED, "PRAGMA mmap_size = 1073741824", "PRAGMA mmap_size"},
	{DENIED, "SELECT * FROM pragma_database_list", NULL},
	{DENIED, "SELECT count(*) FROM pragma_compile_options", NULL},
	{DENIED, "SELECT name FROM pragma_function_list", NULL},
	/* functions and modules */
	{DENIED, "SELECT load_extension('x')", "load_extension"},
	{DENIED, "SELECT zeroblob(1000000000)", "zeroblob"},
	{DENIED, "SELECT randomblob(1000)", "randomblob"},
	{DENIED, "SELECT printf('%.*c', 900000000, 'x')", "printf"},
	{DENIED, "SELECT format('%100000000d', 1)", "format"},
	{DENIED, "SELECT \"printf\"('%d', 1)", "printf"},
	{DENIED, "SELECT fts3_tokenizer('simple')", "fts3_tokenizer"},
	{DENIED, "SELECT sqlite_compileoption_get(1)", "sqlite_compileoption_get"},
	{DENIED, "SELECT last_insert_rowid()", "last_insert_rowid"},
	{DENIED, "SELECT * FROM search", "virtual tables"},
	{DENIED, "SELECT count(*) FROM search", "virtual tables"},
	{WRONG, "SELECT readfile('/etc/passwd')", "no such function"},
	{WRONG, "SELECT writefile('/tmp/x', 'y')", "no such function"},
	{WRONG, "SELECT edit('x')", "no such function"},
	{WRONG, "SELECT fsdir('/')", "no such function"},
	{WRONG, "SELECT * FROM '/etc/passwd'", "no such table"},
	{WRONG, "SELECT \"events\"", "no such column"},
	{WRONG, "SELEKT 1", "syntax error"},
	{WRONG, "SELECT ?1", "variable number"},
	{WRONG, "SELECT pid FROM events WHERE comm REGEXP 'x'", "no such function"},
	{WRONG, "", "empty"},
	{WRONG, " ;; -- nothing", "empty"},
	/* more than one */
	{NOT_ONE, "SELECT 1; SELECT 2", "one SQL statement"},
	{NOT_ONE, "SELECT 1; DROP TABLE events", "one SQL statement"},
	{NOT_ONE, "SELECT 1; PRAGMA query_only=OFF; DELETE FROM events", "one SQL statement"},
	{NOT_ONE, "SELECT 1 /* ; */; /**/ DELETE FROM events --", "one SQL statement"},
	{NOT_ONE, "SELECT 1; nonsense", "one SQL statement"},
	/* without end */
	{TOO_LONG,
		"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "
		"SELECT count(*) FROM t",
		"timed out"},
	{TOO_LONG,
		"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t "
		"LIMIT 100000000000) SELECT max(n) FROM t",
		"timed out"},
	{TOO_LONG,
		"WITH t(n) AS (VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)) SELECT count(*) "
		"FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k, t l, t m, t o",
		"timed out"},
	{TOO_MUCH,
		"WITH RECURSIVE t(n, s) AS (SELECT 1, hex(hex('0123456789abcdef')) UNION ALL "
		"SELECT n + 1, s || n FROM t) SELECT count(*) FROM (SELECT DISTINCT s FROM t)",
		NULL},
	{TOO_MUCH,
		"WITH RECURSIVE t(s) AS (SELECT 'xxxxxxxx' UNION ALL SELECT s || s FROM t) "
		"SELECT length(s) FROM t",
		"too long"},
	{WRONG,
		"SELECT comm FROM events WHERE 'x' LIKE "
		"'%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a'",
		"too complex"},
};

static const struct sql_guard_rules rules = {
	.timeout_ns = 300 * NS_PER_MS,
	.memory_bytes = 4 << 20,
	.rows_max = 100,
	.bytes_max = 1 << 20,
};

static void make(struct scratch *s)
{
	scratch_sql(s->path,
		"CREATE TABLE events(id INTEGER PRIMARY KEY, pid, op, duration, comm);"
		"INSERT INTO events VALUES (1, 7, 3, 100, 'python3'), (2, 7, 3, 200, 'python3'),"
		" (3, 8, 5, 300, 'other');"
		"CREATE TABLE stack_traces(hash INTEGER PRIMARY KEY, frames TEXT);"
		"INSERT INTO stack_traces VALUES (1, '[{\"s\": \"main\"}]');"
		"CREATE VIRTUAL TABLE search USING fts4(a);");
}

static int ask(const char *path, const char *sql, struct sql_table *t, struct buf *hint,
	struct errinfo *err)
{
	_cleanup_(sql_closep) sql_db *db = NULL;

	*err = (struct errinfo){0};
	assert_int_equal(sql_open_read(path, false, &db, NULL, err), 0);
	return sql_guard_select(db, sql, &rules, t, hint, err);
}

static bool compiles(const char *path, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	bool ok;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	ok = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK;
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return ok;
}

static void check_value(const struct trial *t, const struct sql_table *table)
{
	const struct sql_cell *c;
	char text[64];

	if (!table->row_count)
		fail_msg("%s: no row", t->sql);
	if (!t->word)
		return;
	c = sql_table_cell(table, 0, 0);
	if (c->type == SQL_INT)
		snprintf(text, sizeof(text), "%lld", (long long)c->i);
	else if (c->type == SQL_REAL)
		snprintf(text, sizeof(text), "%.1f", c->d);
	else
		snprintf(text, sizeof(text), "%s", sql_table_bytes(table, c));
	if (strcmp(text, t->word) != 0)
		fail_msg("%s: %s, not %s", t->sql, text, t->word);
}

static void check_trial(const char *path, const struct trial *t)
{
	static const int codes[] = {[GIVES] = 0,
		[DENIED] = -EPERM,
		[WRONG] = -EINVAL,
		[NOT_ONE] = -EINVAL,
		[TOO_LONG] = -ETIMEDOUT};
	struct sql_table table = {0};
	struct errinfo err;
	uint64_t begin = mono_now().ns;
	int r = ask(path, t->sql, &table, NULL, &err);
	bool as_wanted =
		t->verdict == TOO_MUCH ? r == -ENOMEM || r == -E2BIG : r == codes[t->verdict];

	if (!as_wanted)
		fail_msg("%s: %d %s", t->sql, r, err.text);
	if (t->verdict == GIVES)
		check_value(t, &table);
	else if (t->word && !strstr(err.text, t->word))
		fail_msg("%s: says \"%s\"", t->sql, err.text);
	if (t->verdict == DENIED && !compiles(path, t->sql))
		fail_msg("control: %s is denied, but is no SQL either", t->sql);
	if (mono_now().ns - begin > 20 * rules.timeout_ns)
		fail_msg("%s: took %llu ms", t->sql,
			(unsigned long long)((mono_now().ns - begin) / NS_PER_MS));
	sql_table_done(&table);
}

static void test_corpus(void **state)
{
	struct scratch *s = *state;
	size_t before_len, after_len;
	char *before, *after;

	make(s);
	assert_true(ARRAY_SIZE(trials) >= 90);
	before = scratch_bytes(s->path, &before_len);
	for (size_t i = 0; i < ARRAY_SIZE(trials); i++)
		check_trial(s->path, &trials[i]);
	after = scratch_bytes(s->path, &after_len);
	assert_int_equal(before_len, after_len);
	assert_memory_equal(before, after, before_len);
	free(before);
	free(after);
	assert_int_equal(access("/tmp/ingero-guard-must-not-exist.db", F_OK), -1);
	assert_int_equal(scratch_files(s->folder, false), 1);
}

/* The same bombs with a bottom answer: what stopped them was the guard. */
static void test_bombs_with_a_bottom(void **state)
{
	static const struct trial small[] = {
		{GIVES,
			"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t LIMIT "
			"1000) "
			"SELECT max(n) FROM t",
			"1000"},
		{GIVES,
			"WITH RECURSIVE t(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, s || n "
			"FROM "
			"t LIMIT 50) SELECT count(*) FROM (SELECT DISTINCT s FROM t)",
			"50"},
		{GIVES, "SELECT 'xaa' LIKE '%a%a'", "1"},
	};
	struct scratch *s = *state;

	make(s);
	for (size_t i = 0; i < ARRAY_SIZE(small); i++)
		check_trial(s->path, &small[i]);
}

/* Guards alone: without the authorizer the connection still refuses; without a read-only connection
 * the authorizer does. */
static void test_each_layer_alone(void **state)
{
	struct scratch *s = *state;
	struct sql_table t = {0};
	struct errinfo err = {0};
	sql_db *db = NULL;

	make(s);
	assert_int_equal(sql_open_read(s->path, false, &db, NULL, &err), 0);
	assert_true(sql_exec(db, "DELETE FROM events", &err) < 0);
	assert_int_equal(sql_close(db), 0);
	assert_int_equal(sql_open_write(s->path, &db, &err), 0);
	assert_int_equal(
		sql_guard_select(db, "DELETE FROM events", &rules, &t, NULL, &err), -EPERM);
	assert_int_equal(sql_exec(db, "DELETE FROM events WHERE id = 3", &err), 0); /* control */
	assert_int_equal(sql_close(db), 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM events"), 2);
}

static void test_ceilings_tell(void **state)
{
	static const char many[] = "WITH t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < "
				   "%d) SELECT n FROM t";
	static const char wide[] =
		"WITH t(s) AS (SELECT hex('0123456789') UNION ALL SELECT s || s FROM t "
		"WHERE length(s) < 300000) SELECT s FROM t UNION ALL SELECT s FROM t";
	struct scratch *s = *state;
	struct sql_table t = {0};
	struct errinfo err;
	char sql[256];

	make(s);
	snprintf(sql, sizeof(sql), many, 100);
	assert_int_equal(ask(s->path, sql, &t, NULL, &err), 0);
	assert_int_equal(t.row_count, 100);
	assert_false(t.truncated);
	sql_table_done(&t);
	snprintf(sql, sizeof(sql), many, 101);
	assert_int_equal(ask(s->path, sql, &t, NULL, &err), 0);
	assert_int_equal(t.row_count, 100);
	assert_true(t.truncated);
	assert_int_equal(sql_table_cell(&t, 99, 0)->i, 100);
	sql_table_done(&t);
	assert_int_equal(ask(s->path, wide, &t, NULL, &err), 0); /* over bytes_max */
	assert_true(t.truncated && t.row_count > 5 && t.row_count < 100);
	assert_string_equal(sql_table_name(&t, 0), "s");
	sql_table_done(&t);
}

static void test_views_of_the_file_do_not_run(void **state)
{
	struct scratch *s = *state;
	struct sql_table t = {0};
	struct errinfo err;
	sqlite3 *db = NULL;

	make(s);
	assert_int_equal(sqlite3_open(s->path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "CREATE VIEW calls AS SELECT * FROM events", NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	assert_true(compiles(s->path, "SELECT * FROM calls"));
	assert_true(ask(s->path, "SELECT * FROM calls", &t, NULL, &err) < 0);
	assert_true(ask(s->path, "SELECT count(*) FROM calls", &t, NULL, &err) < 0);
}

static void test_hints(void **state)
{
	_cleanup_buf_ struct buf hint = BUF_INIT(4096);
	struct scratch *s = *state;
	struct sql_table t = {0};
	struct errinfo err;

	make(s);
	assert_int_equal(ask(s->path, "SELECT durations FROM events e", &t, &hint, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no such column: durations"));
	assert_string_equal(buf_str(&hint), "events has id, pid, op, duration, comm");
	buf_clear(&hint);
	assert_int_equal(ask(s->path, "SELECT * FROM calls", &t, &hint, &err), -EINVAL);
	assert_int_equal(strncmp(buf_str(&hint), "Tables: events, stack_traces, ", 30), 0);
	assert_null(strstr(buf_str(&hint), "search,")); /* which is no real table */
	buf_clear(&hint);
	assert_int_equal(ask(s->path,
				 "SELECT sum(n) FROM (SELECT 9223372036854775807 AS n UNION "
				 "ALL SELECT 1)",
				 &t, &hint, &err),
		-EINVAL);
	assert_non_null(strstr(buf_str(&hint), "total()"));
	assert_int_equal(ask(s->path, "SELECT \"\x1b[2J\"", &t, &hint, &err), -EINVAL);
	assert_null(strchr(err.text, '\x1b'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_corpus),
		TEST(test_bombs_with_a_bottom),
		TEST(test_each_layer_alone),
		TEST(test_ceilings_tell),
		TEST(test_views_of_the_file_do_not_run),
		TEST(test_hints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
