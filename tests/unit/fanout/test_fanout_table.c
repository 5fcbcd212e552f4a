/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fanout/fanout_private.h"

#define ROOM (1u << 20)

static int read_limit(const char *body, size_t limit, struct fanout_rows *ret, struct errinfo *e)
{
	return fanout_table_read(body, strlen(body), limit, ROOM, ret, e);
}

static struct fanout_rows good(const char *body)
{
	struct fanout_rows r = {0};
	struct errinfo e = {0};

	if (read_limit(body, 100, &r, &e) < 0)
		fail_msg("%s: %s", body, e.text);
	return r;
}

static void values_keep_their_types(void **state)
{
	struct fanout_rows r = good(
		"{\"rows\":[[1,2.5,\"a\\u0000b\",null,true]],\"columns\":[\"i\",\"d\",\"t\",\"n\","
		"\"b\"],\"duration_ms\":1.5,\"truncated\":false,\"node\":\"gpu1\",\"x\":{\"y\":[]}"
		"}");
	const struct sql_cell *c = sql_table_cell(&r.table, 0, 0);

	assert_int_equal(r.table.column_count, 5);
	assert_string_equal(sql_table_name(&r.table, 2), "t");
	assert_int_equal(c[0].type, SQL_INT);
	assert_int_equal(c[0].i, 1);
	assert_int_equal(c[1].type, SQL_REAL);
	assert_true(c[1].d == 2.5);
	assert_int_equal(c[2].type, SQL_TEXT);
	assert_int_equal(c[2].len, 3);
	assert_memory_equal(sql_table_bytes(&r.table, &c[2]), "a\0b", 4);
	assert_int_equal(c[3].type, SQL_NULL);
	assert_int_equal(c[4].type, SQL_INT);
	assert_string_equal(r.name, "gpu1");
	assert_false(r.truncated || r.maybe_more);
	fanout_rows_done(&r);
}

static void bad_answers_are_refused(void **state)
{
	static const char *const bad[] = {"", "[]", "{}", "{\"columns\":[\"a\"]}",
		"{\"rows\":[[1]]}", "{\"columns\":[\"a\"],\"rows\":[[1,2]]}",
		"{\"columns\":[\"a\"],\"rows\":[[]]}", "{\"columns\":[\"a\"],\"rows\":[1]}",
		"{\"columns\":[\"a\"],\"rows\":[[[1]]]}", "{\"columns\":[\"a\"],\"rows\":[[{}]]}",
		"{\"columns\":[1],\"rows\":[]}", "{\"columns\":\"a\",\"rows\":[]}",
		"{\"columns\":[\"a\"],\"rows\":{}}", "{\"columns\":[\"a\"],\"rows\":[[1]]",
		"{\"columns\":[\"a\"],\"columns\":[\"b\"],\"rows\":[]}",
		"{\"columns\":[\"a\"],\"rows\":[],\"rows\":[]}",
		"{\"columns\":[\"a\"],\"rows\":[[1]]} x",
		"{\"columns\":[\"a\"],\"rows\":[[1],[2,3]]}"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct fanout_rows r = {0};
		struct errinfo e = {0};

		if (read_limit(bad[i], 100, &r, &e) != -EPROTO)
			fail_msg("taken: %s", bad[i]);
		assert_int_not_equal(strlen(e.text), 0);
		assert_false(r.there);
	}
}

static void limits_cut_and_say_so(void **state)
{
	static const char body[] = "{\"columns\":[\"a\"],\"rows\":[[1],[2],[3]]}";
	struct fanout_rows r = {0};
	struct errinfo e = {0};

	assert_int_equal(read_limit(body, 2, &r, &e), 0); /* more than it was asked for */
	assert_int_equal(r.table.row_count, 2);
	assert_true(r.truncated);
	fanout_rows_done(&r);
	assert_int_equal(read_limit(body, 3, &r, &e), 0); /* as many, and it does not say */
	assert_true(r.maybe_more && !r.truncated);
	fanout_rows_done(&r);
	assert_int_equal(read_limit(body, 4, &r, &e), 0);
	assert_false(r.maybe_more || r.truncated);
	fanout_rows_done(&r);
	r = good("{\"columns\":[\"a\"],\"rows\":[[1]],\"truncated\":true}");
	assert_true(r.truncated);
	fanout_rows_done(&r);
}

static void bytes_are_bounded(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);
	struct fanout_rows r = {0};
	struct errinfo e = {0};

	buf_puts(&b, "{\"columns\":[\"a\"],\"rows\":[[0]");
	for (int i = 0; i < 200000; i++)
		buf_puts(&b, ",[1]");
	buf_puts(&b, "]}");
	assert_int_equal(fanout_table_read(buf_str(&b), b.len, 1000000, 64 << 10, &r, &e), 0);
	assert_true(r.truncated);
	assert_in_range(r.table.row_count, 1000, 64 * 1024 / sizeof(struct sql_cell));
	fanout_rows_done(&r);
}

static const char *text_at(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	assert_int_equal(c->type, SQL_TEXT);
	return sql_table_bytes(t, c);
}

static void the_node_comes_first(void **state)
{
	static const char *const names[] = {"g1", "g2", "g3"};
	struct fanout_rows nodes[3] = {good("{\"columns\":[\"n\"],\"rows\":[[1],[null]]}"),
		{.there = false}, good("{\"columns\":[\"n\"],\"rows\":[[\"x\"]]}")};
	struct sql_table t = {0};

	assert_int_equal(fanout_table_merge(nodes, names, 3, &t), 0);
	assert_int_equal(t.column_count, 2);
	assert_string_equal(sql_table_name(&t, 0), "node");
	assert_string_equal(sql_table_name(&t, 1), "n");
	assert_int_equal(t.row_count, 3);
	assert_string_equal(text_at(&t, 0, 0), "g1");
	assert_int_equal(sql_table_cell(&t, 0, 1)->i, 1);
	assert_int_equal(sql_table_cell(&t, 1, 1)->type, SQL_NULL);
	assert_string_equal(text_at(&t, 2, 0), "g3");
	assert_string_equal(text_at(&t, 2, 1), "x");
	assert_null(nodes[0].table.cells); /* not held twice */
	sql_table_done(&t);
}

static void an_own_node_column_serves(void **state)
{
	static const char *const names[] = {"g1", "g2"};
	struct fanout_rows nodes[2] = {
		good("{\"columns\":[\"cnt\",\"Node\"],\"rows\":[[1,\"told\"],[2,\"\"],[3,null]]}"),
		good("{\"columns\":[\"cnt\",\"Node\"],\"rows\":[[4,\"other\"]]}")};
	struct sql_table t = {0};

	assert_int_equal(fanout_table_merge(nodes, names, 2, &t), 0);
	assert_int_equal(t.column_count, 2);
	assert_string_equal(sql_table_name(&t, 0), "cnt");
	assert_string_equal(text_at(&t, 0, 1), "told");
	assert_string_equal(text_at(&t, 1, 1), "g1");
	assert_string_equal(text_at(&t, 2, 1), "g1");
	assert_string_equal(text_at(&t, 3, 1), "other");
	sql_table_done(&t);
}

/* A strange node at the head of the list does not push out the others. */
static void most_columns_win(void **state)
{
	static const char *const names[] = {"odd", "g1", "g2"};
	struct fanout_rows nodes[3] = {good("{\"columns\":[\"other\"],\"rows\":[[9]]}"),
		good("{\"columns\":[\"a\",\"b\"],\"rows\":[[1,2]]}"),
		good("{\"columns\":[\"a\",\"b\"],\"rows\":[]}")};
	struct sql_table t = {0};

	assert_int_equal(fanout_table_merge(nodes, names, 3, &t), 0);
	assert_true(nodes[0].odd);
	assert_string_equal(nodes[0].difference, "it has other; it lacks a, b");
	assert_false(nodes[1].odd || nodes[2].odd);
	assert_int_equal(t.row_count, 1);
	assert_string_equal(text_at(&t, 0, 0), "g1");
	sql_table_done(&t);
}

static void of_equals_the_first(void **state)
{
	static const char *const names[] = {"g1", "g2", "g3", "g4"};
	struct fanout_rows nodes[4] = {good("{\"columns\":[\"a\"],\"rows\":[[1]]}"),
		good("{\"columns\":[\"a\",\"b\"],\"rows\":[[2,3]]}"),
		good("{\"columns\":[\"a\"],\"rows\":[[4]]}"),
		good("{\"columns\":[\"a\",\"b\"],\"rows\":[]}")};
	struct sql_table t = {0};

	assert_int_equal(fanout_table_merge(nodes, names, 4, &t), 0);
	assert_true(nodes[1].odd && nodes[3].odd && !nodes[0].odd && !nodes[2].odd);
	assert_string_equal(nodes[1].difference, "it has b");
	assert_int_equal(t.row_count, 2);
	sql_table_done(&t);
}

static void each_its_own_is_nobody(void **state)
{
	static const char *const names[] = {"g1", "g2"};
	struct fanout_rows nodes[2] = {good("{\"columns\":[\"a\"],\"rows\":[[1]]}"),
		good("{\"columns\":[\"b\"],\"rows\":[[2]]}")};
	struct sql_table t = {0};

	assert_int_equal(fanout_table_merge(nodes, names, 2, &t), 0);
	assert_true(nodes[0].odd && nodes[1].odd);
	assert_string_equal(nodes[0].difference, "");
	assert_int_equal(t.column_count, 0);
	sql_table_done(&t);
}

static void nobody_is_an_empty_table(void **state)
{
	static const char *const names[] = {"g1"};
	struct fanout_rows nodes[1] = {{.there = false}};
	struct sql_table t = {0};

	assert_int_equal(fanout_table_merge(nodes, names, 1, &t), 0);
	assert_int_equal(t.column_count, 0);
	assert_int_equal(t.row_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_keep_their_types),
		cmocka_unit_test(bad_answers_are_refused),
		cmocka_unit_test(limits_cut_and_say_so),
		cmocka_unit_test(bytes_are_bounded),
		cmocka_unit_test(the_node_comes_first),
		cmocka_unit_test(an_own_node_column_serves),
		cmocka_unit_test(most_columns_win),
		cmocka_unit_test(of_equals_the_first),
		cmocka_unit_test(each_its_own_is_nobody),
		cmocka_unit_test(nobody_is_an_empty_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
