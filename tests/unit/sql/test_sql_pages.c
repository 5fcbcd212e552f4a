/* SPDX-License-Identifier: Apache-2.0 */
/* test_sql_pages.c - what is read from pages is what SQLite says; whatever is not plain is left to it. */
#include "store_fixture.h"

#include "sql/sql_pages.h"

#define ROWS_MAX 4096

#define TABLE                                                                                      \
	"CREATE TABLE t (label TEXT GENERATED ALWAYS AS ('n' || k) VIRTUAL, a INTEGER, s TEXT,"    \
	" k INTEGER PRIMARY KEY, b INTEGER);"
/* Numbers of every length a file knows, texts and nothing. */
#define FILL                                                                                       \
	"WITH RECURSIVE n(i) AS (SELECT -700 UNION ALL SELECT i + 1 FROM n WHERE i < 2300)"        \
	"INSERT INTO t (a, s, k, b) SELECT CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN 'text' WHEN 2"  \
	" THEN 1.5 WHEN 3 THEN x'00ff' ELSE i * (1 << (i & 63)) - (i & 1) END,"                    \
	" substr('abcdefghijklmnopqrstuvwxyz', 1, abs(i) % 27), i * 3, i % 3 FROM n;"

static const char *const names[] = {"k", "a", "s", "b", "a"};

struct reading {
	sql_stmt *expected; /* the same rows, from SQLite */
	size_t rows, stop_at;
};

static void compare_value(const struct sql_value *v, const struct sql_value *e)
{
	assert_int_equal(v->type, e->type);
	if (v->type == SQL_INT || v->type == SQL_REAL) {
		assert_int_equal(v->i, e->i); /* a real number by its bits */
	} else if (v->type != SQL_NULL) {
		assert_int_equal(v->len, e->len);
		assert_memory_equal(v->p, e->p, v->len);
	}
}

static int take(void *arg, const struct sql_record *r)
{
	struct sql_value values[ARRAY_SIZE(names)];
	struct reading *x = arg;
	int64_t ints[2];
	bool is_int;

	assert_int_equal(sql_step(x->expected, NULL), 1);
	sql_record_values(r, 0, ARRAY_SIZE(names), values);
	assert_int_equal(r->row, sql_column_int(x->expected, 0));
	for (int i = 0; i < (int)ARRAY_SIZE(names); i++) {
		struct sql_value e = sql_column_value(x->expected, i);

		compare_value(&values[i], &e);
	}
	is_int = sql_record_ints(r, 0, 2, ints);
	assert_int_equal(is_int, values[1].type == SQL_INT);
	assert_int_equal(ints[0], values[0].i);
	assert_int_equal(ints[1], is_int ? values[1].i : 0);
	return ++x->rows == x->stop_at ? 7 : 0;
}

/* Returns what sql_pages_read() says; *ret_rows: how many were compared. */
static int compare(sql_db *db, int64_t low, int64_t high, size_t stop_at, size_t *ret_rows)
{
	_cleanup_(sql_pages_closep) struct sql_pages *p = NULL;
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	struct reading x = {.stop_at = stop_at};
	struct errinfo err = {0};
	int r;

	assert_int_equal(sql_pages_open(db, "t", names, ARRAY_SIZE(names), &p), 0);
	assert_int_equal(
		sql_prepare(db,
			"SELECT k, a, s, b, a FROM t WHERE k BETWEEN ?1 AND ?2 ORDER BY k DESC",
			&stmt, &err),
		0);
	assert_int_equal(SQL_BIND(stmt, &err, SQL_I(low), SQL_I(high)), 0);
	x.expected = stmt;
	r = sql_pages_read(p, low, high, take, &x);
	if (r == 0)
		assert_int_equal(sql_step(stmt, &err), 0); /* none is missing */
	*ret_rows = x.rows;
	return r;
}

static sql_db *open_frozen(const char *path)
{
	struct errinfo err = {0};
	struct sql_stamp stamp;
	sql_db *db = NULL;

	assert_int_equal(sql_open_read(path, false, &db, &stamp, &err), 0);
	assert_true(stamp.frozen);
	return db;
}

static void make_file(const char *path, int page_bytes)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(4096);
	struct errinfo err = {0};
	sql_db *db = NULL;
	int64_t v;

	buf_printf(&sql, "PRAGMA page_size = %d;", page_bytes);
	buf_puts(&sql, TABLE FILL);
	scratch_write(path, "", 0);
	assert_int_equal(sql_open_fresh(path, &db, &err), 0);
	if (sql_exec(db, buf_str(&sql), &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sql_get_int(db, "PRAGMA page_size", &v, &err), 0);
	assert_int_equal(v, page_bytes);
	assert_int_equal(sql_close(db), 0);
}

static void test_same_as_sqlite(void **state)
{
	static const int sizes[] = {512, 4096, 65536};
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(sql_closep) sql_db *db = NULL;
		size_t rows;

		make_file(s->path, sizes[i]);
		db = open_frozen(s->path);
		assert_int_equal(compare(db, INT64_MIN, INT64_MAX, 0, &rows), 0);
		assert_int_equal(rows, 3001);
		assert_int_equal(compare(db, 0, 3000, 0, &rows), 0);
		assert_int_equal(rows, 1001);
		assert_int_equal(compare(db, 1, 2, 0, &rows), 0);
		assert_int_equal(rows, 0);
		assert_int_equal(compare(db, -50, 50, 5, &rows), 7); /* as the callback said */
		assert_int_equal(rows, 5);
	}
}

static int count(void *arg, const struct sql_record *r)
{
	struct sql_value values[ARRAY_SIZE(names)];
	size_t *rows = arg;
	unsigned sum = 0;

	sql_record_values(r, 0, ARRAY_SIZE(names), values);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (size_t k = 0; values[i].type >= SQL_TEXT && k < values[i].len; k++)
			sum += ((const uint8_t *)values[i].p)[k]; /* a sanitizer looks on */
	*rows += 1 + (sum == UINT32_MAX);
	return *rows > 1000 * ROWS_MAX; /* pages that name each other end, too */
}

static int read_all(sql_db *db, size_t *ret_rows)
{
	_cleanup_(sql_pages_closep) struct sql_pages *p = NULL;
	int r = sql_pages_open(db, "t", names, ARRAY_SIZE(names), &p);

	*ret_rows = 0;
	return r == 0 ? sql_pages_read(p, INT64_MIN, INT64_MAX, count, ret_rows) : r;
}

static void test_not_plain(void **state)
{
	static const char *const schemas[] = {
		"CREATE TABLE other (a)",
		"CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, b INTEGER)",
		"CREATE TABLE t (k INTEGER PRIMARY KEY, a REAL, s TEXT, b INTEGER)",
		"CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER AS (1), s TEXT, b INTEGER)",
		"CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, s TEXT, b INTEGER) WITHOUT ROWID",
		"CREATE VIEW t AS SELECT 1 AS k, 2 AS a, 'x' AS s, 3 AS b",
		"PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER,"
		" s TEXT, b INTEGER)",
		TABLE "INSERT INTO t (s) VALUES (hex(zeroblob(4000)))", /* goes on elsewhere */
		"CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, s TEXT);"
		"INSERT INTO t VALUES (1, 2, 'x'); ALTER TABLE t ADD COLUMN b INTEGER",
	};
	struct scratch *s = *state;
	size_t rows;

	for (size_t i = 0; i < ARRAY_SIZE(schemas); i++) {
		_cleanup_(sql_closep) sql_db *db = NULL;

		unlink(s->path);
		scratch_sql(s->path, schemas[i]);
		db = open_frozen(s->path);
		if (read_all(db, &rows) != -ENOTSUP)
			fail_msg("read: %s", schemas[i]);
	}
	unlink(s->path); /* control: empty is plain */
	scratch_sql(s->path, TABLE);
	{
		_cleanup_(sql_closep) sql_db *db = open_frozen(s->path);

		assert_int_equal(read_all(db, &rows), 0);
		assert_int_equal(rows, 0);
	}
}

/* Bytes that somebody changed, behind the schema: read or refused, and nothing else happens. */
static void test_damage(void **state)
{
	struct scratch *s = *state;
	size_t len, rows, refused = 0, mix = 1;
	char *file;

	make_file(s->path, 512);
	file = scratch_bytes(s->path, &len);
	for (int i = 0; i < 600; i++) {
		_cleanup_free_ char *changed = malloc(len);
		_cleanup_(sql_closep) sql_db *db = NULL;
		size_t bytes = len;
		int r;

		assert_non_null(changed);
		memcpy(changed, file, len);
		for (int k = 0; k < 8; k++) {
			size_t at, in_page;

			mix = mix * 6364136223846793005u + 1442695040888963407u;
			in_page = k % 2 ? mix >> 40 & 15 : mix >> 40 & 511; /* headers are few */
			at = 1024 + ((mix >> 20) % (len / 512 - 2)) * 512 + in_page;
			changed[at] = (char)(mix >> 56);
		}
		if (i % 7 == 0)
			bytes = len - (mix >> 33) % (len / 2);
		scratch_write(s->path, changed, bytes);
		db = open_frozen(s->path);
		r = read_all(db, &rows);
		assert_true(r == 0 || r == -ENOTSUP || r == 1);
		refused += r == -ENOTSUP;
	}
	assert_in_range(refused, 100, 600); /* control: something was broken */
	free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_same_as_sqlite),
		TEST(test_not_plain),
		TEST(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
