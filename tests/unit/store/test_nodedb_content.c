/* SPDX-License-Identifier: Apache-2.0 */
#include "published_fixture.h"
#include "store_fixture.h"

static void test_published_samples_and_chains(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct errinfo err = {0};
	struct nodedb_filter f = {.scope.from_ns = 15, .scope.to_ns = 25};

	scratch_sql(s->path, PUBLISHED_10
		"INSERT INTO system_snapshots(timestamp,cpu_pct,mem_pct,mem_avail,swap_mb,load_avg)"
		" VALUES (20, 60.3, 13.9, 100, 0, 1.56), (10, 1, 2, 3, 4, 5), (30, 'x', 1, 1, 1, "
		"1);"
		"INSERT INTO sessions(started_at, mem_total, node) VALUES (1, 15785, 'a'), (2, 1, "
		"'b'),"
		" (3, 1, 'a');"
		"INSERT INTO causal_chains VALUES ('a:2', 20, 'HIGH', 's', 'r', 'e', "
		"'[\"one\",\"two\"]'),"
		" ('a:1', 10, 'MEDIUM', 's', 'r', 'e', 'not json'), ('a:3', 'x', 'LOW', '', '', "
		"'', '')");
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_string_equal(c.node, "a,b");
	assert_int_equal(c.sample_count, 2);
	assert_int_equal(c.samples[0].time.ns, 10);
	assert_true(c.samples[1].cpu_pct == 60.3);
	assert_int_equal(c.samples[1].mem_total_mb, 15785);
	assert_int_equal(c.chain_count, 2);
	assert_string_equal(c.chains[0].id, "a:1");
	assert_string_equal(c.chains[0].fixes, "");
	assert_string_equal(c.chains[1].fixes, "one\ntwo");
	assert_int_equal(c.skipped_rows, 2);
	nodedb_content_done(&c);
	assert_int_equal(nodedb_read(s->path, &f, &c, &err), 0);
	assert_int_equal(c.sample_count, 1);
	assert_int_equal(c.chain_count, 1);
	nodedb_content_done(&c);
}

static void test_published_totals_come_from_minutes(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct errinfo err = {0};

	scratch_sql(s->path, PUBLISHED_8
		"CREATE TABLE event_aggregates(bucket INTEGER, source INTEGER, op INTEGER, pid "
		"INTEGER,"
		" count INTEGER); INSERT INTO event_aggregates VALUES (0, 1, 3, 7, 60000),"
		" (60000000000, 1, 3, 8, 4410)");
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.total_calls, 64410);
	assert_int_equal(c.aggregate_count, 0);
	nodedb_content_done(&c);
}

static void test_damaged_aggregates_and_losses_are_counted(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct errinfo err = {0};
	struct aggregate a = {.bucket.ns = 5000000000, .pid = 7, .source = 1, .op = 3};
	struct nodedb *db = scratch_open(s->path);

	sketch_add(&a.sketch, 5, 3);
	assert_int_equal(nodedb_add_aggregate(db, false, &a, &err), 0);
	scratch_close(db);
	scratch_sql(s->path,
		"INSERT INTO event_aggregates_5s(bucket,source,op,pid,count,sketch) VALUES"
		" (1, 1, 3, 1, 5, x'ffff'), (1, 1, 3, 2, 5, NULL), (1, 99, 3, 3, 0, x'01'),"
		" (1, 1, 3, 4, -5, x'01'), (1, 1, 3, 5, 9223372036854775807, x'01');"
		"INSERT INTO losses VALUES (1, 'n1', 1, 'gremlins', 4), (1, 'n1', 77, 'ring_full', "
		"1)");
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.aggregate_count, 1);
	assert_int_equal(c.aggregates[0].sketch.count, 3);
	assert_int_equal(c.skipped_rows, 7);
	nodedb_content_done(&c);
}

static void test_aggregates_by_range(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);

	for (int i = 0; i < 10; i++) {
		struct aggregate a = {.bucket.ns = i * (int64_t)NODEDB_BUCKET_FINE,
			.pid = 7,
			.source = 1,
			.op = 3};

		sketch_add(&a.sketch, 5, 1);
		assert_int_equal(nodedb_add_aggregate(db, false, &a, &err), 0);
	}
	scratch_close(db);
	/* From the middle of bucket 2 to the middle of bucket 4: all three have calls of it. */
	assert_int_equal(nodedb_read(s->path,
				 &(struct nodedb_filter){
					 .scope.from_ns = 12000000000, .scope.to_ns = 22000000000},
				 &c, &err),
		0);
	assert_int_equal(c.aggregate_count, 3);
	assert_int_equal(c.aggregates[0].bucket.ns, 10000000000);
	assert_int_equal(c.total_calls, 3);
	nodedb_content_done(&c);
	/* A time that begins with a bucket has no moment in common with the one before it. */
	assert_int_equal(nodedb_read(s->path,
				 &(struct nodedb_filter){
					 .scope.from_ns = 15000000000, .scope.to_ns = 19999999999},
				 &c, &err),
		0);
	assert_int_equal(c.aggregate_count, 1);
	assert_int_equal(c.aggregates[0].bucket.ns, 15000000000);
	nodedb_content_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_published_samples_and_chains),
		TEST(test_published_totals_come_from_minutes),
		TEST(test_damaged_aggregates_and_losses_are_counted),
		TEST(test_aggregates_by_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
