/* SPDX-License-Identifier: Apache-2.0 */
/* What of a stranger's statement goes to ClickHouse, and the names that a scope gives. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/store/store_clickhouse_private.h"

static void test_queries(void **state)
{
	static const char *const texts[] = {"SELECT 1",
		" -- why\n/* x */ (SELECT count() FROM events);",
		"SELECT 'a;b', \"node_id\", `rank` FROM events WHERE body = 'it\\'s system.tables'",
		"WITH 1 AS x SELECT x", "SELECT system FROM (SELECT 1 AS system)",
		"SELECT format, 'FORMAT TSV' AS user FROM (SELECT 1 AS format)",
		"SELECT 1 -- ; DROP TABLE events", "SELECT url, file FROM events -- remote(1)",
		"SELECT e.node_id, countIf(e.value_double > 1.5) FROM events AS e, steps s WHERE e.rank = s.rank",
		"SELECT node_id FROM events ANY LEFT JOIN (SELECT node_id, max(bytes) AS b FROM "
		"collectives GROUP BY node_id) USING (node_id) ORDER BY b DESC LIMIT 1, 2",
		"SELECT quantileExact(0.99)(value_double), toStartOfMinute(toDateTime(intDiv(ts_ns, 1000000000)))"
		" AS m FROM \"events\" WHERE (rank IN (1, -2, 3) OR node_id NOT IN ('a', 'b')) GROUP BY m",
		"SELECT node_id FROM events WHERE node_id GLOBAL NOT IN (SELECT node_id FROM steps)",
		"SELECT 1 FROM events WHERE (rank, node_id) IN ((1, 'a'), (2, 'b')) AND rank IN tuple(1)",
		"WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT * FROM a JOIN b USING (x)",
		"SELECT sum(bytes) OVER (PARTITION BY node_id ORDER BY op_seq), CASE WHEN (rank > 1) THEN 'a' "
		"ELSE 'b' END FROM collectives UNION ALL SELECT 1, 'c'",
		"SELECT CAST(rank AS String), body LIKE '%\xc3\xa9%' FROM events"};

	struct errinfo e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (clickhouse_guard_check(texts[i], &e) < 0)
			fail_msg("%s: %s", texts[i], e.text);
}

/* What servers of 26 have and a list of what is forbidden did not: each as a table, as a function and after IN. */
static void test_what_is_new_is_not_known(void **state)
{
	static const char *const names[] = {"azureBlobStorage", "azureBlobStorageCluster", "gcs",
		"iceberg", "icebergS3", "icebergLocal", "icebergAzure", "deltaLake",
		"deltaLakeLocal", "hdfsCluster", "fileCluster", "urlCluster", "s3Cluster",
		"mergeTreeIndex", "mergeTreeProjection", "timeSeriesData", "timeSeriesTags",
		"ytsaurus", "hudi", "arrowFlight", "mongodb", "remoteSecure", "clusterAllReplicas",
		"file", "url", "executable", "dictGet", "joinGet", "viewExplain", "numbers",
		"zeros", "values", "null", "fuzzJSON", "paimon", "prometheusQuery",
		"hasColumnInTable", "catboostEvaluate", "arrayReduce", "filesystemFree",
		"serverUUID", "tcpPort", "sleepEachRow", "theFunctionOfTomorrow"};
	static const struct {
		const char *before, *after;
	} forms[] = {{"SELECT * FROM ", "('a')"}, {"SELECT ", "('a') FROM events"},
		{"SELECT * FROM events, \"", "\" ('a')"},
		{"SELECT 1 FROM events WHERE rank IN ", "('a')"},
		{"SELECT * FROM events JOIN ", "('a') USING (rank)"},
		{"SELECT countIf(`", "`\n('a')) FROM steps"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (size_t k = 0; k < ARRAY_SIZE(forms); k++) {
			char text[256];

			snprintf(text, sizeof(text), "%s%s%s", forms[k].before, names[i],
				forms[k].after);
			if (clickhouse_guard_check(text, NULL) != -EPERM)
				fail_msg("it is let through: %s", text);
		}
}

static void test_tables_of_others(void **state)
{
	static const char *const texts[] = {"SELECT * FROM ingero.events",
		"SELECT * FROM `ingero` . events", "SELECT * FROM events, ingero.events_local",
		"SELECT * FROM events_local", "SELECT * FROM journal_local", "SELECT * FROM Events",
		"SELECT * FROM (SELECT 1) AS a, default.x",
		"SELECT * FROM events e JOIN ingero.steps USING (rank)",
		"SELECT * FROM events JOIN steps USING (rank), ingero.events_local",
		"SELECT 1 FROM events WHERE rank IN ingero.events_local",
		"SELECT 1 FROM events WHERE rank IN (ingero.events_local)",
		"SELECT 1 FROM events WHERE rank GLOBAL IN ((events_local))",
		"SELECT 1 AS events, in(events, ingero.events_local)",
		"SELECT NOT in(1, ingero.events_local)", "SELECT 1 WHERE GLOBAL NOT in(1, x)",
		"SELECT globalIn(1, ingero.events_local)", "SELECT notIn(1, x)",
		"SELECT * FROM (WITH journal_local AS (SELECT 1) SELECT 1), journal_local",
		"SELECT * FROM journal_local, (WITH journal_local AS (SELECT 1) SELECT 1)",
		"WITH a AS (SELECT 1) SELECT * FROM a.b", "SELECT * APPLY file FROM events",
		"SELECT * FROM events ARRAY JOIN x", "SELECT * FROM merge('ingero', 'events')"};
	struct errinfo e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		e = (struct errinfo){0};
		if (clickhouse_guard_check(texts[i], &e) != -EPERM || !e.text[0])
			fail_msg("it is let through: %s", texts[i]);
	}
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
		{"SELECT * FROM 'a' , remote('h', d, t)", -EINVAL},
		{"SELECT * FROM events , remote('h', d, t)", -EPERM},
		{"SELECT file\xc2\xa0('x')", -EINVAL},
		{"SELECT \xe2\x80\x98x\xe2\x80\x99", -EINVAL},
		{"SELECT * FROM {t:Identifier}", -EINVAL},
		{"SELECT * FROM (EXPLAIN SELECT 1)", -EINVAL},
		{"SELECT * FROM (DESCRIBE TABLE events)", -EINVAL},
		{"SELECT * FROM", -EINVAL},
		{"SELECT 1 IN", -EINVAL},
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
		cmocka_unit_test(test_what_is_new_is_not_known),
		cmocka_unit_test(test_tables_of_others),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
