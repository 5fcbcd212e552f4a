/* SPDX-License-Identifier: Apache-2.0 */
/* test_prune.c - a store of 200,000 rows is brought below its limit in bounded portions. */
#include "store_fixture.h"

#include <sqlite3.h>

#include "store/nodedb_private.h"
#include "store/write/prune.h"

#define EVENTS  200000
#define STEP    1000000 /* ns between two events */
#define LIMIT   (8u << 20)
#define OLD_END ((int64_t)EVENTS / 4 * STEP)

static int64_t number(struct nodedb *db, const char *sql)
{
	struct errinfo err = {0};
	int64_t v = INT64_MIN;

	if (sql_get_int(db->sql, sql, &v, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
	return v;
}

static void run_sql(struct nodedb *db, const char *sql)
{
	struct errinfo err = {0};

	if (sql_exec(db->sql, sql, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
}

static int64_t begin(struct nodedb *db, int64_t started)
{
	struct session s = {.started.ns = started};
	struct accounting books = {.source[1] = {.hits = 3, .stored = 2, .lost[0] = 1}};

	assert_int_equal(nodedb_session_begin(db, &s, NULL), 0);
	assert_int_equal(nodedb_put_accounting(db, s.id, &books, NULL), 0);
	return s.id;
}

/* Two sessions: the first ended after a quarter of the events, the second runs. The events of each
 * thousand share a stack; process 500 is in the first half only. */
static struct nodedb *fill(const char *path, int64_t *ret_session)
{
	struct nodedb *db = scratch_open(path);
	struct process old = {.pid = 500, .start_ticks = 1, .seen.ns = 1, .comm = "old"},
		       new = {.pid = 600, .start_ticks = 1, .seen.ns = 1, .comm = "new"};
	int64_t first = begin(db, 1);

	assert_int_equal(nodedb_session_end(db, first, (wall_time){OLD_END}, NULL), 0);
	*ret_session = begin(db, OLD_END + 1);
	assert_int_equal(nodedb_batch_begin(db, NULL), 0);
	for (int64_t n = 0; n < EVENTS; n++) {
		struct event e = {.start.ns = 1 + n * STEP,
			.pid = n < EVENTS / 2 ? 500 : 600,
			.tid = 7,
			.source = 1,
			.op = 1,
			.weight = 1,
			.stack_hash = (uint64_t)(1 + n / 1000),
			.cgroup_id = n < EVENTS / 2 ? 50 : 60,
			.comm = "python3"};

		assert_int_equal(nodedb_put_event(db, &e, NULL), 0);
	}
	run_sql(db, "INSERT INTO stack_traces (hash, ips) SELECT value, 'x' FROM (WITH RECURSIVE "
		    "c(value) AS"
		    " (SELECT 1 UNION ALL SELECT value + 1 FROM c WHERE value < 200)"
		    " SELECT value FROM c)");
	run_sql(db, "INSERT INTO cgroup_metadata (cgroup_id) VALUES (50), (60)");
	run_sql(db, "INSERT INTO system_snapshots (timestamp, cpu_pct, mem_pct, mem_avail, swap_mb,"
		    " load_avg) SELECT timestamp, 1, 1, 1, 1, 1 FROM events WHERE seq % 1000 = 0");
	run_sql(db, "INSERT INTO gpu_samples (node, timestamp, gpu, uuid, name, pci) SELECT node,"
		    " timestamp, 0, '', '', '' FROM events WHERE seq % 500 = 0");
	run_sql(db,
		"INSERT INTO collectives (node, timestamp, pid, tid, comm, op, device, bytes,"
		" count, stream, duration, ret_code) SELECT node, timestamp, pid, tid, 1, 'x', 0,"
		" 1, 1, 0, 1, 0 FROM events WHERE seq % 100 = 0");
	run_sql(db, "INSERT INTO container_samples (node, timestamp, cgroup_id) SELECT node,"
		    " timestamp, 60 FROM events WHERE seq % 500 = 0");
	run_sql(db, "INSERT INTO ledger (node, timestamp, duration, pid, tid, stack_hash) SELECT"
		    " node, timestamp, 1, pid, tid, 200 FROM events WHERE seq % 100 = 0");
	run_sql(db, "INSERT INTO annotations (timestamp) SELECT timestamp FROM events"
		    " WHERE seq % 500 = 0");
	for (int64_t t = 0; t < (int64_t)EVENTS * STEP; t += (int64_t)NODEDB_BUCKET_FINE) {
		struct aggregate a = {.bucket.ns = t, .pid = 600, .source = 1, .op = 1};

		sketch_add(&a.sketch, 100, 5);
		assert_int_equal(nodedb_add_aggregate(db, false, &a, NULL), 0);
	}
	assert_int_equal(nodedb_put_process(db, &old, "", NULL), 0);
	assert_int_equal(nodedb_put_process(db, &new, "", NULL), 0);
	assert_int_equal(nodedb_batch_commit(db, NULL), 0);
	return db;
}

/* The table has rows left, none older than the events, and those it lost are counted. */
static void check_pruned_alike(struct nodedb *db, const char *table, int64_t had)
{
	char sql[256];
	int64_t left;

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
	left = number(db, sql);
	assert_in_range(left, 1, had - 1);
	snprintf(sql, sizeof(sql), "SELECT rows FROM pruned WHERE table_name = '%s'", table);
	assert_int_equal(number(db, sql), had - left);
	snprintf(sql, sizeof(sql),
		"SELECT (SELECT min(timestamp) FROM %s) >= (SELECT min(timestamp) FROM events)",
		table);
	assert_int_equal(number(db, sql), 1);
}

static void test_goes_below_the_limit_in_portions(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct prune *p;
	int64_t session, before, steps = 0, most = 0;
	struct nodedb *db = fill(s->path, &session);
	int r;

	assert_true(nodedb_size(db) > 2 * (uint64_t)LIMIT); /* control */
	assert_int_equal(prune_new(db, session, LIMIT, &p, &err), 0);
	before = number(db, "SELECT count(*) FROM events");
	do {
		int64_t now;

		r = prune_step(p, SIZE_MAX, &err);
		if (r < 0)
			fail_msg("%s", err.text);
		now = number(db, "SELECT count(*) FROM events");
		most = MAX(most, before - now);
		before = now;
		assert_true(++steps < 10000);
	} while (r > 0);
	assert_true(steps > 20);
	assert_true(most > 0 && most <= (int64_t)prune_rows_per_step(p) + 1);
	assert_true(prune_swept(p));
	assert_false(prune_swept(p));
	prune_free(p);

	assert_true(number(db, "PRAGMA page_count") * 4096 <= (int64_t)LIMIT);
	/* the newest stay, and every deleted one is counted */
	assert_int_equal(number(db, "SELECT max(seq) FROM events"), EVENTS);
	assert_true(before > 10000);
	assert_int_equal(number(db, "SELECT max(seq) - min(seq) + 1 - count(*) FROM events"), 0);
	assert_int_equal(
		number(db, "SELECT rows FROM pruned WHERE table_name = 'events'"), EVENTS - before);
	assert_int_equal(number(db, "SELECT oldest_ns FROM pruned WHERE table_name = 'events'"), 1);
	assert_int_equal(number(db, "SELECT (SELECT min(timestamp) FROM events) - newest_ns"
				    " FROM pruned WHERE table_name = 'events'"),
		STEP);
	/* the same moment for the other tables */
	assert_int_equal(number(db, "SELECT count(*) FROM annotations WHERE timestamp <"
				    " (SELECT min(timestamp) FROM events) - 1000000000"),
		0);
	check_pruned_alike(db, "collectives", EVENTS / 100);
	check_pruned_alike(db, "gpu_samples", EVENTS / 500);
	check_pruned_alike(db, "container_samples", EVENTS / 500);
	check_pruned_alike(db, "ledger", EVENTS / 100);
	assert_true(number(db, "SELECT count(*) FROM system_snapshots") > 0);
	assert_true(number(db, "SELECT count(*) FROM event_aggregates_5s") > 0);
	assert_true(number(db, "SELECT min(bucket) + 5000000000 > (SELECT min(timestamp) FROM"
			       " events) - 1000000000 FROM event_aggregates_5s"));
	/* what nothing refers to is gone, the rest is not */
	assert_int_equal(number(db, "SELECT count(*) FROM stack_traces WHERE hash NOT IN"
				    " (SELECT stack_hash FROM events)"),
		0);
	assert_int_equal(number(db, "SELECT count(DISTINCT stack_hash) FROM events"),
		number(db, "SELECT count(*) FROM stack_traces"));
	assert_int_equal(number(db, "SELECT group_concat(cgroup_id) FROM cgroup_metadata"), 60);
	assert_int_equal(number(db, "SELECT group_concat(pid) FROM processes"), 600);
	assert_int_equal(number(db, "SELECT group_concat(pid) FROM process_names"), 600);
	/* never the running session; the other is wholly gone, with its books */
	assert_int_equal(number(db, "SELECT group_concat(id) FROM sessions"), session);
	assert_int_equal(number(db, "SELECT count(DISTINCT session_id) FROM accounting"), 1);
	assert_int_equal(number(db, "SELECT max(session_id) FROM accounting"), session);
	assert_int_equal(number(db, "SELECT count(*) FROM losses"), 1);
	run_sql(db, "PRAGMA integrity_check");
	scratch_close(db);
}

static void test_nothing_is_done_below_the_limit(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct prune *p;
	int64_t session;
	struct nodedb *db = fill(s->path, &session);

	assert_int_equal(prune_new(db, session, 1u << 30, &p, &err), 0);
	assert_int_equal(prune_step(p, SIZE_MAX, &err), 0);
	prune_free(p);
	assert_int_equal(number(db, "SELECT count(*) FROM events"), EVENTS);
	assert_int_equal(number(db, "SELECT count(*) FROM pruned"), 0);
	scratch_close(db);
}

/* Rows that came without an event to refer to them stay when they came after the round began. */
static void test_pruned_rows_of_gone_sessions_are_kept(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb_content c;
	struct prune *p;
	int64_t session;
	struct nodedb *db = fill(s->path, &session);

	assert_int_equal(nodedb_put_pruned(db, 1, "events", 17, 5, 9, &err), 0);
	assert_int_equal(prune_new(db, session, LIMIT, &p, &err), 0);
	while (prune_step(p, 5000, &err) > 0)
		continue;
	prune_free(p);
	assert_int_equal(number(db, "SELECT count(*) FROM pruned WHERE session_id = 1"), 0);
	assert_int_equal(number(db, "SELECT rows + (SELECT count(*) FROM events) FROM pruned"
				    " WHERE table_name = 'events'"),
		EVENTS + 17);
	assert_int_equal(number(db, "SELECT oldest_ns FROM pruned WHERE table_name = 'events'"), 1);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.pruned_rows, EVENTS + 17 - c.event_count);
	assert_int_equal(c.pruned_before, c.events[0].start.ns - STEP + 1);
	nodedb_content_done(&c);
}

/* A limit that the newest rows alone exceed: all goes, the program goes on. */
static void test_a_limit_that_cannot_be_kept(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct prune *p;
	struct nodedb *db = scratch_open(s->path);
	int64_t session = begin(db, 1);
	int r, steps = 0;

	run_sql(db, "CREATE TABLE ballast (x); INSERT INTO ballast VALUES (zeroblob(3000000))");
	for (int64_t n = 0; n < 300; n++) {
		struct event e = {.start.ns = n, .source = 1};

		assert_int_equal(nodedb_put_event(db, &e, NULL), 0);
	}
	assert_int_equal(prune_new(db, session, PRUNE_LIMIT_MIN, &p, &err), 0);
	while ((r = prune_step(p, SIZE_MAX, &err)) > 0)
		assert_true(++steps < 1000);
	assert_int_equal(r, 0);
	prune_free(p);
	assert_int_equal(number(db, "SELECT count(*) FROM events"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM sessions"), 1);
	assert_int_equal(number(db, "SELECT rows FROM pruned WHERE table_name = 'events'"), 300);
	scratch_close(db);
}

/* A table of somebody else's making, with and without an index and row numbers, is pruned too. */
static void test_tables_without_index_or_row_numbers(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct prune *p;
	int64_t session;
	struct nodedb *db = fill(s->path, &session);

	run_sql(db, "DROP TABLE IF EXISTS gpu_samples; CREATE TABLE gpu_samples (gpu, timestamp,"
		    " PRIMARY KEY (timestamp, gpu)) WITHOUT ROWID;"
		    "DROP TABLE IF EXISTS collectives; CREATE TABLE collectives (timestamp);"
		    "INSERT INTO gpu_samples SELECT 0, timestamp FROM events WHERE seq % 100 = 0;"
		    "INSERT INTO collectives SELECT timestamp FROM events WHERE seq % 100 = 0"
		    " ORDER BY seq");
	assert_int_equal(prune_new(db, session, LIMIT, &p, &err), 0);
	while (prune_step(p, SIZE_MAX, &err) > 0)
		continue;
	prune_free(p);
	assert_int_equal(number(db, "SELECT count(*) + (SELECT rows FROM pruned WHERE table_name ="
				    " 'gpu_samples') FROM gpu_samples"),
		EVENTS / 100);
	assert_int_equal(number(db, "SELECT count(*) + (SELECT rows FROM pruned WHERE table_name ="
				    " 'collectives') FROM collectives"),
		EVENTS / 100);
	assert_true(number(db, "SELECT min(timestamp) > (SELECT min(timestamp) FROM events) -"
			       " 1000000000 FROM collectives"));
	scratch_close(db);
}

/* VACUUM attaches a file, which our own connections may not. */
static void rebuild(const char *path, const char *sql)
{
	sqlite3 *raw;

	assert_int_equal(sqlite3_open(path, &raw), SQLITE_OK);
	assert_int_equal(sqlite3_exec(raw, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(raw), SQLITE_OK);
}

/* A file that was made otherwise does not shrink, but stops growing. */
static void test_a_file_that_cannot_shrink(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct prune *p;
	int64_t session, used;
	struct nodedb *db = fill(s->path, &session);
	int steps = 0;

	scratch_close(db);
	rebuild(s->path, "PRAGMA journal_mode=DELETE; PRAGMA auto_vacuum=NONE; VACUUM");
	db = scratch_open(s->path);
	assert_int_equal(number(db, "PRAGMA auto_vacuum"), 0); /* control */
	assert_int_equal(prune_new(db, session, LIMIT, &p, &err), 0);
	while (prune_step(p, SIZE_MAX, &err) > 0)
		assert_true(++steps < 10000);
	assert_int_equal(prune_step(p, SIZE_MAX, &err), 0);
	prune_free(p);
	used = number(db, "PRAGMA page_count") - number(db, "PRAGMA freelist_count");
	assert_true(used * 4096 <= (int64_t)LIMIT);
	scratch_close(db);
}

static void test_batches_fit_the_limit(void **state)
{
	assert_int_equal(prune_batch_max(0, 5000), 5000);
	assert_int_equal(prune_batch_max(10ULL << 30, 5000), 5000);
	assert_true(prune_batch_max(2 << 20, 5000) < 1500);
	assert_int_equal(prune_batch_max(2 << 20, 10), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_goes_below_the_limit_in_portions),
		TEST(test_nothing_is_done_below_the_limit),
		TEST(test_pruned_rows_of_gone_sessions_are_kept),
		TEST(test_a_limit_that_cannot_be_kept),
		TEST(test_tables_without_index_or_row_numbers),
		TEST(test_a_file_that_cannot_shrink),
		TEST(test_batches_fit_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
