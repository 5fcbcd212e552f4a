/* SPDX-License-Identifier: Apache-2.0 */
#include "published_fixture.h"
#include "store_fixture.h"

static struct nodedb_content read_all(const char *path, const struct nodedb_filter *f)
{
	struct nodedb_content c;
	struct errinfo err = {0};

	if (nodedb_read(path, f, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static void test_published_starts(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;

	scratch_sql(s->path,
		PUBLISHED_8 "INSERT INTO events(timestamp,pid,tid,source,op,duration,arg1) VALUES"
			    " (1000, 7, 7, 1, 3, 100, 0)," /* entry */
			    " (1090, 7, 7, 3, 1, 40, 7),"  /* end: starts at 1050 */
			    " (1200, 7, 7, 5, 1, 300, 0)," /* end: starts at 900 */
			    " (1300, 7, 7, 7, 2, 100, 0)," /* end: starts at 1200 */
			    " (1250, 7, 7, 3, 7, 0, 55);"  /* fork of 55 */
			    "INSERT INTO process_names VALUES (7, 'python3', 1), (8, 'x', 1)");
	c = read_all(s->path, NULL);
	assert_string_equal(c.schema, "0.8");
	assert_int_equal(c.event_count, 5);
	assert_int_equal(c.skipped_rows, 0);
	assert_int_equal(c.events[0].start.ns, 900);
	assert_int_equal(c.events[0].source, SOURCE_IO);
	assert_int_equal(c.events[1].start.ns, 1000);
	assert_int_equal(c.events[1].seq, 1);
	assert_int_equal(c.events[2].start.ns, 1050);
	assert_int_equal(c.events[3].start.ns, 1200);
	assert_int_equal(c.events[4].peer_pid, 55);
	assert_int_equal(c.events[4].weight, 1);
	assert_int_equal(c.first_ns, 900);
	assert_int_equal(c.last_ns, 1300);
	assert_int_equal(c.total_calls, 5);
	assert_false(c.has_books);
	for (size_t i = 0; i < c.event_count; i++)
		assert_string_equal(c.events[i].comm, "python3");
	nodedb_content_done(&c);

	/* a range is one of starts: the request that was stamped after it is in */
	c = read_all(s->path, &(struct nodedb_filter){.scope.from_ns = 900, .scope.to_ns = 1050});
	assert_int_equal(c.event_count, 3);
	assert_int_equal(c.events[0].start.ns, 900);
	assert_int_equal(c.events[2].start.ns, 1050);
	nodedb_content_done(&c);
	c = read_all(s->path, &(struct nodedb_filter){.scope.from_ns = 901, .scope.to_ns = 1049});
	assert_int_equal(c.event_count, 1);
	nodedb_content_done(&c);
}

static void test_published_ids_and_names(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;

	scratch_sql(s->path, PUBLISHED_10
		"INSERT INTO events(id,timestamp,pid,tid,source,op,duration,node,comm) VALUES"
		" ('gpu:01:77', 1000, 7, 7, 1, 3, 100, 'gpu:01', 'own name'),"
		" ('odd', 2000, 7, 7, 1, 3, 100, 'gpu:01', 'a name of far more than 15');"
		"INSERT INTO process_names VALUES (7, 'last name', 1);"
		"INSERT INTO sessions(started_at, node) VALUES (1, 'gpu:01')");
	c = read_all(s->path, NULL);
	assert_string_equal(c.schema, "0.10");
	assert_string_equal(c.node, "gpu:01");
	assert_int_equal(c.event_count, 2);
	assert_int_equal(c.events[0].seq, 77);
	assert_string_equal(c.events[0].comm, "own name");
	assert_int_equal(c.events[1].seq, 0);
	assert_string_equal(c.events[1].comm, "a name of far m");
	nodedb_content_done(&c);
}

static void test_filters(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;
	uint32_t pids[] = {3, 5, 999};

	assert_int_equal(nodedb_batch_begin(db, &err), 0);
	for (uint32_t i = 0; i < 1000; i++) { /* stored out of order */
		uint32_t n = i ^ 1;
		struct event e = {.start.ns = 1000 + n,
			.pid = n % 10,
			.tid = 1,
			.source = 1,
			.op = 3,
			.dur_ns = 1,
			.weight = 1};

		assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	}
	assert_int_equal(nodedb_batch_commit(db, &err), 0);
	scratch_close(db);

	c = read_all(s->path, NULL);
	assert_int_equal(c.event_count, 1000);
	for (size_t i = 0; i < c.event_count; i++)
		assert_int_equal(c.events[i].start.ns, 1000 + i);
	nodedb_content_done(&c);
	c = read_all(s->path, &(struct nodedb_filter){.last = 3});
	assert_int_equal(c.event_count, 3);
	assert_int_equal(c.events[0].start.ns, 1997);
	assert_int_equal(c.older_events, 0); /* asked for, not cut off */
	nodedb_content_done(&c);
	c = read_all(s->path, &(struct nodedb_filter){.scope.from_ns = 1100, .scope.to_ns = 1199});
	assert_int_equal(c.event_count, 100);
	nodedb_content_done(&c);
	c = read_all(s->path,
		&(struct nodedb_filter){.scope.pids = pids, .scope.pid_count = 3, .last = 7});
	assert_int_equal(c.event_count, 7);
	assert_int_equal(c.events[6].start.ns, 1995);
	for (size_t i = 0; i < c.event_count; i++)
		assert_true(c.events[i].pid == 3 || c.events[i].pid == 5);
	nodedb_content_done(&c);
}

static void test_too_many_pids(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb_content c;
	uint32_t *pids = calloc(100000, sizeof(*pids));

	assert_non_null(pids);
	scratch_close(scratch_open(s->path));
	assert_int_equal(
		nodedb_read(s->path,
			&(struct nodedb_filter){.scope.pids = pids, .scope.pid_count = 100000}, &c,
			&err),
		-E2BIG);
	free(pids);
}

/* The shape of the loader's statement: by the index, without sorting the whole table. */
static void test_the_index_is_used(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	sql_stmt *stmt = NULL;
	sql_db *db = NULL;

	scratch_close(scratch_open(s->path));
	assert_int_equal(sql_open_read(s->path, false, &db, NULL, &err), 0);
	assert_int_equal(
		sql_prepare(db,
			"EXPLAIN QUERY PLAN SELECT * FROM events WHERE 1 AND timestamp >= 5 "
			"AND timestamp <= 9 ORDER BY timestamp DESC, rowid DESC LIMIT 3",
			&stmt, &err),
		0);
	assert_int_equal(sql_step(stmt, &err), 1);
	assert_non_null(strstr(sql_column_text(stmt, 3, NULL), "USING INDEX idx_events_timestamp"));
	assert_int_equal(sql_step(stmt, &err), 0); /* no second step that sorts */
	sql_finalize(stmt);
	assert_int_equal(sql_close(db), 0);
}

static void test_hostile_rows_are_counted(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;

	scratch_sql(s->path, PUBLISHED_10
		"INSERT INTO events(id,timestamp,pid,tid,source,op,duration,comm) VALUES"
		" ('n:1', 1000, 7, 7, 1, 3, 100, 'good'),"
		" ('n:2', 1000, 7, 7, 1, 3, -1, ''),"
		" ('n:3', 1000, 7, 7, 1, 3, 9223372036854775807, ''),"
		" ('n:4', 'soon', 7, 7, 1, 3, 1, ''),"
		" ('n:5', x'00ff', 7, 7, 1, 3, 1, ''),"
		" ('n:6', 1.5, 7, 7, 1, 3, 1, ''),"
		" ('n:7', -5, 7, 7, 1, 3, 1, ''),"
		" ('n:8', 9223372036854775807, 7, 7, 1, 3, 1, ''),"
		" ('n:9', 1000, -7, 7, 1, 3, 1, ''),"
		" ('n:10', 1000, 7, 4294967296, 1, 3, 1, ''),"
		" ('n:11', 1000, 7, 7, 16, 3, 1, ''),"
		" ('n:12', 1000, 7, 7, 0, 3, 1, ''),"
		" ('n:13', 1000, 7, 7, 1, 64, 1, ''),"
		" ('n:14', 1000, 7, 7, 5, 1, 5000, ''),"
		" ('n:15', 1000, 7, 7, 1, 3, 1, hex(zeroblob(1100000))),"
		" ('n:16', 1000, 7, 7, 1, 3, 1, x'41');");
	c = read_all(s->path, NULL);
	assert_int_equal(c.event_count, 1);
	assert_string_equal(c.events[0].comm, "good");
	assert_int_equal(c.skipped_rows, 15);
	nodedb_content_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_published_starts),
		TEST(test_published_ids_and_names),
		TEST(test_filters),
		TEST(test_too_many_pids),
		TEST(test_the_index_is_used),
		TEST(test_hostile_rows_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
