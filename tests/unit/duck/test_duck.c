/* SPDX-License-Identifier: Apache-2.0 */
/* DuckDB as duck.h gives it: rows in and rows out, limits, settings that are read back, its errors. */
#include "duck/duck.h"

#include <math.h>
#include <pthread.h>

#include "duck/duck_api.h"
#include "duck_fixture.h"
#include "store_fixture.h"

#define ENDLESS                                                                                    \
	"SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range < b.range * 3"

static const struct duck_limits limits = {.rows_max = 10000, .bytes_max = 8u << 20};

struct opened {
	struct duck *d;
	struct duck_connection *c;
};

static int open_setup(void **state)
{
	static struct opened o;
	struct errinfo e = {0};

	*state = NULL;
	if (!duck_fixture_has())
		return 0;
	if (duck_open(NULL, NULL, &o.d, &e) < 0 || duck_connect(o.d, &o.c, &e) < 0)
		fail_msg("%s", e.text);
	*state = &o;
	return 0;
}

static int open_teardown(void **state)
{
	struct opened *o = *state;

	if (o) {
		duck_disconnect(o->c);
		duck_close(o->d);
	}
	return 0;
}

/* The connection, or the end of a test without the library. */
static struct duck_connection *connection(void **state)
{
	struct opened *o = *state;

	if (!o)
		skip();
	return o->c;
}

static void run(struct duck_connection *c, const char *text)
{
	struct errinfo e = {0};

	if (duck_exec(c, text, &e) < 0)
		fail_msg("%s: %s", text, e.text);
}

static struct sql_table rows_of(struct duck_connection *c, const char *text)
{
	struct errinfo e = {0};
	struct sql_table t;

	if (duck_select(c, text, &limits, &t, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return t;
}

static int64_t number_of(struct duck_connection *c, const char *text)
{
	struct sql_table t = rows_of(c, text);
	int64_t n = sql_table_cell(&t, 0, 0)->i;

	assert_true(t.row_count == 1 && sql_table_cell(&t, 0, 0)->type == SQL_INT);
	sql_table_done(&t);
	return n;
}

static void assert_text(const struct sql_table *t, int column, const char *wanted)
{
	const struct sql_cell *c = sql_table_cell(t, 0, column);

	assert_int_equal(c->type, SQL_TEXT);
	assert_string_equal(sql_table_bytes(t, c), wanted);
}

/* ---- the library ---- */

/* In a process of its own, since a library is looked for once. */
static void test_without_the_library(void **state)
{
	struct errinfo e = {0};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setenv("INGERO_DUCKDB_LIB", "/nowhere/libduckdb.so", 1);
		_exit(duck_load(&e) == -ENOENT && strstr(e.text, "ingero-duckdb") &&
					errinfo_exit_code(&e, -ENOENT) == EXIT_NO_FEATURE &&
					!duck_version()
				? 0
				: 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_what_fits_is_loaded(void **state)
{
	(void)connection(state);
	assert_non_null(strstr(duck_version(), "v1."));
}

/* ---- out ---- */

static void test_types(void **state)
{
	struct duck_connection *c = connection(state);
	struct sql_table t = rows_of(c,
		"SELECT true, 127::TINYINT, (-32768)::SMALLINT, 2147483647, -9223372036854775808, "
		"255::UTINYINT, 65535::USMALLINT, 4294967295::UINTEGER, 9223372036854775807::UBIGINT, "
		"18446744073709551615::UBIGINT, 1.5::FLOAT, (-2.25)::DOUBLE, 7::HUGEINT, "
		"170141183460469231731687303715884105727::HUGEINT, 12.34::DECIMAL(9,2), "
		"(-1.5)::DECIMAL(38,1), NULL, 'nan'::DOUBLE, '-inf'::DOUBLE");
	static const int64_t ints[] = {
		1, 127, -32768, 2147483647, INT64_MIN, 255, 65535, 4294967295, INT64_MAX};
	static const double reals[] = {1.5, -2.25};

	assert_int_equal(t.column_count, 19);
	for (int i = 0; i < (int)ARRAY_SIZE(ints); i++)
		assert_true(sql_table_cell(&t, 0, i)->type == SQL_INT &&
			    sql_table_cell(&t, 0, i)->i == ints[i]);
	assert_true(sql_table_cell(&t, 0, 9)->d == 18446744073709551616.0);
	for (int i = 0; i < 2; i++)
		assert_true(sql_table_cell(&t, 0, 10 + i)->d == reals[i]);
	assert_int_equal(sql_table_cell(&t, 0, 12)->i, 7);
	assert_true(sql_table_cell(&t, 0, 13)->d == ldexp(1, 127));
	assert_true(fabs(sql_table_cell(&t, 0, 14)->d - 12.34) < 1e-12);
	assert_true(sql_table_cell(&t, 0, 15)->d == -1.5);
	for (int i = 16; i < 19; i++)
		assert_int_equal(sql_table_cell(&t, 0, i)->type, SQL_NULL);
	sql_table_done(&t);
}

static void test_texts(void **state)
{
	struct duck_connection *c = connection(state);
	struct sql_table t = rows_of(c,
		"SELECT 'twelve bytes', 'thirteen byte', '', 'a' || chr(0) || 'b', 'größer' AS x");

	assert_text(&t, 0, "twelve bytes");
	assert_text(&t, 1, "thirteen byte");
	assert_text(&t, 2, "");
	assert_int_equal(sql_table_cell(&t, 0, 3)->len, 3);
	assert_memory_equal(sql_table_bytes(&t, sql_table_cell(&t, 0, 3)), "a\0b", 3);
	assert_text(&t, 4, "größer");
	assert_string_equal(sql_table_name(&t, 4), "x");
	sql_table_done(&t);
}

/* What is cast is the statement inside of another: its names, its order and its comments stay. */
static void test_other_types_are_texts(void **state)
{
	struct duck_connection *c = connection(state);
	struct sql_table t = rows_of(c,
		"SELECT [1, 2] AS \"l\"\"'\", {'a': 1}, DATE '2024-02-29', INTERVAL 1 DAY, 5 AS n, 'it''s' AS n "
		"; -- and a word");

	assert_text(&t, 0, "[1, 2]");
	assert_string_equal(sql_table_name(&t, 0), "l\"'");
	assert_text(&t, 1, "{'a': 1}");
	assert_text(&t, 2, "2024-02-29");
	assert_text(&t, 3, "1 day");
	assert_int_equal(sql_table_cell(&t, 0, 4)->i, 5);
	assert_text(&t, 5, "it's");
	assert_string_equal(sql_table_name(&t, 5), "n");
	sql_table_done(&t);
	t = rows_of(c, "SELECT range, [range] FROM range(5000) ORDER BY range * 7919 % 5003");
	for (size_t i = 1; i < t.row_count; i++)
		assert_true(sql_table_cell(&t, i - 1, 0)->i * 7919 % 5003 <
			    sql_table_cell(&t, i, 0)->i * 7919 % 5003);
	assert_int_equal(t.row_count, 5000);
	sql_table_done(&t);
}

static void test_limits(void **state)
{
	struct duck_connection *c = connection(state);
	struct duck_limits few = {.rows_max = 3000, .bytes_max = 8u << 20};
	struct duck_limits small = {.rows_max = 10000, .bytes_max = 4096};
	struct sql_table t;

	assert_int_equal(duck_select(c, "FROM range(3001)", &few, &t, NULL), 0);
	assert_true(t.row_count == 3000 && t.truncated);
	sql_table_done(&t);
	assert_int_equal(duck_select(c, "FROM range(3000)", &few, &t, NULL), 0);
	assert_true(t.row_count == 3000 && !t.truncated);
	sql_table_done(&t);
	assert_int_equal(
		duck_select(c, "SELECT repeat('x', 1000) FROM range(9)", &small, &t, NULL), 0);
	assert_true(t.row_count > 0 && t.row_count < 9 && t.truncated);
	sql_table_done(&t);
}

/* ---- errors ---- */

static void test_errors(void **state)
{
	static const struct {
		const char *text, *said;
		int err;
	} cases[] = {{"SELECT 1 +", "Parser Error", -EINVAL}, {"", "no SQL statement", -EINVAL},
		{" ; ", "no SQL statement", -EINVAL},
		{"SELECT 1; SELECT 2", "one statement", -EINVAL},
		{"SELECT nope FROM range(3)", "\"nope\" not found", -EINVAL},
		{"SELECT 'IO Error: No space left'::INT", "Conversion Error", -EINVAL},
		/* in the third chunk: after rows have come */
		{"SELECT CASE WHEN range = 5000 THEN error('late') ELSE 1 END FROM range(9000)",
			"late", -EINVAL},
		{"FROM read_csv('/nowhere/x')", "IO Error", -EIO}};
	struct duck_connection *c = connection(state);
	struct sql_table t;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct errinfo e = {0};
		int r = duck_select(c, cases[i].text, &limits, &t, &e);

		if (r != cases[i].err || !strstr(e.text, cases[i].said) || strchr(e.text, '\n') ||
			strstr(e.text, "LINE 1"))
			fail_msg("%s: %d %s", cases[i].text, r, e.text);
	}
	assert_int_equal(number_of(c, "SELECT 1"), 1); /* and the connection lives */
}

static void test_kinds_of_errors(void **state)
{
	static const struct {
		const char *message;
		int err;
	} cases[] = {{"IO Error: Could not write file: No space left on device", -ENOSPC},
		{"IO Error: Could not write file: File too large", -ENOSPC},
		{"TransactionContext Error: Failed to commit: Disk quota exceeded", -ENOSPC},
		{"FATAL Error: database has been invalidated", -EIO},
		{"Out of Memory Error: failed\nPossible solutions: set a setting", -ENOMEM},
		{"INTERRUPT Error: Interrupted!", -ECANCELED}, {"Permission Error: no", -EPERM},
		{"Binder Error: IO Error: No space left", -EINVAL}, {NULL, -EINVAL}, {"", -EINVAL}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct errinfo e = {0};

		assert_int_equal(duck_error(cases[i].message, &e), cases[i].err);
		assert_true(e.text[0] && !strstr(e.text, "solutions"));
	}
	assert_int_equal(duck_error(cases[0].message, NULL), -ENOSPC);
}

static void test_only_a_query_for_a_stranger(void **state)
{
	static const char *const refused[] = {"CREATE TABLE x (a INT)", "INSERT INTO t VALUES (1)",
		"DELETE FROM t", "DROP TABLE t", "SET threads = 1", "CALL pragma_version()",
		"BEGIN", "PREPARE p AS SELECT 1", "INSTALL json", "LOAD json", "CHECKPOINT",
		"ATTACH ':memory:' AS m", "COPY t TO '/dev/null'", "USE temp", "VACUUM"};
	static const char *const let_through[] = {"SELECT 1", "FROM t", "WITH x AS (FROM t) FROM x",
		"VALUES (1)", "EXPLAIN FROM t", "DESCRIBE t", "SHOW TABLES", "(SELECT 1)",
		"TABLE t"};
	struct duck_connection *c = connection(state);
	struct sql_table t;

	run(c, "CREATE TABLE t (a INT)");
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct errinfo e = {0};
		int r = duck_select_stranger(c, refused[i], &limits, &t, &e);

		if (r != -EINVAL || !strstr(e.text, "only a query"))
			fail_msg("%s: %d %s", refused[i], r, e.text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(let_through); i++) {
		struct errinfo e = {0};

		if (duck_select_stranger(c, let_through[i], &limits, &t, &e) < 0)
			fail_msg("%s: %s", let_through[i], e.text);
		sql_table_done(&t);
	}
	assert_int_equal(number_of(c, "SELECT count(*) FROM t"), 0);
}

static void *interrupt_until(void *arg)
{
	struct duck_connection *c = ((void **)arg)[0];
	_Atomic bool *over = ((void **)arg)[1];

	while (!*over) { /* it may not have begun */
		duck_interrupt(c);
		usleep(1000);
	}
	return NULL;
}

static void test_an_interrupt(void **state)
{
	struct duck_connection *c = connection(state);
	_Atomic bool over = false;
	void *arg[] = {c, (void *)&over};
	struct sql_table t;
	pthread_t thread;
	int r;

	assert_int_equal(pthread_create(&thread, NULL, interrupt_until, arg), 0);
	r = duck_select(c, ENDLESS, &limits, &t, NULL);
	over = true;
	pthread_join(thread, NULL);
	assert_int_equal(r, -ECANCELED);
	assert_int_equal(number_of(c, "SELECT 1"), 1);
}

/* ---- settings ---- */

static void test_settings(void **state)
{
	static const struct duck_setting good[] = {{"threads", "1"}, {"memory_limit", "256MiB"},
		{"enable_external_access", "false"}, {"max_temp_directory_size", "0KiB"},
		{"lock_configuration", "true"}, {0}};
	static const struct duck_setting wrong[][2] = {{{"threads", "2"}, {0}},
		{{"memory_limit", "128MiB"}, {0}}, {{"enable_external_access", "true"}, {0}},
		{{"max_temp_directory_size", "1MiB"}, {0}}};
	static const struct duck_setting unknown[] = {{"no_such_setting", "1"}, {0}};
	struct duck_connection *c;
	struct errinfo e = {0};
	struct duck *d;

	(void)connection(state);
	assert_int_equal(duck_open(NULL, unknown, &d, &e), -EINVAL);
	if (duck_open(NULL, good, &d, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(duck_connect(d, &c, &e), 0);
	assert_int_equal(duck_check(c, good, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(duck_check(c, wrong[i], &e), -EPERM);
		assert_non_null(strstr(e.text, wrong[i][0].name));
	}
	assert_int_equal(duck_exec(c, "SET threads = 2", &e), -EINVAL);
	duck_disconnect(c);
	duck_close(d);
}

/* ---- in ---- */

#define ROWS 5001 /* two chunks of DuckDB's 2,048 rows and more */

static void append_rows(struct duck_appender *a, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		char text[32];
		struct sql_value row[4];

		snprintf(text, sizeof(text), i % 2 ? "n%d" : "a name that is long: %d", (int)i);
		row[0] = i % 7 ? SQL_I(i) : SQL_NOTHING;
		row[1] = i % 5 ? SQL_R((double)i / 2) : SQL_I(i);
		row[2] = i % 3 ? SQL_S(text) : SQL_NOTHING;
		row[3] = SQL_I(-i);
		assert_int_equal(duck_append(a, row, NULL), 0);
	}
}

static struct duck_appender *appender_of(struct duck_connection *c)
{
	static const enum duck_type types[] = {
		DUCK_BIGINT, DUCK_DOUBLE, DUCK_VARCHAR, DUCK_INTEGER};
	struct duck_appender *a = NULL;
	struct errinfo e = {0};

	run(c, "CREATE OR REPLACE TABLE rows (i BIGINT, d DOUBLE, t VARCHAR, n INTEGER)");
	if (duck_appender_new(c, NULL, "rows", types, 4, &a, &e) < 0)
		fail_msg("%s", e.text);
	return a;
}

static void test_rows_in(void **state)
{
	struct duck_connection *c = connection(state);
	struct duck_appender *a = appender_of(c);

	append_rows(a, ROWS);
	assert_int_equal(duck_append_flush(a, NULL), 0);
	assert_int_equal(number_of(c, "SELECT count(*) FROM rows"), ROWS);
	assert_int_equal(
		number_of(c,
			"SELECT count(*) FROM (SELECT row_number() OVER () - 1 AS k, * FROM rows) WHERE "
			"n = -k AND i IS NOT DISTINCT FROM CASE WHEN k % 7 = 0 THEN NULL ELSE k END AND "
			"d = CASE WHEN k % 5 = 0 THEN k ELSE k / 2 END AND t IS NOT DISTINCT FROM CASE WHEN "
			"k % 3 = 0 THEN NULL WHEN k % 2 = 1 THEN 'n' || k ELSE 'a name that is long: ' || k END"),
		ROWS);
	append_rows(a, 1);
	assert_int_equal(duck_append_flush(a, NULL), 0);
	assert_int_equal(number_of(c, "SELECT count(*) FROM rows"), ROWS + 1);
	duck_appender_free(a);
}

static void test_what_was_not_flushed_is_gone(void **state)
{
	struct duck_connection *c = connection(state);
	struct duck_appender *a = appender_of(c);

	append_rows(a, ROWS);
	duck_appender_free(a);
	assert_int_equal(number_of(c, "SELECT count(*) FROM rows"), 0);
}

static void test_rows_that_do_not_fit(void **state)
{
	const struct sql_value bad[][4] = {{SQL_S("1"), SQL_NOTHING, SQL_NOTHING, SQL_NOTHING},
		{SQL_NOTHING, SQL_S("1"), SQL_NOTHING, SQL_NOTHING},
		{SQL_NOTHING, SQL_NOTHING, SQL_I(1), SQL_NOTHING},
		{SQL_NOTHING, SQL_NOTHING, SQL_NOTHING, SQL_I(1LL << 31)},
		{SQL_R(1), SQL_NOTHING, SQL_NOTHING, SQL_NOTHING}};
	struct duck_connection *c = connection(state);
	struct duck_appender *a = appender_of(c);

	append_rows(a, 1);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(duck_append(a, bad[i], NULL), -EINVAL);
	append_rows(a, 1);
	assert_int_equal(duck_append_flush(a, NULL), 0);
	assert_int_equal(number_of(c, "SELECT count(*) FROM rows"), 2);
	duck_appender_free(a);
}

static void test_texts_in(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {{"größer als 8 Bytes", "größer als 8 Bytes"}, {"\xff", "\xef\xbf\xbd"},
		{"12345678\xc3", "12345678\xef\xbf\xbd"},
		{"a\xfe\xffz", "a\xef\xbf\xbd\xef\xbf\xbdz"},
		{"twelve ASCII\xf0\x9f\x98\x80 and more", "twelve ASCII\xf0\x9f\x98\x80 and more"},
		{"", ""}};
	struct duck_connection *c = connection(state);
	struct duck_appender *a = appender_of(c);
	struct sql_table t;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sql_value row[] = {SQL_I(i), SQL_NOTHING, SQL_S(cases[i].in), SQL_NOTHING};

		assert_int_equal(duck_append(a, row, NULL), 0);
	}
	assert_int_equal(duck_append_flush(a, NULL), 0);
	t = rows_of(c, "SELECT t FROM rows ORDER BY i");
	assert_int_equal(t.row_count, ARRAY_SIZE(cases));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(sql_table_bytes(&t, sql_table_cell(&t, i, 0)), cases[i].out);
	sql_table_done(&t);
	duck_appender_free(a);
}

static void test_no_such_table(void **state)
{
	static const enum duck_type types[] = {DUCK_BIGINT};
	struct duck_connection *c = connection(state);
	struct duck_appender *a = NULL;
	struct errinfo e = {0};

	assert_int_equal(duck_appender_new(c, NULL, "nothing", types, 1, &a, &e), -EINVAL);
	assert_true(!a && strstr(e.text, "nothing"));
}

/* Into a file beside the database, as parts are written, and read again. */
static void test_a_file(void **state)
{
	static const enum duck_type types[] = {DUCK_BIGINT};
	struct duck_connection *c = connection(state);
	char path[64], text[128];
	struct duck_appender *a;
	int fd;

	snprintf(path, sizeof(path), "/tmp/ingero-test-duck-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	snprintf(text, sizeof(text), "ATTACH '%s' AS part; CREATE TABLE part.x (i BIGINT)", path);
	run(c, text);
	assert_int_equal(duck_appender_new(c, "part", "x", types, 1, &a, NULL), 0);
	for (int64_t i = 0; i < ROWS; i++)
		assert_int_equal(duck_append(a, &SQL_I(i), NULL), 0);
	assert_int_equal(duck_append_flush(a, NULL), 0);
	duck_appender_free(a);
	run(c, "DETACH part");
	snprintf(text, sizeof(text), "ATTACH '%s' AS again (READ_ONLY)", path);
	run(c, text);
	assert_int_equal(number_of(c, "SELECT sum(i)::BIGINT FROM again.x"), ROWS * (ROWS - 1) / 2);
	run(c, "DETACH again");
	unlink(path);
}

int main(void)
{
#define DUCK_TEST(name) cmocka_unit_test_setup_teardown(name, open_setup, open_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_the_library),
		DUCK_TEST(test_what_fits_is_loaded),
		DUCK_TEST(test_types),
		DUCK_TEST(test_texts),
		DUCK_TEST(test_other_types_are_texts),
		DUCK_TEST(test_limits),
		DUCK_TEST(test_errors),
		cmocka_unit_test(test_kinds_of_errors),
		DUCK_TEST(test_only_a_query_for_a_stranger),
		DUCK_TEST(test_an_interrupt),
		DUCK_TEST(test_settings),
		DUCK_TEST(test_rows_in),
		DUCK_TEST(test_what_was_not_flushed_is_gone),
		DUCK_TEST(test_rows_that_do_not_fit),
		DUCK_TEST(test_texts_in),
		DUCK_TEST(test_no_such_table),
		DUCK_TEST(test_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
