/* SPDX-License-Identifier: Apache-2.0 */
/* What of a stranger's statement goes to ClickHouse, and the names that a scope gives. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/store/clickhouse_guard.h"

static void test_queries(void **state)
{
	static const char *const texts[] = {"SELECT 1",
		" -- why\n/* x */ (SELECT count() FROM events);",
		"SELECT 'a;b', \"node_id\", `rank` FROM events WHERE body = 'it\\'s system.tables'",
		"WITH 1 AS x SELECT x", "SELECT system FROM (SELECT 1 AS system)",
		"SELECT format, 'FORMAT TSV' AS user FROM (SELECT 1 AS format)",
		"SELECT 1 -- ; DROP TABLE events", "SELECT url, file FROM events -- remote(1)"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(clickhouse_guard_check(texts[i], NULL), 0);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int err;
	} rows[] = {
		{"", -EINVAL},
		{"-- nothing", -EINVAL},
		{"DROP TABLE events", -EINVAL},
		{"/* SELECT */ INSERT INTO events SELECT 1", -EINVAL},
		{"SELECT 1; SELECT 2", -EINVAL},
		{"SELECT 1;;", -EINVAL},
		{"SELECT $$a$$", -EINVAL},
		{"SELECT `a\\x62` FROM events", -EINVAL},
		{"SELECT \"a\\\"\" FROM events", -EINVAL},
		{"SELECT 'open", -EINVAL},
		{"SELECT 1 FORMAT TSV", -EPERM},
		{"SELECT 1 settings max_threads = 1", -EPERM},
		{"SELECT 1 INTO OUTFILE 'x'", -EPERM},
		{"SELECT * FROM system.tables", -EPERM},
		{"SELECT * FROM SYSTEM . tables", -EPERM},
		{"SELECT * FROM `system`.tables", -EPERM},
		{"SELECT * FROM \"system\"/**/.tables", -EPERM},
		{"SELECT * FROM 'a' , remote('h', d, t)", -EPERM},
		{"SELECT * FROM Remote -- x\n ('h', d, t)", -EPERM},
		{"SELECT * FROM `url` ('http://h/', TSV, 'a Int8')", -EPERM},
		{"SELECT sleep(3)", -EPERM},
		{"SELECT hostName()", -EPERM},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct errinfo e = {0};

		assert_int_equal(clickhouse_guard_check(rows[i].text, &e), rows[i].err);
		assert_true(e.text[0] != 0);
	}
}

static void test_length(void **state)
{
	static char text[CLICKHOUSE_TEXT_MAX + 2];

	(void)state;
	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, "SELECT 1", 8);
	assert_int_equal(clickhouse_guard_check(text, NULL), -E2BIG);
	text[CLICKHOUSE_TEXT_MAX] = 0;
	assert_int_equal(clickhouse_guard_check(text, NULL), 0);
}

static void name_is(const char *const *clusters, size_t count, const char *wanted)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	struct store_scope scope = {.clusters = clusters, .cluster_count = count};

	assert_int_equal(clickhouse_guard_name("db", &scope, &b, NULL), 0);
	assert_string_equal(buf_str(&b), wanted);
}

static void test_names(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	const char *many[100];
	struct store_scope scope = {.clusters = many};

	(void)state;
	name_is(NULL, 0, "db");
	name_is((const char *const[]){"a"}, 1, "db__a");
	name_is((const char *const[]){"b", "a-1", "b"}, 3, "db__a_2d1__b");
	name_is((const char *const[]){"a", "b"}, 2, "db__a__b");
	name_is((const char *const[]){"a__b"}, 1, "db__a_5f_5fb");
	name_is((const char *const[]){"é;'"}, 1, "db___c3_a9_3b_27");
	assert_int_equal(clickhouse_guard_name("db", &scope, &b, NULL), -EPERM); /* none at all */
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = i % 2 ? "one-cluster" : "another";
	scope.cluster_count = ARRAY_SIZE(many);
	buf_clear(&b);
	assert_int_equal(clickhouse_guard_name("db", &scope, &b, NULL), 0); /* the same twice */
	many[0] = "x----------------------------------------------------------------------";
	buf_clear(&b);
	assert_int_equal(clickhouse_guard_name("db", &scope, &b, NULL), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queries),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
