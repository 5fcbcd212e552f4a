/* SPDX-License-Identifier: Apache-2.0 */
/* The process that runs a stranger's SQL on DuckDB: what it sees, what it says, how it ends. The worker is
 * this program again (see main). What hostile SQL cannot do is tried by tests/integration/81-duck-sql. */
#include "duck/duck_worker.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "duck_fixture.h"
#include "store_fixture.h"

#define ENDLESS "SELECT count(*) FROM range(100000000000)"

static const struct duck_worker_table tables[] = {
	{"events", "ts_ns BIGINT, node_id VARCHAR, rank BIGINT"},
	{"incidents", "ts_ns BIGINT, summary VARCHAR"},
};

/* A file with what @script makes. */
static const char *make(struct scratch *s, const char *name, const char *script, char out[128])
{
	struct duck_connection *c;
	struct errinfo e = {0};
	struct duck *d;

	snprintf(out, 128, "%s/%s", s->folder, name);
	if (duck_open(out, NULL, &d, &e) < 0 || duck_connect(d, &c, &e) < 0 ||
		duck_exec(c, script, &e) < 0)
		fail_msg("%s", e.text);
	duck_disconnect(c);
	duck_close(d);
	return out;
}

static int ask(const char *const *files, size_t count, const char *text, uint64_t timeout_ms,
	struct sql_table *t, struct buf *hint, struct errinfo *e)
{
	struct duck_worker_question q = {files, count, tables, ARRAY_SIZE(tables), text};
	struct sql_guard_rules rules = {.timeout_ns = timeout_ms * NS_PER_MS, .rows_max = 100};

	return duck_worker_ask(&q, &rules, t, hint, e);
}

static int64_t number_of(const char *const *files, size_t count, const char *text)
{
	struct errinfo e = {0};
	struct sql_table t;
	int64_t n;

	if (ask(files, count, text, 20000, &t, NULL, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	assert_true(t.row_count == 1 && sql_table_cell(&t, 0, 0)->type == SQL_INT);
	n = sql_table_cell(&t, 0, 0)->i;
	sql_table_done(&t);
	return n;
}

static void need(void)
{
	if (!duck_fixture_has())
		skip();
}

/* Of two files one is of an older schema: without the last column, and without a table. */
static void test_files_are_one_table(void **state)
{
	struct scratch *s = *state;
	char names[2][128];
	const char *files[2];

	need();
	files[0] = make(s, "1.duckdb",
		"CREATE TABLE events (ts_ns BIGINT, node_id VARCHAR); INSERT INTO events VALUES (1, 'a'), (2, 'b')",
		names[0]);
	files[1] = make(s, "2.duckdb",
		"CREATE TABLE events (ts_ns BIGINT, node_id VARCHAR, rank BIGINT); INSERT INTO events VALUES (3, 'c', 7);"
		"CREATE TABLE incidents (ts_ns BIGINT, summary VARCHAR); INSERT INTO incidents VALUES (4, 'x')",
		names[1]);
	assert_int_equal(number_of(files, 2, "SELECT sum(ts_ns)::BIGINT FROM events"), 6);
	assert_int_equal(number_of(files, 2, "SELECT count(rank) FROM events"), 1);
	assert_int_equal(number_of(files, 2, "SELECT count(*) FROM incidents"), 1);
	assert_int_equal(number_of(files, 1, "SELECT count(*) FROM incidents"), 0);
	assert_int_equal(number_of(files, 1, "SELECT count(*) FROM events"), 2);
}

static void test_no_file_at_all(void **state)
{
	struct errinfo e = {0};
	struct sql_table t;

	need();
	if (ask(NULL, 0, "SELECT * FROM events", 20000, &t, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(t.row_count == 0 && t.column_count == 3);
	assert_string_equal(sql_table_name(&t, 1), "node_id");
	sql_table_done(&t);
	assert_int_equal(duck_worker_stats().running, 0);
	assert_true(duck_worker_stats().known);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {{"DELETE FROM events", -EINVAL}, {"SELECT nope FROM events", -EINVAL},
		{"SELECT 1; SELECT 2", -EINVAL}, {"", -EINVAL},
		{"ATTACH '/etc/passwd' AS x", -EINVAL}, {"FROM read_text('/etc/passwd')", -EPERM},
		{"EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1", -EPERM},
		{"SELECT len(range(500000000))", -ENOMEM}, {ENDLESS, -ETIMEDOUT}};
	struct sql_table t;

	need();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct errinfo e = {0};
		/* under sanitizers memory has no ceiling but time */
		bool has_no_ceiling = cases[i].err == -ENOMEM && !duck_worker_stats().seccomp;
		uint64_t timeout_ms = cases[i].err == -ETIMEDOUT || has_no_ceiling ? 1000 : 20000;
		int r = ask(NULL, 0, cases[i].text, timeout_ms, &t, NULL, &e);

		if (r == -ETIMEDOUT && has_no_ceiling)
			continue;
		if (r != cases[i].err || !e.text[0])
			fail_msg("%s: %d %s", cases[i].text, r, e.text);
	}
	assert_int_equal(duck_worker_stats().running, 0);
	assert_true(duck_worker_stats().killed > 0);
}

static void test_a_hint(void **state)
{
	_cleanup_buf_ struct buf hint = BUF_INIT(1000);
	struct sql_table t;

	need();
	assert_int_equal(ask(NULL, 0, "FROM nope", 20000, &t, &hint, NULL), -EINVAL);
	assert_string_equal(buf_str(&hint), "the tables are events, incidents");
}

static void test_a_lot_of_rows(void **state)
{
	struct errinfo e = {0};
	struct sql_table t;

	need();
	if (ask(NULL, 0, "FROM range(101)", 20000, &t, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(t.row_count == 100 && t.truncated);
	sql_table_done(&t);
}

static void test_files_that_are_not(void **state)
{
	struct scratch *s = *state;
	const char *gone[] = {"/nowhere/7.duckdb"};
	const char *many[DUCK_WORKER_FILES_MAX + 1];
	const char *damaged[] = {s->path};
	static char text[SQL_GUARD_TEXT_MAX + 2];
	struct errinfo e = {0};
	struct sql_table t;

	need();
	assert_int_equal(ask(gone, 1, "SELECT 1", 20000, &t, NULL, &e), -ENOENT);
	assert_true(strstr(e.text, "7.duckdb") && !strstr(e.text, "nowhere"));
	scratch_write(s->path, "this is no database, whatever it says", 37);
	assert_int_equal(ask(damaged, 1, "SELECT 1", 20000, &t, NULL, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "ingero.db"));
	if (duck_worker_stats().seccomp) /* which hides where links lead; sanitizers do without */
		assert_null(strstr(e.text, s->folder));
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = s->path;
	assert_int_equal(ask(many, ARRAY_SIZE(many), "SELECT 1", 20000, &t, NULL, &e), -E2BIG);
	memset(text, ' ', SQL_GUARD_TEXT_MAX + 1);
	text[SQL_GUARD_TEXT_MAX + 1] = 0;
	assert_int_equal(ask(NULL, 0, text, 20000, &t, NULL, &e), -E2BIG);
}

/* Another process's lock: this one's would be dropped by whatever opens the file. */
static void test_a_file_that_is_written(void **state)
{
	struct scratch *s = *state;
	const char *files[1];
	struct errinfo e = {0};
	struct sql_table t;
	char name[128];
	int ready[2], r, status;
	pid_t pid;

	need();
	files[0] = make(s, "1.duckdb", "CREATE TABLE events (ts_ns BIGINT)", name);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct duck *d;

		r = duck_open(files[0], NULL, &d, NULL);
		_exit(r < 0 || write(ready[1], "x", 1) != 1 || pause());
	}
	assert_int_equal(read(ready[0], name + 127, 1), 1);
	r = ask(files, 1, "SELECT 1", 20000, &t, NULL, &e);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(r, -EBUSY);
	assert_non_null(strstr(e.text, "1.duckdb is being written"));
	assert_int_equal(number_of(files, 1, "SELECT count(*) FROM events"), 0); /* control */
}

static void *ask_slowly(void *arg)
{
	struct sql_table t;

	return (void *)(intptr_t)ask(NULL, 0, ENDLESS, 500, &t, NULL, NULL);
}

static void test_no_more_than_so_many_at_once(void **state)
{
	pthread_t threads[DUCK_WORKER_AT_ONCE + 2];
	void *result;

	need();
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_slowly, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		pthread_join(threads[i], &result);
		assert_true((intptr_t)result == -ETIMEDOUT || (intptr_t)result == -EBUSY);
		assert_true(duck_worker_stats().running <= DUCK_WORKER_AT_ONCE);
	}
	assert_int_equal(duck_worker_stats().running, 0);
}

static void *ask_for_an_hour(void *arg)
{
	struct sql_table t;
	int r;

	sql_worker_watch(*(int *)arg);
	r = ask(NULL, 0, ENDLESS, 3600 * 1000, &t, NULL, NULL);
	sql_worker_watch(-1);
	return (void *)(intptr_t)r;
}

static void test_nobody_waits_any_more(void **state)
{
	uint64_t started = duck_worker_stats().started;
	int gone = eventfd(0, EFD_CLOEXEC);
	pthread_t thread;
	void *result;

	need();
	assert_true(gone >= 0);
	assert_int_equal(pthread_create(&thread, NULL, ask_for_an_hour, &gone), 0);
	while (duck_worker_stats().started == started)
		sched_yield();
	assert_int_equal(eventfd_write(gone, 1), 0);
	pthread_join(thread, &result);
	assert_int_equal((intptr_t)result, -ECANCELED);
	assert_int_equal(duck_worker_stats().running, 0);
	duck_worker_rest();
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* reaped */
	assert_int_equal(number_of(NULL, 0, "SELECT 1"), 1);
	close(gone);
}

/* One waits for the next question; if it was killed meanwhile, that is answered all the same. */
static void test_one_waits(void **state)
{
	char list[64], children[64] = "";
	FILE *f;

	need();
	assert_int_equal(number_of(NULL, 0, "SELECT 2"), 2);
	snprintf(list, sizeof(list), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(list, "re");
	assert_non_null(f);
	assert_non_null(fgets(children, sizeof(children), f));
	fclose(f);
	assert_int_equal(kill((pid_t)atoi(children), SIGKILL), 0);
	while (waitid(P_PID, (id_t)atoi(children), &(siginfo_t){0}, WEXITED | WNOWAIT) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(number_of(NULL, 0, "SELECT 3"), 3);
	assert_int_equal(number_of(NULL, 0, "SELECT 4"), 4);
	duck_worker_rest();
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_files_are_one_table),
		TEST(test_no_file_at_all),
		TEST(test_refusals),
		TEST(test_a_hint),
		TEST(test_a_lot_of_rows),
		TEST(test_files_that_are_not),
		TEST(test_a_file_that_is_written),
		TEST(test_no_more_than_so_many_at_once),
		TEST(test_nobody_waits_any_more),
		TEST(test_one_waits),
	};

	if (duck_worker_is_meant(argc, argv))
		duck_worker_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
