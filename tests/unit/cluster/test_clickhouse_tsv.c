/* SPDX-License-Identifier: Apache-2.0 */
/* ClickHouse's tables as text: types, escapes, NULLs, limits, and what is not that format. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster/store/store_clickhouse_private.h"

static int read_text(const char *text, const struct store_limits *l, struct sql_table *t)
{
	return clickhouse_tsv_read(text, strlen(text), l ? l : &STORE_LIMITS, t, NULL);
}

static void test_types(void **state)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};

	(void)state;
	assert_int_equal(
		read_text("i\tu\td\ts\tn\tz\n"
			  "Int64\tUInt64\tNullable(Float64)\tLowCardinality(Nullable(String))"
			  "\tNullable(Nothing)\tIntervalDay\n"
			  "-5\t18446744073709551615\t1.5e3\ta\\tb\\\\\\n\\0c\t\\N\t3\n"
			  "0\t7\tnan\t\\N\t\\N\t4\n"
			  "0\t7\t-inf\t\\\\N\t\\N\t4\n",
			NULL, &t),
		0);
	assert_int_equal(t.column_count, 6);
	assert_int_equal(t.row_count, 3);
	assert_string_equal(sql_table_name(&t, 2), "d");
	assert_int_equal(sql_table_cell(&t, 0, 0)->i, -5);
	assert_int_equal(sql_table_cell(&t, 0, 1)->type, SQL_REAL); /* does not fit */
	assert_int_equal(sql_table_cell(&t, 1, 1)->i, 7);
	assert_true(sql_table_cell(&t, 0, 2)->d == 1500);
	assert_int_equal(sql_table_cell(&t, 0, 3)->len, 7);
	assert_memory_equal(sql_table_bytes(&t, sql_table_cell(&t, 0, 3)), "a\tb\\\n\0c", 7);
	assert_int_equal(sql_table_cell(&t, 0, 4)->type, SQL_NULL);
	assert_int_equal(sql_table_cell(&t, 0, 5)->type, SQL_TEXT);
	assert_int_equal(sql_table_cell(&t, 1, 2)->type, SQL_NULL);
	assert_int_equal(sql_table_cell(&t, 1, 3)->type, SQL_NULL);
	assert_int_equal(sql_table_cell(&t, 2, 2)->type, SQL_NULL);
	assert_string_equal(sql_table_bytes(&t, sql_table_cell(&t, 2, 3)), "\\N"); /* a text */
}

static void test_limits(void **state)
{
	_cleanup_(sql_table_done) struct sql_table t = {0}, small = {0};
	struct store_limits two = {.rows_max = 2, .bytes_max = 1u << 20};
	struct store_limits few = {.rows_max = 100, .bytes_max = 200};

	(void)state;
	assert_int_equal(read_text("a\nString\nx\ny\nz\n", &two, &t), 0);
	assert_int_equal(t.row_count, 2);
	assert_true(t.truncated);
	assert_int_equal(
		read_text("a\nString\nx\ny\nz\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", &few, &small), 0);
	assert_true(small.row_count > 0 && small.row_count < 12);
	assert_true(small.truncated);
}

static void test_not_tables(void **state)
{
	static const char *const texts[] = {"", "a", "a\n", "a\nString", "a\tb\nString\n",
		"a\tb\nString\tString\nx\n", "a\nString\nx\ty\n", "a\nString\nx", "a\nString\nx\\",
		"Code: 62, e.displayText() = DB::Exception: Syntax error"};
	struct sql_table t = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(read_text(texts[i], NULL, &t), -EBADMSG);
	assert_null(t.cells);
	assert_int_equal(read_text("a\nString\n", NULL, &t), 0); /* no rows are a table */
	sql_table_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_not_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
