/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th write or sync of the store fails, once or from then on, for each n until a run ends
 * before it: every event is stored or counted as lost, and the file is sound and says so. */
#include "store_run.h"
#include "store_vfs.h"

#include "store/merge/nodedb_merge.h"

#define EVENTS    300
#define RUNS_MAX  400 /* more writes than a run makes */
#define TRY_ALL   16  /* each of the first, then some: they repeat */
#define TRY_EVERY 13

static void next_fault(long *n)
{
	*n += *n < TRY_ALL ? 1 : TRY_EVERY;
}

static void books_balance(const struct run *run)
{
	for (unsigned s = 1; s <= RUN_SOURCES; s++)
		assert_true(account_balances(&run->books.source[s]));
}

/* Returns whether the fault was met. */
static bool record(struct scratch *s, long fail_write, long fail_sync, int code, bool forever)
{
	struct run run;
	bool met;
	int r;

	scratch_files(s->folder, true);
	store_vfs_set(0, 0, 0, false);
	assert_true(run_start(&run, s->path));
	store_vfs_set(fail_write, fail_sync, code, forever);
	run_push(&run, EVENTS);
	r = run_stop(&run);
	met = atomic_load(&store_vfs.failed) > 0;
	store_vfs_set(0, 0, 0, false);
	books_balance(&run);
	if (!met)
		assert_int_equal(r, 0);
	assert_true(run_file_holds(s->path));
	return met;
}

static void record_all(struct scratch *s, bool write, int code, bool forever)
{
	long n = 1;

	for (; n < RUNS_MAX; next_fault(&n))
		if (!record(s, write ? n : 0, write ? 0 : n, code, forever))
			break;
	assert_true(n > 1);        /* the control: at least one fault was met */
	assert_true(n < RUNS_MAX); /* and a run without one */
}

static void test_a_full_disk_once(void **state)
{
	record_all(*state, true, SQLITE_FULL, false);
}

static void test_a_full_disk_to_the_end(void **state)
{
	record_all(*state, true, SQLITE_FULL, true);
}

static void test_a_write_error_once(void **state)
{
	record_all(*state, true, SQLITE_IOERR_WRITE, false);
}

static void test_a_write_error_to_the_end(void **state)
{
	record_all(*state, true, SQLITE_IOERR_WRITE, true);
}

static void test_a_sync_error_once(void **state)
{
	record_all(*state, false, SQLITE_IOERR_FSYNC, false);
}

static void test_a_sync_error_to_the_end(void **state)
{
	record_all(*state, false, SQLITE_IOERR_FSYNC, true);
}

static struct aggregate minute(int64_t n, uint32_t pid)
{
	struct aggregate a = {.bucket.ns = 60000000000LL * n, .pid = pid, .source = 1, .op = 3};

	sketch_add(&a.sketch, 100, 11);
	return a;
}

/* An aggregate that is refused for itself is lost once, however often its batch is tried. */
static void test_a_refused_aggregate_is_lost_once(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	sql_db *other = NULL;
	struct run run;

	assert_true(run_start(&run, s->path));
	assert_int_equal(sql_open_write(s->path, &other, NULL), 0);
	assert_int_equal(
		sql_exec(other,
			"CREATE UNIQUE INDEX once ON event_aggregates_5s(pid) WHERE pid = 666",
			NULL),
		0);
	assert_int_equal(sql_close(other), 0);
	store_vfs_set(1, 0, SQLITE_FULL, true);
	for (int64_t n = 1; n <= 3; n++) { /* the second and third of them cannot be stored */
		struct aggregate a = minute(n, 666);

		assert_true(store_writer_push_aggregate(run.writer, &a));
		run.counted += a.sketch.count;
	}
	while (atomic_load(&store_vfs.failed) < 5)
		; /* their batch fails for want of space, again and again */
	store_vfs_set(0, 0, 0, false);
	assert_true(store_writer_error(run.writer, &err));
	assert_int_equal(run_stop(&run), 0);
	assert_int_equal(run.books.source[1].aggregated, 11);
	assert_int_equal(account_lost(&run.books.source[1]), 22);
	books_balance(&run);
	assert_true(run_file_holds(s->path));
}

/* ---- merge ---- */

static bool merge(struct scratch *s, long fail_write, int code)
{
	char output[128];
	const char *sources[] = {s->path};
	struct merge_options request = {.sources = sources, .source_count = 1, .output = output};
	struct merge_result result = {0};
	int files = scratch_files(s->folder, false), r;
	bool met;

	snprintf(output, sizeof(output), "%s/merged.db", s->folder);
	store_vfs_set(fail_write, 0, code, false);
	r = nodedb_merge(&request, &result, NULL);
	met = atomic_load(&store_vfs.failed) > 0;
	store_vfs_set(0, 0, 0, false);
	merge_result_done(&result);
	if (r < 0) { /* complete or not there */
		assert_int_equal(scratch_files(s->folder, false), files);
		assert_true(met);
		return met;
	}
	assert_false(met);
	assert_int_equal(scratch_int(output, "SELECT count(*) FROM events"), EVENTS);
	assert_int_equal(
		scratch_int(output, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
		1);
	unlink(output);
	return met;
}

static void test_a_merge_is_whole_or_not_there(void **state)
{
	static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_WRITE};
	struct scratch *s = *state;

	assert_false(record(s, 0, 0, 0, false));
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		long n = 1;

		for (; n < RUNS_MAX; next_fault(&n))
			if (!merge(s, n, codes[i]))
				break;
		assert_true(n > 1 && n < RUNS_MAX);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_full_disk_once),
		TEST(test_a_full_disk_to_the_end),
		TEST(test_a_write_error_once),
		TEST(test_a_write_error_to_the_end),
		TEST(test_a_sync_error_once),
		TEST(test_a_sync_error_to_the_end),
		TEST(test_a_refused_aggregate_is_lost_once),
		TEST(test_a_merge_is_whole_or_not_there),
	};

	return cmocka_run_group_tests(tests, store_vfs_install, NULL);
}
