/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

static void test_values_round_trip(void **state)
{
	struct errinfo err = {0};
	sql_db *db = NULL;
	sql_stmt *put = NULL, *get = NULL;
	size_t len;

	assert_int_equal(sql_open_memory(&db, &err), 0);
	assert_int_equal(sql_exec(db, "CREATE TABLE t(a, b, c, d, e)", &err), 0);
	assert_int_equal(sql_prepare(db, "INSERT INTO t VALUES (?1,?2,?3,?4,?5)", &put, &err), 0);
	assert_int_equal(SQL_PUT(put, &err, SQL_I(UINT64_MAX - 1), SQL_R(1.5), SQL_SN("a\0bc", 4),
				 SQL_B("\0\1\2", 3), ((struct sql_value){.type = SQL_NULL})),
		0);
	assert_int_equal(sql_last_id(db), 1);
	assert_int_equal(sql_prepare(db, "SELECT * FROM t", &get, &err), 0);
	assert_int_equal(sql_step(get, &err), 1);
	assert_true((uint64_t)sql_column_int(get, 0) == UINT64_MAX - 1);
	assert_int_equal(sql_column_type(get, 0), SQL_INT);
	assert_true(sql_column_real(get, 1) == 1.5);
	assert_string_equal(sql_column_text(get, 2, &len), "a");
	assert_int_equal(len, 1);
	assert_memory_equal(sql_column_blob(get, 3, &len), "\0\1\2", 3);
	assert_int_equal(len, 3);
	assert_int_equal(sql_column_type(get, 4), SQL_NULL);
	assert_string_equal(sql_column_text(get, 4, &len), "");
	assert_int_equal(sql_step(get, &err), 0);
	sql_finalize(put);
	sql_finalize(get);
	assert_int_equal(sql_close(db), 0);
}

/* What is bound stays bound; how many rows changed tells a duplicate from a new one. */
static void test_parameters(void **state)
{
	struct errinfo err = {0};
	sql_db *db = NULL;
	sql_stmt *put = NULL;
	int64_t v;

	assert_int_equal(sql_open_memory(&db, &err), 0);
	assert_int_equal(sql_exec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)", &err), 0);
	assert_int_equal(sql_prepare(db, "INSERT OR IGNORE INTO t VALUES (?1, ?2)", &put, &err), 0);
	assert_int_equal(sql_parameters(put), 2);
	assert_int_equal(SQL_PUT(put, &err, SQL_I(1), SQL_I(5)), 0);
	assert_int_equal(sql_changes(db), 1);
	assert_int_equal(sql_bind_at(put, 1, &SQL_I(2), &err), 0);
	assert_int_equal(sql_step(put, &err), 0);
	assert_int_equal(sql_changes(db), 1);
	assert_int_equal(sql_step(put, &err), 0); /* the same row again */
	assert_int_equal(sql_changes(db), 0);
	assert_int_equal(sql_get_int(db, "SELECT sum(b) FROM t", &v, &err), 0);
	assert_int_equal(v, 10);
	assert_true(sql_bind_at(put, 3, &SQL_I(2), &err) < 0);
	sql_finalize(put);
	assert_int_equal(sql_close(db), 0);
}

static void test_errors_are_mapped(void **state)
{
	struct errinfo err = {0};
	sql_db *db = NULL;
	sql_stmt *put = NULL;
	int64_t v = 7;

	assert_int_equal(sql_open_memory(&db, &err), 0);
	assert_int_equal(sql_exec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY)", &err), 0);
	assert_int_equal(sql_exec(db, "SELEKT 1", &err), -EINVAL);
	assert_non_null(strstr(err.text, "SELEKT"));
	assert_int_equal(sql_prepare(db, "INSERT INTO t VALUES (?1)", &put, &err), 0);
	assert_int_equal(SQL_PUT(put, &err, SQL_I(1)), 0);
	assert_int_equal(SQL_PUT(put, &err, SQL_I(1)), -EEXIST);
	assert_int_equal(SQL_PUT(put, &err, SQL_I(2)), 0); /* usable after a failure */
	assert_int_equal(SQL_PUT(put, &err, SQL_I(3), SQL_I(4)), -EINVAL); /* one too many */
	assert_int_equal(sql_get_int(db, "SELECT a FROM t WHERE a = 9", &v, &err), -ENODATA);
	assert_int_equal(v, 7);
	assert_int_equal(sql_get_int(db, "SELECT count(*) FROM t", &v, &err), 0);
	assert_int_equal(v, 2);
	assert_int_equal(sql_close(db), -EBUSY); /* a statement is still there */
	sql_finalize(put);
	assert_int_equal(sql_close(db), 0);
}

static bool is_even(void *arg, const int64_t *values)
{
	int *calls = arg;

	++*calls;
	return values[0] % 2 == 0 && values[1] == 5;
}

/* Rows with an argument that is no integer pass, and the function never sees them. */
static void test_filter(void **state)
{
	struct errinfo err = {0};
	sql_db *db = NULL;
	int64_t rows, v = 7;
	sql_stmt *get = NULL;
	int calls = 0;

	assert_int_equal(sql_open_memory(&db, &err), 0);
	assert_int_equal(sql_exec(db,
				 "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 5), (2, 5),"
				 " (4, 6), ('2', 5), (NULL, 5), (3, x'05')",
				 &err),
		0);
	assert_int_equal(sql_add_filter(db, "even", 2, is_even, &calls, &err), 0);
	assert_int_equal(
		sql_get_int(db, "SELECT count(*) FROM t WHERE even(a, b)", &rows, &err), 0);
	assert_int_equal(rows, 4);
	assert_int_equal(calls, 3);
	assert_int_equal(
		sql_add_filter(db, "even", SQL_FILTER_MAX + 1, is_even, NULL, &err), -EINVAL);
	assert_int_equal(sql_prepare(db, "SELECT a FROM t ORDER BY rowid", &get, &err), 0);
	assert_int_equal(sql_step(get, &err), 1);
	assert_true(sql_column_is_int(get, 0, &v));
	assert_int_equal(v, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sql_step(get, &err), 1);
	assert_false(sql_column_is_int(get, 0, &v)); /* '2' */
	assert_int_equal(v, 1);
	sql_finalize(get);
	assert_int_equal(sql_close(db), 0);
}

static void test_a_statement_that_found_no_room_is_not_run(void **state)
{
	_cleanup_buf_ struct buf fits = BUF_INIT(100), cut = BUF_INIT(8);
	_cleanup_(sql_closep) sql_db *db = NULL;
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	struct errinfo err = {0};
	int64_t v = 7;

	assert_int_equal(sql_open_memory(&db, &err), 0);
	buf_puts(&fits, "SELECT 1");
	buf_puts(&fits, " WHERE 0");
	assert_int_equal(sql_get_int_buf(db, &fits, &v, &err), -ENODATA);
	buf_puts(&cut, "SELECT 1");
	assert_int_equal(sql_get_int_buf(db, &cut, &v, &err), 0); /* control: so far it is one */
	assert_int_equal(v, 1);
	buf_puts(&cut, " WHERE 0");
	assert_int_equal(sql_get_int_buf(db, &cut, &v, &err), -ENOBUFS);
	assert_int_equal(sql_prepare_buf(db, &cut, &stmt, &err), -ENOBUFS);
	assert_int_equal(sql_prepare(db, "-- nothing", &stmt, &err), -EINVAL);
	assert_null(stmt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_round_trip),
		cmocka_unit_test(test_errors_are_mapped),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_a_statement_that_found_no_room_is_not_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
