/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "sql/sql_table.h"

static void rows_keep_values(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct sql_table t;

	assert_int_equal(sql_build_begin(&t, names, 4, 4096), 0);
	for (int i = 0; i < 10; i++) {
		struct sql_value v[4] = {SQL_I(i), SQL_R(i / 2.0), SQL_SN("xyz", 2), SQL_NOTHING};

		assert_int_equal(sql_table_put(&t, v), 0);
	}
	assert_int_equal(t.row_count, 10);
	assert_string_equal(sql_table_name(&t, 3), "d");
	assert_int_equal(sql_table_cell(&t, 9, 0)->i, 9);
	assert_true(sql_table_cell(&t, 9, 1)->d == 4.5);
	assert_string_equal(sql_table_bytes(&t, sql_table_cell(&t, 9, 2)), "xy");
	assert_int_equal(sql_table_cell(&t, 9, 3)->type, SQL_NULL);
	sql_table_done(&t);
}

static void the_ceiling_holds(void **state)
{
	static const char *const names[] = {"a"};
	struct sql_value small = SQL_I(1), large = {.type = SQL_TEXT, .p = "", .len = SIZE_MAX};
	struct sql_table t;
	size_t n = 0;

	assert_int_equal(sql_build_begin(&t, names, 1, 1000), 0);
	assert_int_equal(sql_table_put(&t, &large), -ENOBUFS);
	while (sql_table_put(&t, &small) == 0)
		n++;
	assert_in_range(n, 30, 1000 / sizeof(struct sql_cell));
	assert_int_equal(t.row_count, n);
	assert_int_equal(sql_table_put(&t, &small), -ENOBUFS);
	sql_table_done(&t);
}

/* Cells and texts count together. */
static void texts_leave_room_for_cells(void **state)
{
	static const char *const names[] = {"a"};
	static const char text[900];
	struct sql_value small = {.type = SQL_TEXT, .p = text, .len = 4};
	struct sql_value large = {.type = SQL_TEXT, .p = text, .len = 800};
	struct sql_table t;

	assert_int_equal(sql_build_begin(&t, names, 1, 1000), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(sql_table_put(&t, &small), 0);
	assert_int_equal(sql_table_put(&t, &large), -ENOBUFS);
	large.len = 600;
	assert_int_equal(sql_table_put(&t, &large), 0);
	assert_true(t.row_count * sizeof(*t.cells) + t.text.len <= t.bytes_max);
	sql_table_done(&t);
}

static void no_columns_are_a_table_too(void **state)
{
	struct sql_table t;

	assert_int_equal(sql_build_begin(&t, NULL, 0, 100), 0);
	assert_int_equal(sql_table_put(&t, NULL), 0);
	assert_int_equal(t.row_count, 1);
	sql_table_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_keep_values),
		cmocka_unit_test(the_ceiling_holds),
		cmocka_unit_test(texts_leave_room_for_cells),
		cmocka_unit_test(no_columns_are_a_table_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
