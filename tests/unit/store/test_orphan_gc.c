/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "store/write/prune.h"

static void put_event(struct nodedb *db, uint64_t stack)
{
	struct event e = {.start.ns = 1000, .pid = 7, .source = 1, .stack_hash = stack};

	assert_int_equal(nodedb_put_event(db, &e, NULL), 0);
}

static void put_ledger(struct nodedb *db, uint64_t stack)
{
	struct ledger_row row = {.start.ns = 1000, .pid = 7, .stack_hash = stack};

	assert_int_equal(nodedb_put_ledger(db, &row, NULL), 0);
}

static int step(struct orphan_gc *s, struct nodedb *db, size_t rows, uint64_t *deleted)
{
	struct errinfo err = {0};
	int r;

	assert_int_equal(nodedb_batch_begin(db, &err), 0);
	r = orphan_gc_step(s, db, rows, 1, deleted, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	assert_int_equal(nodedb_batch_commit(db, &err), 0);
	return r;
}

static int64_t number(struct nodedb *db, const char *sql)
{
	struct errinfo err = {0};
	int64_t v;

	if (sql_get_int(db->sql, sql, &v, &err) < 0)
		fail_msg("%s", err.text);
	return v;
}

/* Stacks 1 to 6: 1 is used by an old event, 2 by one that comes while marking, 3 by none, 4 comes
 * while marking and is not used yet, 5 and 6 are the ledger's alone, 6 while marking. */
static void test_what_comes_while_marking_stays(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct session session = {.started.ns = 1};
	struct orphan_gc w = {0};
	uint64_t deleted = 0;

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	for (int i = 0; i < 10; i++)
		put_event(db, 1);
	assert_int_equal(
		sql_exec(db->sql,
			"INSERT INTO stack_traces (hash, ips) VALUES (1,''),(2,''),(3,''),(5,''),"
			"(6,'')",
			NULL),
		0);
	for (int i = 0; i < 7; i++)
		put_ledger(db, 5);
	assert_int_equal(step(&w, db, 5, &deleted), 0); /* at rest */
	orphan_gc_begin(&w);
	assert_int_equal(step(&w, db, 5, &deleted), 1); /* lists */
	assert_int_equal(step(&w, db, 5, &deleted), 1); /* marks half */
	assert_int_equal(
		sql_exec(db->sql, "INSERT INTO stack_traces (hash, ips) VALUES (4,'')", NULL), 0);
	put_event(db, 2);
	put_ledger(db, 6);
	while (step(&w, db, 5, &deleted))
		continue;
	assert_true(w.removed);
	assert_int_equal(deleted, 1);
	assert_int_equal(number(db, "SELECT sum(hash) FROM stack_traces"), 1 + 2 + 4 + 5 + 6);
	assert_int_equal(
		number(db, "SELECT rows FROM pruned WHERE table_name = 'stack_traces'"), 1);
	orphan_gc_begin(&w); /* too early for the next round */
	assert_int_equal(step(&w, db, 5, &deleted), 0);
	scratch_close(db);
}

/* More stacks than are looked at in a round, all of them in use but for the last: its turn comes. */
static void test_more_than_a_round(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct session session = {.started.ns = 1};
	struct orphan_gc w = {0};
	uint64_t deleted = 0;

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	assert_int_equal(nodedb_batch_begin(db, NULL), 0);
	for (uint64_t stack = 1; stack <= 150000; stack++)
		put_event(db, stack);
	assert_int_equal(nodedb_batch_commit(db, NULL), 0);
	assert_int_equal(
		sql_exec(db->sql,
			"INSERT INTO stack_traces (hash, ips) SELECT DISTINCT stack_hash, '' FROM events;"
			"INSERT INTO stack_traces (hash, ips) VALUES (-5, ''), (200000, '')",
			NULL),
		0);
	for (int round = 0; round < 3; round++) {
		w.rest_until_ns = 0;
		orphan_gc_begin(&w);
		while (step(&w, db, 50000, &deleted))
			continue;
	}
	assert_int_equal(deleted, 2);
	assert_int_equal(number(db, "SELECT count(*) FROM stack_traces"), 150000);
	assert_int_equal(
		number(db, "SELECT count(*) FROM stack_traces WHERE hash IN (-5, 200000)"), 0);
	scratch_close(db);
}

/* A session killed long ago has no end of its own. */
static void test_sessions(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct orphan_gc w = {0};
	uint64_t deleted = 0;

	/* 1 runs; 2 was killed before 3 began; 3 ended at 900, 4 at 1100: after the oldest event */
	assert_int_equal(sql_exec(db->sql,
				 "INSERT INTO sessions (id, started_at, stopped_at) VALUES"
				 " (1, 100, 0), (2, 200, 0), (3, 800, 900), (4, 950, 1100)",
				 NULL),
		0);
	put_event(db, 0);
	orphan_gc_begin(&w);
	while (step(&w, db, 100, &deleted))
		continue;
	assert_int_equal(number(db, "SELECT sum(id) FROM sessions"), 1 + 4);
	assert_int_equal(deleted, 2);
	assert_false(w.removed);
	scratch_close(db);
}

/* Coverage goes with its session or its process: of pid 8 nothing is left, 7 has events, 9 was seen
 * after the oldest event. */
static void test_coverage(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct orphan_gc w = {0};
	uint64_t deleted = 0;

	assert_int_equal(sql_exec(db->sql,
				 "INSERT INTO sessions (id, started_at, stopped_at, node) VALUES"
				 " (1, 100, 0, 'n'), (2, 200, 300, 'n');"
				 "INSERT INTO coverage (session_id, node, pid, start_time, layer, "
				 "state, since)"
				 " VALUES (1, 'n', 7, 1, 'runtime', 'covered', 5),"
				 " (1, 'n', 8, 1, 'runtime', 'covered', 5), (1, 'n', 8, 1, "
				 "'driver', 'failed', 0),"
				 " (1, 'n', 9, 1, 'runtime', 'covered', 2000),"
				 " (2, 'n', 7, 1, 'runtime', 'covered', 5)",
				 NULL),
		0);
	put_event(db, 0);
	orphan_gc_begin(&w);
	while (step(&w, db, 1, &deleted))
		continue;
	assert_int_equal(number(db, "SELECT sum(session_id * 100 + pid) FROM coverage"), 107 + 109);
	assert_int_equal(number(db, "SELECT rows FROM pruned WHERE table_name = 'coverage'"), 3);
	assert_int_equal(deleted, 4);
	assert_true(w.removed);
	scratch_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_comes_while_marking_stays),
		TEST(test_more_than_a_round),
		TEST(test_sessions),
		TEST(test_coverage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
