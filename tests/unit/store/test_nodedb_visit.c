/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "store/schema/schema.h"
#include "store/lock.h"
#include "base/buf.h"
#include "published_fixture.h"
#include "sql/sql_worker.h"

#define S(n) ((int64_t)(n) * (int64_t)NS_PER_S)

static void test_range(void **state)
{
	struct scratch *s = *state;
	struct nodedb_range range = {7, 7};
	struct errinfo err = {0};

	scratch_sql(s->path, PUBLISHED_8);
	assert_int_equal(nodedb_range(s->path, &range, &err), 0);
	assert_true(range.first_ns == 0 && range.last_ns == 0);
	/* a switch that ends at 100 s began at 90; a call at 200 s ends at 201 */
	scratch_sql(s->path,
		"INSERT INTO events(timestamp, pid, tid, source, op, duration) VALUES"
		" (100000000000, 1, 1, 3, 1, 10000000000), (200000000000, 1, 1, 1, 3, 1000000000),"
		" (-5, 1, 1, 1, 3, 5), ('late', 1, 1, 1, 3, 5), (9223372036854775807, 1, 1, 1, 3, "
		"1)");
	assert_int_equal(nodedb_range(s->path, &range, &err), 0);
	assert_int_equal(range.first_ns, S(90));
	assert_int_equal(range.last_ns, S(201));
	/* a switch at the end is stamped with it; a duration that cannot be is none */
	scratch_sql(s->path,
		"INSERT INTO events(timestamp, pid, tid, source, op, duration) VALUES"
		" (300000000000, 1, 1, 3, 1, 10000000000), (5000000000, 1, 1, 5, 1, -7)");
	assert_int_equal(nodedb_range(s->path, &range, &err), 0);
	assert_int_equal(range.first_ns, S(5));
	assert_int_equal(range.last_ns, S(300));
}

static void test_range_of_what_is_none(void **state)
{
	struct scratch *s = *state;
	struct nodedb_range range = {7, 7};
	struct errinfo err = {0};

	assert_int_equal(nodedb_range(s->path, &range, &err), -ENOENT);
	scratch_sql(s->path, "CREATE TABLE x(a)");
	assert_int_equal(nodedb_range(s->path, &range, &err), -EBADMSG);
	assert_int_equal(range.first_ns, 7); /* untouched */
}

/* A recorder of another process, which holds its lock: it has come so far, and makes its tables a moment later
 * unless it ends before. */
enum so_far { NO_FILE, EMPTY_FILE, NO_TABLES };

static void record(const char *path, enum so_far begin, bool makes, int told)
{
	struct store_lock lock = STORE_LOCK_INIT;
	struct errinfo err = {0};
	sql_db *sql = NULL;
	int fd = begin == NO_FILE ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (store_lock_take(path, &lock, &err) < 0 ||
		(begin == NO_TABLES && sql_open_write(path, &sql, &err) < 0) ||
		write(told, "", 1) != 1)
		_exit(1);
	usleep(200 * 1000);
	if (!makes)
		_exit(0);
	if (fd < 0)
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || (!sql && sql_open_write(path, &sql, &err) < 0) ||
		sql_exec(sql, "BEGIN IMMEDIATE", &err) < 0 || schema_create(sql, &err) < 0 ||
		sql_exec(sql, "COMMIT", &err) < 0)
		_exit(1);
	usleep(200 * 1000); /* as a recorder does, it stays */
	_exit(0);
}

static int range_beside(const char *path, enum so_far begin, bool makes)
{
	struct nodedb_range range;
	struct errinfo err = {0};
	int told[2], status, r;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		record(path, begin, makes, told[1]);
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	r = nodedb_range(path, &range, &err);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return r;
}

static void test_a_recorder_that_begins_is_waited_for(void **state)
{
	struct scratch *s = *state;

	for (enum so_far begin = NO_FILE; begin <= NO_TABLES; begin++) {
		assert_int_equal(range_beside(s->path, begin, true), 0);
		scratch_files(s->folder, true);
	}
	assert_int_equal(range_beside(s->path, NO_FILE, false), -ENOENT);
	scratch_files(s->folder, true);
	assert_int_equal(range_beside(s->path, EMPTY_FILE, false), -EBADMSG);
}

static void test_usage(void **state)
{
	static const uint32_t pids[] = {8};
	struct nodedb_filter of_8 = {.scope.pids = pids, .scope.pid_count = 1},
			     early = {.scope.to_ns = S(60) - 1}, late = {.scope.from_ns = S(60)};
	_cleanup_free_ struct nodedb_usage *rows = NULL;
	struct scratch *s = *state;
	struct errinfo err = {0};
	size_t n = 9;

	scratch_sql(s->path, PUBLISHED_8);
	assert_int_equal(nodedb_usage(s->path, NULL, &rows, &n, &err), 0); /* no such table */
	assert_int_equal(n, 0);
	scratch_sql(s->path,
		"CREATE TABLE event_aggregates(bucket, source, op, pid, count, stored, sum_dur, "
		"min_dur,"
		" max_dur, sum_arg0);"
		"INSERT INTO process_names VALUES (7, 'python3', 0);"
		"INSERT INTO event_aggregates VALUES (0, 1, 3, 7, 10, 0, 100, 5, 20, 0),"
		" (60000000000, 1, 3, 7, 30, 0, 700, 5, 90, 0), (0, 4, 1, 7, 2, 0, 2, 1, 1, 0),"
		" (0, 1, 3, 8, 41, 0, 41, 1, 1, 0), (0, 1, 3, 9, -4, 0, 1, 1, 1, 0),"
		" (0, 99, 3, 9, 4, 0, 1, 1, 1, 0), (0, 'x', 3, 9, 4, 0, 1, 1, 1, 0),"
		" (0, 1, 3, 10, 9223372036854775807, 0, 9223372036854775807, 1, 1, 0),"
		" (0, 1, 3, 10, 9223372036854775807, 0, 9223372036854775807, 1, 1, 0)");
	assert_int_equal(nodedb_usage(s->path, NULL, &rows, &n, &err), 0);
	assert_int_equal(n, 4);
	assert_int_equal(rows[0].pid, 10); /* the busiest, and no overflow */
	assert_int_equal(rows[0].count, INT64_MAX);
	assert_int_equal(rows[1].pid, 7);
	assert_string_equal(rows[1].comm, "python3");
	assert_int_equal(rows[1].count, 40);
	assert_int_equal(rows[1].sum_ns, 800);
	assert_int_equal(rows[1].max_ns, 90);
	assert_int_equal(rows[2].source, SOURCE_DRIVER);
	assert_int_equal(rows[3].pid, 8);
	assert_string_equal(rows[3].comm, "");
	free(TAKE(rows));
	assert_int_equal(nodedb_usage(s->path, &of_8, &rows, &n, &err), 0);
	assert_true(n == 1 && rows[0].count == 41);
	free(TAKE(rows));
	assert_int_equal(nodedb_usage(s->path, &early, &rows, &n, &err), 0);
	assert_int_equal(rows[2].pid, 7); /* 12 calls are now fewer than 41 */
	assert_int_equal(rows[2].count, 10);
	free(TAKE(rows));
	assert_int_equal(nodedb_usage(s->path, &late, &rows, &n, &err), 0);
	assert_true(n == 1 && rows[0].count == 30);
}

static void test_ask(void **state)
{
	static const struct sql_guard_rules rules = {.rows_max = 10, .bytes_max = 4096};
	_cleanup_buf_ struct buf hint = BUF_INIT(1024);
	struct scratch *s = *state;
	struct sql_table t = {0};
	struct errinfo err = {0};

	scratch_close(scratch_open(s->path));
	assert_int_equal(
		nodedb_ask(s->path, "SELECT count(*) AS n FROM ops", &rules, &t, &hint, &err), 0);
	assert_true(t.row_count == 1 && sql_table_cell(&t, 0, 0)->i > 30);
	assert_string_equal(sql_table_name(&t, 0), "n");
	sql_table_done(&t);
	assert_int_equal(
		nodedb_ask(s->path, "SELECT durations FROM events", &rules, &t, &hint, &err),
		-EINVAL);
	assert_int_equal(strncmp(buf_str(&hint), "events has id, ", 15), 0);
	assert_int_equal(
		nodedb_ask(s->path, "DELETE FROM events", &rules, &t, &hint, &err), -EPERM);
	assert_int_equal(hint.len, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_range),
		TEST(test_range_of_what_is_none),
		TEST(test_a_recorder_that_begins_is_waited_for),
		TEST(test_usage),
		TEST(test_ask),
	};

	if (sql_worker_is_meant(argc, argv))
		sql_worker_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
