/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_slice.c - rows as the time line takes them, and the search in them: what is found, and when
 * it says that there may be more. */
#include "store_fixture.h"

#include "store/read/nodedb_slice.h"
#include "store/read/nodedb_snapshot.h"

#define T0    INT64_C(1700000000000000000)
#define MS    INT64_C(1000000)
#define CALLS 20

/* CALLS launches, a millisecond apart; every fourth is a synchronisation. */
static void make(const char *path)
{
	struct nodedb *db = scratch_open(path);

	for (int i = 0; i < CALLS; i++) {
		struct event e = {.start.ns = T0 + i * MS,
			.dur_ns = 1000,
			.pid = 77 + (uint32_t)(i % 2),
			.tid = 77,
			.source = SOURCE_CUDA,
			.op = i % 4 ? CUDA_LAUNCH : CUDA_STREAM_SYNC,
			.weight = 1,
			.stack_hash = i < 2 ? 5 : 0,
			.comm = "python3"};

		assert_int_equal(nodedb_put_event(db, &e, NULL), 0);
	}
	scratch_close(db);
	scratch_sql(path, "INSERT OR REPLACE INTO stack_traces(hash, ips, frames) "
			  "VALUES(5, '', '[{\"symbol\":\"load_50%_batch\"}]')");
}

struct found {
	struct nodedb_search what;
	struct nodedb_slices slices;
	int64_t times[CALLS];
	size_t count;
	uint64_t skipped;
	bool truncated;
	int stop; /* what the callback returns */
};

static int take(void *arg, const struct nodedb_slice *s)
{
	struct found *f = arg;

	assert_true(f->count < CALLS);
	f->times[f->count++] = s->start_ns;
	return f->stop;
}

static int search(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct found *f = arg;

	f->count = 0;
	return nodedb_snapshot_search(l, &f->what, take, f, &f->truncated, reterr);
}

static int slices(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct found *f = arg;

	f->count = 0;
	return nodedb_snapshot_slices(l, &f->slices, take, f, &f->skipped, reterr);
}

static struct found find(const char *path, size_t limit, size_t looked_at)
{
	struct found f = {.what = {.frame = "", .limit = limit, .looked_at = looked_at}};

	f.what.ops[SOURCE_CUDA] = UINT64_C(1) << CUDA_STREAM_SYNC;
	assert_int_equal(nodedb_snapshot_read(path, search, &f, NULL), 0);
	return f;
}

static void test_all_is_found(void **state)
{
	struct scratch *s = *state;
	struct found f;

	make(s->path);
	f = find(s->path, 100, 1000);
	assert_int_equal(f.count, 5);
	assert_int_equal(f.times[0], T0 + 16 * MS); /* the newest first */
	assert_int_equal(f.times[4], T0);
	assert_false(f.truncated);
	/* As many as there are, and as many as are looked at: nothing is left out. */
	f = find(s->path, 5, CALLS);
	assert_int_equal(f.count, 5);
	assert_false(f.truncated);
}

static void test_more_than_the_limit(void **state)
{
	struct scratch *s = *state;
	struct found f;

	make(s->path);
	f = find(s->path, 4, 1000);
	assert_int_equal(f.count, 4);
	assert_int_equal(f.times[3], T0 + 4 * MS);
	assert_true(f.truncated);
}

static void test_older_rows_were_not_looked_at(void **state)
{
	struct scratch *s = *state;
	struct found f;

	make(s->path);
	f = find(s->path, 100, CALLS - 1); /* all but the first, which is one */
	assert_int_equal(f.count, 4);
	assert_true(f.truncated);
	f = find(s->path, 100, 2); /* none is among the newest two */
	assert_int_equal(f.count, 0);
	assert_true(f.truncated);
}

/* What is left out counts within the scope: rows before it are nobody's. */
static void test_within_a_scope(void **state)
{
	struct scratch *s = *state;
	struct found f = {.what = {.frame = "", .limit = 10, .looked_at = 4}};
	uint32_t pid = 77;

	make(s->path);
	f.what.ops[SOURCE_CUDA] = UINT64_C(1) << CUDA_STREAM_SYNC;
	f.what.scope = (struct scope){.from_ns = T0 + 16 * MS};
	assert_int_equal(nodedb_snapshot_read(s->path, search, &f, NULL), 0);
	assert_int_equal(f.count, 1);
	assert_false(f.truncated);
	f.what.scope = (struct scope){.pids = &pid, .pid_count = 1, .from_ns = T0 + 12 * MS};
	assert_int_equal(nodedb_snapshot_read(s->path, search, &f, NULL), 0);
	assert_int_equal(f.count, 2);
	assert_false(f.truncated);
	f.what.looked_at = 3; /* of four of this process */
	assert_int_equal(nodedb_snapshot_read(s->path, search, &f, NULL), 0);
	assert_int_equal(f.count, 1);
	assert_true(f.truncated);
}

/* % and _ are letters of a name here. */
static void test_by_a_frame(void **state)
{
	static const struct {
		const char *text;
		size_t count;
	} cases[] = {
		{"load_50%_batch", 2}, {"50%", 2}, {"load%batch", 0}, {"loadx50", 0}, {"\\", 0}};
	struct scratch *s = *state;

	make(s->path);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct found f = {.what = {.frame = cases[i].text, .limit = 10, .looked_at = 100}};

		assert_int_equal(nodedb_snapshot_read(s->path, search, &f, NULL), 0);
		assert_int_equal(f.count, cases[i].count);
		assert_false(f.truncated);
	}
}

static void test_slices_by_time_row_and_place(void **state)
{
	static const int64_t some[] = {2, 3, 999};
	struct scratch *s = *state;
	struct found f = {.slices = {.from_ns = T0 + 3 * MS, .to_ns = T0 + 5 * MS}};

	make(s->path);
	assert_int_equal(nodedb_snapshot_read(s->path, slices, &f, NULL), 0);
	assert_int_equal(f.count, 3);
	assert_int_equal(f.times[0], T0 + 3 * MS);
	f.slices = (struct nodedb_slices){.after_row = CALLS - 2};
	assert_int_equal(nodedb_snapshot_read(s->path, slices, &f, NULL), 0);
	assert_int_equal(f.count, 2);
	f.slices = (struct nodedb_slices){.rows = some, .row_count = ARRAY_SIZE(some)};
	assert_int_equal(nodedb_snapshot_read(s->path, slices, &f, NULL), 0);
	assert_int_equal(f.count, 2);
	f.slices = (struct nodedb_slices){0};
	f.stop = -ECANCELED;
	assert_int_equal(nodedb_snapshot_read(s->path, slices, &f, NULL), -ECANCELED);
	assert_int_equal(f.count, 1);
}

/* The same rows make sense to those who read some columns as to those who read all. */
static void test_rows_that_make_no_sense(void **state)
{
	static const char *const wrong[] = {"timestamp = 0", "duration = -1", "pid = 4294967296",
		"source = 99", "op = 9999", "flags = 65536", "weight = -1", "peer_pid = -5",
		"tid = 'x'"};
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
		struct nodedb_filter all = {0};
		struct found f = {0};
		char sql[128];

		unlink(s->path);
		make(s->path);
		snprintf(sql, sizeof(sql), "UPDATE events SET %s WHERE rowid = 3", wrong[i]);
		scratch_sql(s->path, sql);
		assert_int_equal(nodedb_snapshot_read(s->path, slices, &f, NULL), 0);
		assert_int_equal(f.count, CALLS - 1);
		assert_int_equal(f.skipped, 1);
		assert_int_equal(nodedb_read(s->path, &all, &c, NULL), 0);
		assert_int_equal(c.event_count, CALLS - 1);
		assert_int_equal(c.skipped_rows, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_is_found),
		TEST(test_more_than_the_limit),
		TEST(test_older_rows_were_not_looked_at),
		TEST(test_within_a_scope),
		TEST(test_by_a_frame),
		TEST(test_slices_by_time_row_and_place),
		TEST(test_rows_that_make_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
