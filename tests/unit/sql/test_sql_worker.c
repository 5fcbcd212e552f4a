/* SPDX-License-Identifier: Apache-2.0 */
/* The process that runs a stranger's SQL, and the words between it and its asker: what a worker
 * that was taken over could send is refused. The worker is this program again (see main). */
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sql/sql_worker.h"
#include "sql/sql_worker_wire.h"
#include "store_fixture.h"

#define ENDLESS                                                                                    \
	"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"

static void make(const char *path)
{
	scratch_sql(path, "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, x'00ff'),"
			  " (NULL, 2.5); INSERT INTO t VALUES ('zwei' || char(0) || 'drei', '')");
}

static void test_an_answer(void **state)
{
	struct scratch *s = *state;
	_cleanup_buf_ struct buf hint = BUF_INIT(1000);
	struct sql_guard_rules rules = {.rows_max = 10};
	struct errinfo e = {0};
	struct sql_table t;

	make(s->path);
	if (sql_worker_ask(s->path, "SELECT a, b FROM t", &rules, &t, &hint, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(t.column_count == 2 && t.row_count == 4 && !t.truncated);
	assert_string_equal(sql_table_name(&t, 1), "b");
	assert_int_equal(sql_table_cell(&t, 0, 0)->i, 1);
	assert_int_equal(sql_table_cell(&t, 1, 1)->type, SQL_BLOB);
	assert_memory_equal(sql_table_bytes(&t, sql_table_cell(&t, 1, 1)), "\0\xff", 2);
	assert_int_equal(sql_table_cell(&t, 2, 0)->type, SQL_NULL);
	assert_true(sql_table_cell(&t, 2, 1)->d == 2.5);
	assert_int_equal(sql_table_cell(&t, 3, 0)->len, 9);
	assert_memory_equal(sql_table_bytes(&t, sql_table_cell(&t, 3, 0)), "zwei\0drei", 9);
	sql_table_done(&t);
	rules.rows_max = 2;
	assert_int_equal(sql_worker_ask(s->path, "SELECT * FROM t", &rules, &t, NULL, &e), 0);
	assert_true(t.row_count == 2 && t.truncated);
	sql_table_done(&t);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *sql;
		int err;
	} cases[] = {{"DELETE FROM t", -EPERM}, {"SELECT nope FROM t", -EINVAL},
		{"SELECT 1; SELECT 2", -EINVAL}, {"", -EINVAL},
		{"ATTACH '/etc/passwd' AS x", -EPERM}, {"SELECT load_extension('x')", -EPERM},
		{ENDLESS, -ETIMEDOUT}};
	struct scratch *s = *state;
	struct sql_guard_rules rules = {.timeout_ns = 200 * NS_PER_MS};
	struct sql_table t;

	make(s->path);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct errinfo e = {0};
		int r = sql_worker_ask(s->path, cases[i].sql, &rules, &t, NULL, &e);

		if (r != cases[i].err || !e.text[0])
			fail_msg("%s: %d %s", cases[i].sql, r, e.text);
	}
	assert_int_equal(
		sql_worker_ask("/nowhere/x.db", "SELECT 1", &rules, &t, NULL, NULL), -ENOENT);
	scratch_write(s->path, "this is no database, whatever it says", 37);
	assert_int_equal(
		sql_worker_ask(s->path, "SELECT 1 FROM t", &rules, &t, NULL, NULL), -EBADMSG);
	assert_int_equal(sql_worker_stats().running, 0);
	assert_true(sql_worker_stats().started >= ARRAY_SIZE(cases));
}

static void test_a_hint(void **state)
{
	struct scratch *s = *state;
	_cleanup_buf_ struct buf hint = BUF_INIT(1000);
	struct sql_guard_rules rules = {0};
	struct sql_table t;

	make(s->path);
	assert_int_equal(
		sql_worker_ask(s->path, "SELECT nope FROM t", &rules, &t, &hint, NULL), -EINVAL);
	assert_string_equal(buf_str(&hint), "t has a, b");
}

/* A live file: another process holds it open and has written into its log. */
static void test_a_file_that_is_written(void **state)
{
	struct scratch *s = *state;
	struct sql_guard_rules rules = {0};
	struct errinfo e = {0};
	struct sql_table t;
	sql_db *db = NULL;

	make(s->path);
	assert_int_equal(sql_open_write(s->path, &db, &e), 0);
	assert_int_equal(sql_exec(db, "INSERT INTO t VALUES (5, 6)", &e), 0);
	if (sql_worker_ask(s->path, "SELECT count(*) FROM t", &rules, &t, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(sql_table_cell(&t, 0, 0)->i, 5);
	sql_table_done(&t);
	assert_int_equal(sql_close(db), 0);
}

static void *ask_slowly(void *arg)
{
	struct sql_guard_rules rules = {.timeout_ns = 300 * NS_PER_MS};
	struct sql_table t;

	return (void *)(intptr_t)sql_worker_ask(arg, ENDLESS, &rules, &t, NULL, NULL);
}

static void test_no_more_than_so_many_at_once(void **state)
{
	struct scratch *s = *state;
	pthread_t threads[SQL_WORKER_AT_ONCE + 2];
	void *result;
	int late = 0;

	make(s->path);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_slowly, s->path), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		pthread_join(threads[i], &result);
		assert_true((intptr_t)result == -ETIMEDOUT || (intptr_t)result == -EBUSY);
		late += (intptr_t)result == -EBUSY || (intptr_t)result == -ETIMEDOUT;
		assert_true(sql_worker_stats().running <= SQL_WORKER_AT_ONCE);
	}
	assert_int_equal(late, ARRAY_SIZE(threads));
	assert_int_equal(sql_worker_stats().running, 0);
}

struct patient { /* somebody who would wait for an hour, were he not gone */
	const char *path;
	int gone;
};

static void *ask_for_an_hour(void *arg)
{
	struct sql_guard_rules rules = {.timeout_ns = 3600 * NS_PER_S};
	const struct patient *p = arg;
	struct errinfo e = {0};
	struct sql_table t;
	int r;

	sql_worker_watch(p->gone);
	r = sql_worker_ask(p->path, ENDLESS, &rules, &t, NULL, &e);
	sql_worker_watch(-1);
	if (r == -ECANCELED)
		assert_non_null(strstr(e.text, "cancelled"));
	return (void *)(intptr_t)r;
}

/* The control is the thread's next statement, which is not watched any more. */
static void test_nobody_waits_any_more(void **state)
{
	struct scratch *s = *state;
	struct patient p = {.path = s->path, .gone = eventfd(0, EFD_CLOEXEC)};
	uint64_t started = sql_worker_stats().started;
	struct sql_guard_rules rules = {0};
	struct sql_table t;
	pthread_t thread;
	void *result;

	make(s->path);
	assert_true(p.gone >= 0);
	assert_int_equal(pthread_create(&thread, NULL, ask_for_an_hour, &p), 0);
	while (sql_worker_stats().started == started)
		sched_yield();
	assert_int_equal(sql_worker_stats().running, 1);
	assert_int_equal(eventfd_write(p.gone, 1), 0);
	pthread_join(thread, &result);
	assert_int_equal((intptr_t)result, -ECANCELED);
	assert_int_equal(sql_worker_stats().running, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* reaped */
	assert_int_equal(sql_worker_ask(s->path, "SELECT 1", &rules, &t, NULL, NULL), 0);
	sql_table_done(&t);
	close(p.gone);
}

/* ---- what a worker could say ---- */

struct lie {
	const char *name;
	void (*spoil)(struct sql_wire_answer *h, size_t *names, struct sql_cell *cells, char *text);
};

static void no_magic(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	h->magic = 1;
}
static void many_rows(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	h->row_count = UINT64_MAX / 24;
}
static void many_columns(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	h->column_count = UINT32_MAX;
}
static void much_text(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	h->text_len = UINT64_MAX;
}
static void long_sentence(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	h->sentence_len = 600;
}
static void long_hint(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	h->hint_len = 1 << 20;
}
static void good_error(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	h->err = 5;
}
static void far_name(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	n[0] = 1000;
}
static void far_cell(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	c[0].offset = SIZE_MAX - 1;
}
static void long_cell(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	c[0].len = SIZE_MAX;
}
static void bad_type(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	c[0].type = (enum sql_type)77;
}
static void no_end(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
	t[3] = 'x';
}
static void truth(struct sql_wire_answer *h, size_t *n, struct sql_cell *c, char *t)
{
}

static int tell(const struct lie *lie, struct sql_wire_result *res)
{
	struct sql_guard_rules rules = {.rows_max = 10, .bytes_max = 4096};
	struct sql_wire_answer h = {
		.magic = SQL_WIRE_MAGIC, .column_count = 1, .row_count = 1, .text_len = 4};
	struct sql_cell cells[1] = {{.type = SQL_TEXT, .offset = 2, .len = 1}};
	size_t names[1] = {0};
	char text[4] = "a\0b";
	int pair[2], r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	lie->spoil(&h, names, cells, text);
	assert_int_equal(send(pair[1], &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(send(pair[1], names, sizeof(names), 0), sizeof(names));
	assert_int_equal(send(pair[1], cells, sizeof(cells), 0), sizeof(cells));
	assert_int_equal(send(pair[1], text, sizeof(text), 0), sizeof(text));
	close(pair[1]);
	r = sql_wire_receive(
		&(struct sql_wire_wait){pair[0], -1, mono_now().ns + 10 * NS_PER_S}, &rules, res);
	close(pair[0]);
	return r;
}

static void test_lies(void **state)
{
	static const struct lie lies[] = {{"magic", no_magic}, {"rows", many_rows},
		{"columns", many_columns}, {"text", much_text}, {"sentence", long_sentence},
		{"hint", long_hint}, {"error", good_error}, {"name", far_name}, {"cell", far_cell},
		{"length", long_cell}, {"type", bad_type}, {"end", no_end}};
	struct sql_wire_result res = {0};

	assert_int_equal(tell(&(struct lie){"truth", truth}, &res), 0); /* control */
	assert_string_equal(sql_table_bytes(&res.table, sql_table_cell(&res.table, 0, 0)), "b");
	sql_table_done(&res.table);
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		res = (struct sql_wire_result){0};
		if (tell(&lies[i], &res) != -EPROTO)
			fail_msg("%s was believed", lies[i].name);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_answer),
		TEST(test_refusals),
		TEST(test_a_hint),
		TEST(test_a_file_that_is_written),
		TEST(test_no_more_than_so_many_at_once),
		TEST(test_nobody_waits_any_more),
		cmocka_unit_test(test_lies),
	};

	if (sql_worker_is_meant(argc, argv))
		sql_worker_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
