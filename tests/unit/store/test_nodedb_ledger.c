/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_ledger.c - rows of the ledger come back as they were written, with their stacks; damaged
 * ones are counted; they are in the books of their source. */
#include "store_fixture.h"

#include <time.h>

#include "store/write/writer.h"

/* A row with another value in every field. */
static struct ledger_row row_of(int64_t start_ns, uint32_t tid)
{
	struct ledger_row row = {.start.ns = start_ns,
		.pid = 70,
		.tid = tid,
		.copy_bytes = UINT64_C(1) << 40,
		.launches = UINT32_MAX,
		.waits = 2,
		.copies = 3,
		.allocs = 4,
		.stays = 5,
		.mark = MARK_STAY,
		.waker = WAKER_TASK,
		.stay_line = LEDGER_PIPE,
		.launches_off = 1,
		.stay_ns = 6,
		.stay_wait_ns = 7,
		.waker_pid = 8,
		.waker_tid = 9,
		.stack_hash = UINT64_C(0xfedcba9876543210),
		.waker_comm = "pt_data_worker",
		.comm = "python3"};

	for (uint64_t i = 0; i < LEDGER_LINES; i++) {
		row.ns[i] = 1000 + i;
		row.dur_ns += row.ns[i];
	}
	return row;
}

static void put(struct nodedb *db, const struct ledger_row *row)
{
	struct errinfo err = {0};

	if (nodedb_put_ledger(db, row, &err) < 0)
		fail_msg("%s", err.text);
}

static void read_all(const char *path, const struct nodedb_filter *f, struct nodedb_content *ret)
{
	struct nodedb_filter filter = f ? *f : (struct nodedb_filter){0};
	struct errinfo err = {0};

	filter.ledger = true;
	if (nodedb_read(path, &filter, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static void test_rows_come_back_as_they_were(void **state)
{
	struct scratch *s = *state;
	struct ledger_row late = row_of(2000, 71), early = row_of(1000, 72);
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	early.mark = MARK_WAIT;
	early.stay_line = 0; /* no stay ended it */
	put(db, &late);
	put(db, &early);
	scratch_close(db);
	read_all(s->path, NULL, &c);
	assert_int_equal(c.ledger_count, 2);
	assert_int_equal(c.skipped_rows, 0);
	assert_memory_equal(&c.ledger[0], &early, sizeof(early));
	assert_memory_equal(&c.ledger[1], &late, sizeof(late));
	nodedb_content_done(&c);
	assert_int_equal(nodedb_read(s->path, NULL, &c, NULL), 0); /* not asked for */
	assert_int_equal(c.ledger_count, 0);
	nodedb_content_done(&c);
	/* names that people can use */
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM ledger WHERE stay_line = 'pipe'"
					      " AND run = 1000 AND waker_comm = 'pt_data_worker'"),
		1);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM ledger WHERE stay_line = ''"), 1);
	assert_true(scratch_int(s->path, "SELECT count(*) FROM schema_info WHERE key LIKE 'ledger%'"
					 " AND value LIKE '%blocked: pipe%'") == 1);
}

static void test_selected_by_time_and_not_by_process(void **state)
{
	struct scratch *s = *state;
	struct ledger_row a = row_of(1000, 71), b = row_of(2000, 72);
	struct nodedb_filter f = {
		.scope.from_ns = 1500, .scope.pids = (uint32_t[]){1}, .scope.pid_count = 1};
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	put(db, &a);
	put(db, &b);
	scratch_close(db);
	read_all(s->path, &f, &c);
	assert_int_equal(c.ledger_count, 1);
	assert_int_equal(c.ledger[0].tid, 72);
	nodedb_content_done(&c);
	read_all(s->path, &(struct nodedb_filter){.scope.node = "other"}, &c);
	assert_int_equal(c.ledger_count, 0);
	nodedb_content_done(&c);
	read_all(s->path, &(struct nodedb_filter){.scope.node = "n1"}, &c);
	assert_int_equal(c.ledger_count, 2);
	nodedb_content_done(&c);
}

static void test_stacks_of_the_ledger_are_loaded(void **state)
{
	struct scratch *s = *state;
	struct ledger_row a = row_of(1000, 71), b = row_of(2000, 71), loop = row_of(3000, 71);
	struct event sample = {.start.ns = 1,
		.pid = 70,
		.source = SOURCE_HOST,
		.op = HOST_CPU_SAMPLE,
		.dur_ns = 10101010,
		.stack_hash = 33};
	struct nodedb_filter used = {.stacks = NODEDB_STACKS_USED};
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	a.stack_hash = 11;
	a.stay_ns = 5;
	b.stack_hash = 22;
	b.stay_ns = 50;
	loop.stay_ns = loop.stay_wait_ns = 0;
	loop.mark = MARK_EXECUTE; /* all of its time leads to that call */
	loop.stack_hash = 55;
	put(db, &a);
	put(db, &b);
	put(db, &loop);
	assert_int_equal(nodedb_put_event(db, &sample, NULL), 0);
	scratch_close(db);
	scratch_sql(s->path, "INSERT INTO stack_traces (hash, ips, frames) VALUES"
			     " (11, '', '[{\"s\":\"a\"}]'), (22, '', '[{\"s\":\"b\"}]'),"
			     " (33, '', '[{\"s\":\"c\"}]'), (44, '', '[{\"s\":\"unused\"}]'),"
			     " (55, '', '[{\"s\":\"d\"}]')");
	read_all(s->path, &used, &c);
	assert_int_equal(c.stacks.count, 4);
	assert_non_null(stack_find(&c.stacks, 11));
	assert_non_null(stack_find(&c.stacks, 22));
	assert_non_null(stack_find(&c.stacks, 33));
	assert_non_null(stack_find(&c.stacks, 55));
	nodedb_content_done(&c);
	used.stacks_max = 2; /* the ones with most time */
	read_all(s->path, &used, &c);
	assert_int_equal(c.stacks.count, 2);
	assert_int_equal(c.other_stacks, 2);
	assert_null(stack_find(&c.stacks, 11));
	assert_null(stack_find(&c.stacks, 22));
	nodedb_content_done(&c);
}

static void test_damaged_rows_are_counted(void **state)
{
	static const char *const damages[] = {"duration = 1", /* less than its lines */
		"run = -1", "run = 'x'", "tid = -1", "tid = 4294967296", "mark = 256",
		"timestamp = -1", "stack_hash = 'x'", "comm = x'00'", "launches_off = 2",
		"run = 9223372036854775807, collect = 9223372036854775807"};
	struct scratch *s = *state;
	struct ledger_row good = row_of(1000, 71);
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	for (uint32_t i = 0; i <= ARRAY_SIZE(damages); i++) {
		good.start.ns = 1000 + i;
		put(db, &good);
	}
	scratch_close(db);
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		char sql[128];

		snprintf(sql, sizeof(sql), "UPDATE ledger SET %s WHERE timestamp = %zu", damages[i],
			1000 + i);
		scratch_sql(s->path, sql);
	}
	read_all(s->path, NULL, &c);
	assert_int_equal(c.ledger_count, 1);
	assert_int_equal(c.skipped_rows, ARRAY_SIZE(damages));
	assert_memory_equal(&c.ledger[0], &good, sizeof(good));
	nodedb_content_done(&c);
}

/* A file of another version may have fewer lines, or one more: they add up all the same. */
static void test_other_lines(void **state)
{
	struct scratch *s = *state;
	struct ledger_row row = row_of(1000, 71);
	struct nodedb *db = scratch_open(s->path);
	uint64_t pipe = row.ns[LEDGER_PIPE], blocked = row.ns[LEDGER_BLOCKED];
	struct nodedb_content c;

	put(db, &row);
	scratch_close(db);
	scratch_sql(s->path, "ALTER TABLE ledger RENAME COLUMN pipe TO tube;"
			     "UPDATE ledger SET stay_line = 'tube'");
	read_all(s->path, NULL, &c);
	assert_int_equal(c.ledger_count, 1);
	assert_int_equal(c.ledger[0].ns[LEDGER_PIPE], 0);
	assert_int_equal(c.ledger[0].ns[LEDGER_BLOCKED], blocked + pipe);
	assert_int_equal(c.ledger[0].stay_line, LEDGER_BLOCKED);
	nodedb_content_done(&c);
}

/* The newest are kept. */
static void test_ceiling(void **state)
{
	struct scratch *s = *state;
	struct ledger_row row = row_of(1, 71);
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;
	char sql[512];

	put(db, &row);
	scratch_close(db);
	snprintf(sql, sizeof(sql),
		"WITH RECURSIVE n(v) AS (SELECT 2 UNION ALL SELECT v + 1 FROM n WHERE v < %u)"
		" INSERT INTO ledger (node, timestamp, duration, pid, tid) SELECT 'n1', v, 0, 1, 1"
		" FROM n",
		NODEDB_LEDGER_MAX + 3);
	scratch_sql(s->path, sql);
	read_all(s->path, NULL, &c);
	assert_int_equal(c.ledger_count, NODEDB_LEDGER_MAX);
	assert_int_equal(c.older_ledger, 3);
	assert_int_equal(c.ledger[0].start.ns, 4);
	assert_int_equal(c.ledger[c.ledger_count - 1].start.ns, NODEDB_LEDGER_MAX + 3);
	nodedb_content_done(&c);
}

/* A file of our schema from before there was a ledger is read as it is, and completed for writing. */
static void test_early_files(void **state)
{
	struct scratch *s = *state;
	struct ledger_row row = row_of(1000, 71);
	struct nodedb_content c;
	struct nodedb *db;

	scratch_close(scratch_open(s->path));
	scratch_sql(s->path, "DROP TABLE ledger; DROP TABLE container_samples;"
			     "DELETE FROM schema_info WHERE key LIKE 'ledger%'");
	read_all(s->path, NULL, &c);
	assert_int_equal(c.ledger_count + c.container_count, 0);
	nodedb_content_done(&c);
	db = scratch_open(s->path);
	put(db, &row);
	scratch_close(db);
	read_all(s->path, NULL, &c);
	assert_int_equal(c.ledger_count, 1);
	nodedb_content_done(&c);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM sqlite_schema WHERE name IN"
					      " ('idx_ledger_timestamp', 'container_samples')"),
		2);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM schema_info WHERE key LIKE 'ledger%'"),
		4);
}

static void count_hits(const struct store_writer *w, struct accounting *ret, void *arg)
{
	struct account *a = &ret->source[SOURCE_HOST];

	a->hits = *(const uint64_t *)arg;
	a->stored = store_writer_stored(w, SOURCE_HOST);
	a->lost[LOSS_WRITE_FAILED] = store_writer_failed(w, SOURCE_HOST);
}

static void write_some(const char *path, uint64_t rows, struct account *ret)
{
	struct session session = {.started.ns = 1};
	struct event e = {.start.ns = 5, .pid = 1, .source = SOURCE_HOST, .op = HOST_SCHED_SWITCH};
	struct nodedb *db = scratch_open(path);
	struct store_writer *w = NULL;
	struct nodedb_content c;
	uint64_t hits = rows + 1;

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	assert_int_equal(store_writer_start(db, session.id, NULL, &w, NULL), 0);
	assert_true(store_writer_push(w, &e));
	for (uint64_t i = 0; i < rows; i++) {
		struct ledger_row row = row_of(1000 + (int64_t)i, (uint32_t)i);

		assert_true(store_writer_push_ledger(w, &row));
	}
	assert_int_equal(store_writer_stop(w, count_hits, &hits, (wall_time){9000}, NULL), 0);
	read_all(path, NULL, &c);
	assert_true(c.has_books);
	*ret = c.books.source[SOURCE_HOST];
	assert_int_equal(ret->hits, hits);
	assert_true(account_balances(ret));
	nodedb_content_done(&c);
}

static void test_the_books_count_them(void **state)
{
	struct scratch *s = *state;
	struct account a;

	write_some(s->path, 1009, &a);
	assert_int_equal(a.stored, 1010);
	assert_int_equal(account_lost(&a), 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM ledger"), 1009);
}

/* A burst is not left to wait for the end of the batch's time. */
static void test_many_rows_wake_the_writer(void **state)
{
	struct scratch *s = *state;
	struct store_writer_config config = {.batch_ms = 600000};
	struct session session = {.started.ns = 1};
	struct nodedb *db = scratch_open(s->path);
	struct timespec pause = {.tv_nsec = 10000000};
	struct ledger_row row = row_of(1000, 1);
	struct store_writer *w = NULL;

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	assert_int_equal(store_writer_start(db, session.id, &config, &w, NULL), 0);
	for (int i = 0; i < 5000; i++) /* 3 MB */
		assert_true(store_writer_push_ledger(w, &row));
	for (int i = 0; i < 2000 && !store_writer_stored(w, SOURCE_HOST); i++)
		nanosleep(&pause, NULL);
	assert_true(store_writer_stored(w, SOURCE_HOST) > 0);
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, NULL), 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM ledger"), 5000);
}

static void test_refused_rows_are_lost(void **state)
{
	struct scratch *s = *state;
	struct account a;

	scratch_close(scratch_open(s->path));
	scratch_sql(s->path, "CREATE UNIQUE INDEX once ON ledger(waker_tid)"); /* all have 9 */
	write_some(s->path, 100, &a);
	assert_int_equal(a.stored, 2);
	assert_int_equal(a.lost[LOSS_WRITE_FAILED], 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows_come_back_as_they_were),
		TEST(test_selected_by_time_and_not_by_process),
		TEST(test_stacks_of_the_ledger_are_loaded),
		TEST(test_damaged_rows_are_counted),
		TEST(test_other_lines),
		TEST(test_ceiling),
		TEST(test_early_files),
		TEST(test_the_books_count_them),
		TEST(test_many_rows_wake_the_writer),
		TEST(test_refused_rows_are_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
