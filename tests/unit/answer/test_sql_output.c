/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "answer/encode/report_json.h"
#include "sql/sql_guard.h"

static void expect(const char *sql, enum sql_output form, bool terminal, const char *want)
{
	static const struct sql_guard_rules rules = {.rows_max = 10, .bytes_max = 1 << 20};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct sql_table t = {0};
	struct errinfo err = {0};
	sql_db *db = NULL;

	assert_int_equal(sql_open_memory(&db, &err), 0);
	if (sql_guard_select(db, sql, &rules, &t, NULL, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
	sql_output_write(&b, &t, form, terminal);
	assert_int_equal(b.err, 0);
	assert_string_equal(buf_str(&b), want);
	sql_table_done(&t);
	assert_int_equal(sql_close(db), 0);
}

static void test_table(void **state)
{
	expect("SELECT 1 AS n, 'µs' AS unit, NULL AS x UNION ALL SELECT 1234, 'ms', 2.5",
		SQL_OUTPUT_TABLE, false,
		"   n  unit    x\n"
		"----  ----  ---\n"
		"   1  µs       \n"
		"1234  ms    2.5\n");
	expect("SELECT char(27) || '[2J' || char(10) AS \"a\x1b\"", SQL_OUTPUT_TABLE, false,
		"a\\x1b\n---------\n\\x1b[2J\\n\n");
	expect("SELECT x'00ff' AS b WHERE 0", SQL_OUTPUT_TABLE, false, "b\n-\n");
	expect("SELECT x'00ff' AS b", SQL_OUTPUT_TABLE, false, "b\n-------\nx'00ff'\n");
}

static void test_long_cells_are_cut_in_tables_only(void **state)
{
	char want[512], dashes[128], text[128];

	memset(dashes, '-', 100);
	memset(text, 'a', 99);
	dashes[100] = text[99] = 0;
	snprintf(want, sizeof(want), "s\n%s\n%s…\n", dashes, text);
	expect("WITH t(s, n) AS (SELECT 'a', 1 UNION ALL SELECT s || 'a', n + 1 FROM t WHERE n < "
	       "101)"
	       " SELECT max(s) AS s FROM t",
		SQL_OUTPUT_TABLE, false, want);
	snprintf(want, sizeof(want), "s\r\n%saa\r\n", text);
	expect("WITH t(s, n) AS (SELECT 'a', 1 UNION ALL SELECT s || 'a', n + 1 FROM t WHERE n < "
	       "101)"
	       " SELECT max(s) AS s FROM t",
		SQL_OUTPUT_CSV, false, want);
}

/* Tables are read by people: six significant digits, and whole numbers whole. */
static void test_digits(void **state)
{
	static const char sql[] =
		"SELECT 759.007898989899 AS v UNION ALL SELECT 1.0/3 UNION ALL SELECT 2.0 UNION ALL "
		"SELECT 12345678.9 UNION ALL SELECT -0.00012345678 UNION ALL SELECT 1e-9/3 UNION "
		"ALL SELECT 99999.96 UNION ALL SELECT 0.9999999 UNION ALL SELECT 1e300 UNION ALL "
		"SELECT 1e999";

	expect(sql, SQL_OUTPUT_TABLE, false,
		"           v\n"
		"------------\n"
		"     759.008\n"
		"    0.333333\n"
		"         2.0\n"
		"    12345679\n"
		"-0.000123457\n"
		" 3.33333e-10\n"
		"    100000.0\n"
		"         1.0\n"
		"      1e+300\n"
		"         inf\n");
	expect("SELECT 759.007898989899 AS v", SQL_OUTPUT_CSV, false, "v\r\n759.007898989899\r\n");
	expect("SELECT 759.007898989899 AS v", SQL_OUTPUT_JSON, false,
		"{\"v\":759.007898989899}\n");
}

static void test_json(void **state)
{
	expect("SELECT 1 AS a, 2 AS a, 'x' || char(0, 27) AS a, x'0aff' AS b, NULL AS c, 1e999 AS "
	       "d, "
	       "0.1 AS e, -9223372036854775807 - 1 AS f",
		SQL_OUTPUT_JSON, false,
		"{\"a\":1,\"a:2\":2,\"a:3\":\"x\\u0000\\u001b\",\"b\":\"0aff\",\"c\":null,\"d\":"
		"null,"
		"\"e\":0.1,\"f\":-9223372036854775808}\n");
	expect("SELECT 1 AS a UNION ALL SELECT 2", SQL_OUTPUT_JSON, false,
		"{\"a\":1}\n{\"a\":2}\n");
}

static void test_csv(void **state)
{
	expect("SELECT 'a,b' AS \"x\"\"y\", 'line' || char(10) AS n, '' AS e, 2.0 AS r",
		SQL_OUTPUT_CSV, false, "\"x\"\"y\",n,e,r\r\n\"a,b\",\"line\n\",,2.0\r\n");
	expect("SELECT '=1+1' AS a, '@x' AS b, '-y' AS c, -5 AS d, -0.5 AS e, 'a=b' AS f, char(9) || '=2,3' AS g",
		SQL_OUTPUT_CSV, false,
		"a,b,c,d,e,f,g\r\n'=1+1,'@x,'-y,-5,-0.5,a=b,\"'\t=2,3\"\r\n");
	expect("SELECT char(27) || 'x' AS a", SQL_OUTPUT_CSV, false, "a\r\n\x1bx\r\n");
	expect("SELECT CAST(x'41ff42c3a9' AS TEXT) AS a", SQL_OUTPUT_CSV, false,
		"a\r\nA\xef\xbf\xbd"
		"B\xc3\xa9\r\n");
	expect("SELECT char(27) || 'x' AS a", SQL_OUTPUT_CSV, true, "a\r\n\\x1bx\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_long_cells_are_cut_in_tables_only),
		cmocka_unit_test(test_digits),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_csv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
