/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fanout/fanout.h"
#include "fanout/fanout_private.h"
#include "sql/sql_guard.h"

static struct sql_table table(const char *body)
{
	struct fanout_rows rows = {.there = false};
	struct errinfo e = {0};

	if (fanout_table_read(body, strlen(body), 1000, 1 << 20, &rows, &e) < 0)
		fail_msg("%s", e.text);
	return rows.table;
}

/* Columns stand anywhere, and unknown ones are passed over: nothing is read from a neighbour. */
static void columns_are_found_by_name(void **state)
{
	struct sql_table t =
		table("{\"columns\":[\"comm\",\"rank\",\"op\",\"source\",\"x\",\"tid\",\"pid\","
		      "\"duration\","
		      "\"start_ns\",\"timestamp\",\"gpu_id\",\"seq\"],\"rows\":["
		      "[\"python\",3,5,1,\"?\",11,10,700,2000,2700,7,42],"
		      "[\"python3-with-a-long-name\",null,1,3,0,11,10,0,1000,1000,0,41]]}");
	struct fanout_events l = {0};

	assert_int_equal(fanout_event_read(&t, "gpu1", &l), 0);
	fanout_event_sort(&l);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.name_count, 1);
	assert_string_equal(l.names[0], "gpu1");
	assert_int_equal(l.items[0].event.start.ns, 1000); /* in order of time */
	assert_int_equal(l.items[0].event.place.known, 0);
	assert_int_equal(strlen(l.items[0].event.comm), COMM_LEN - 1);
	assert_int_equal(l.items[1].event.start.ns, 2000);
	assert_int_equal(l.items[1].event.dur_ns, 700);
	assert_int_equal(l.items[1].event.pid, 10);
	assert_int_equal(l.items[1].event.tid, 11);
	assert_int_equal(l.items[1].event.source, 1);
	assert_int_equal(l.items[1].event.op, 5);
	assert_int_equal(l.items[1].event.device, 7);
	assert_int_equal(l.items[1].event.seq, 42);
	assert_int_equal(l.items[1].event.weight, 1);
	assert_int_equal(l.items[1].event.place.rank, 3);
	assert_int_equal(l.items[1].event.place.known, PLACEMENT_RANK);
	assert_string_equal(l.items[1].event.comm, "python");
	fanout_events_done(&l);
	sql_table_done(&t);
}

static void rows_that_cannot_be_are_counted(void **state)
{
	struct sql_table t =
		table("{\"columns\":[\"node\",\"start_ns\",\"duration\",\"pid\",\"tid\",\"source\","
		      "\"op\"],"
		      "\"rows\":[[\"a\",5,1,1,1,1,1],[\"b\",6,1,1,1,1,1],[\"a\",0,1,1,1,1,1],"
		      "[\"a\",5,-1,1,1,1,1],[\"a\",5,1,-1,1,1,1],[\"a\",5,1,1,1,99,1],[\"a\",5,1,1,"
		      "1,1,64],"
		      "[\"a\",5.5,1,1,1,1,1],[\"a\",\"5\",1,1,1,1,1],"
		      "[\"a\",9223372036854775807,1,1,1,1,1]]}");
	struct fanout_events l = {0};

	assert_int_equal(fanout_event_read(&t, "gpu1", &l), 0);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.skipped, 8);
	assert_int_equal(l.name_count, 2);
	assert_string_equal(l.names[l.items[1].node], "b");
	fanout_events_done(&l);
	sql_table_done(&t);
}

/* Recordings of different versions together. */
static void nodes_are_added_up(void **state)
{
	struct sql_table one = table("{\"columns\":[\"start_ns\",\"duration\",\"pid\",\"tid\","
				     "\"source\",\"op\"],\"rows\":[[7,1,1,1,1,1]]}"),
			 two = table("{\"columns\":[\"node\",\"op\",\"start_ns\",\"duration\","
				     "\"pid\",\"tid\",\"source\"],\"rows\":[[\"\",2,5,1,1,1,1],"
				     "[\"own\",3,9,1,1,1,1]]}");
	struct fanout_events l = {0};

	assert_int_equal(fanout_event_read(&one, "gpu1", &l), 0);
	assert_int_equal(fanout_event_read(&two, "gpu2", &l), 0);
	fanout_event_sort(&l);
	assert_int_equal(l.count, 3);
	assert_string_equal(l.names[l.items[0].node], "gpu2");
	assert_int_equal(l.items[0].event.op, 2);
	assert_string_equal(l.names[l.items[1].node], "gpu1");
	assert_string_equal(l.names[l.items[2].node], "own");
	fanout_events_done(&l);
	sql_table_done(&one);
	sql_table_done(&two);
}

static void other_tables_are_refused(void **state)
{
	struct sql_table t = table("{\"columns\":[\"n\"],\"rows\":[[1]]}");
	struct fanout_events l = {0};

	assert_int_equal(fanout_event_read(&t, "gpu1", &l), -EPROTO);
	sql_table_done(&t);
}

/* The statement, on recordings of both kinds, as a node's guard runs it. */
static void the_statement_gives_starts(void **state)
{
	static const uint32_t pids[] = {10, 20};
	struct fanout_event_request w = {.since_ns = 4000, .pids = pids, .pid_count = 2};

	for (int version = 10; version <= 11; version++) {
		char path[] = "/tmp/ingero-events-XXXXXX", make[1024];
		struct sql_guard_rules rules = {.rows_max = 100, .bytes_max = 1 << 20};
		_cleanup_buf_ struct buf sql = BUF_INIT(4096), hint = BUF_INIT(4096);
		struct sql_table t = {0};
		struct errinfo e = {0};
		sql_db *db = NULL;
		int fd = mkstemp(path);

		assert_true(fd >= 0);
		close(fd);
		assert_int_equal(sql_open_write(path, &db, &e), 0);
		snprintf(make, sizeof(make),
			"CREATE TABLE schema_info (key TEXT, value TEXT);"
			"INSERT INTO schema_info VALUES ('version', '0.%d');"
			"CREATE TABLE events (timestamp, duration, pid, tid, source, op, node);"
			"INSERT INTO events VALUES (9000, 500, 10, 10, 5, 1, 'n'),"
			"(8000, 500, 20, 20, 1, 3, 'n'), (7000, 500, 30, 30, 1, 3, 'n'),"
			"(1000, 500, 10, 10, 1, 3, 'n');",
			version);
		assert_int_equal(sql_exec(db, make, &e), 0);
		assert_int_equal(sql_close(db), 0);
		fanout_event_sql(&sql, &w);
		assert_int_equal(sql_open_read(path, false, &db, NULL, &e), 0);
		if (sql_guard_select(db, buf_str(&sql), &rules, &t, &hint, &e) < 0)
			fail_msg("%s: %s", e.text, buf_str(&sql));
		assert_int_equal(t.row_count, 2); /* not the other process, not the old one */
		assert_string_equal(sql_table_name(&t, 0), "start_ns");
		assert_int_equal(sql_table_cell(&t, 0, 0)->i, version == 10 ? 8500 : 9000);
		assert_int_equal(sql_table_cell(&t, 1, 0)->i, 8000);
		sql_table_done(&t);
		assert_int_equal(sql_close(db), 0);
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_found_by_name),
		cmocka_unit_test(rows_that_cannot_be_are_counted),
		cmocka_unit_test(nodes_are_added_up),
		cmocka_unit_test(other_tables_are_refused),
		cmocka_unit_test(the_statement_gives_starts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
