/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <math.h>

static struct aggregate aggregate_of(uint64_t a, uint64_t b)
{
	struct aggregate g = {.bucket.ns = 5000000000,
		.pid = 7,
		.source = SOURCE_CUDA,
		.op = CUDA_MEMCPY,
		.stored = 1,
		.sum_arg0 = 100};

	sketch_add(&g.sketch, a, 1);
	sketch_add(&g.sketch, b, 1);
	return g;
}

static void test_aggregates_add_up_across_runs(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct errinfo err = {0};
	struct sketch expected = {0};

	for (int run = 0; run < 2; run++) {
		struct aggregate one = aggregate_of(1000, 9000), two = aggregate_of(500, 100000);
		struct nodedb *db = scratch_open(s->path);

		assert_int_equal(nodedb_add_aggregate(db, false, &one, &err), 0);
		assert_int_equal(nodedb_add_aggregate(db, false, &two, &err), 0);
		assert_int_equal(nodedb_add_aggregate(db, true, &one, &err), 0);
		two.flags = WIRE_NESTED; /* a row of its own */
		assert_int_equal(nodedb_add_aggregate(db, false, &two, &err), 0);
		sketch_merge(&expected, &one.sketch);
		sketch_merge(&expected, &two.sketch);
		scratch_close(db);
	}
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.skipped_rows, 0);
	assert_int_equal(c.aggregate_count, 2);
	assert_int_equal(c.total_calls, 8); /* 4 more are inside others */
	assert_int_equal(c.aggregates[0].flags, 0);
	assert_int_equal(c.aggregates[0].stored, 4);
	assert_int_equal(c.aggregates[0].sum_arg0, 400);
	assert_memory_equal(&c.aggregates[0].sketch, &expected, sizeof(expected));
	assert_int_equal(c.aggregates[1].flags, WIRE_NESTED);
	assert_int_equal(c.aggregates[1].sketch.count, 4);
	assert_int_equal(c.aggregates[1].sketch.min, 500);
	assert_int_equal(c.aggregates[1].sketch.max, 100000);
	nodedb_content_done(&c);
	assert_int_equal(scratch_int(s->path, "SELECT sum(count) FROM event_aggregates"), 4);
}

static void test_aggregates_without_calls_and_beyond_the_range(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct aggregate none = {.bucket.ns = 5000000000, .pid = 7, .source = SOURCE_CUDA, .op = 3};
	struct aggregate some = none;
	struct nodedb *db = scratch_open(s->path);

	sketch_add(&some.sketch, 700, 2);
	some.sum_arg0 = UINT64_MAX; /* sums stop at the largest integer */
	assert_int_equal(nodedb_add_aggregate(db, false, &none, &err), 0);
	assert_int_equal(nodedb_add_aggregate(db, false, &some, &err), 0);
	assert_int_equal(nodedb_add_aggregate(db, false, &none, &err), 0);
	assert_int_equal(nodedb_add_aggregate(db, false, &some, &err), 0);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT min_dur FROM event_aggregates_5s"), 700);
	assert_int_equal(scratch_int(s->path, "SELECT count FROM event_aggregates_5s"), 4);
	assert_int_equal(scratch_int(s->path, "SELECT typeof(sum_arg0) = 'integer' AND sum_arg0 ="
					      " 9223372036854775807 FROM event_aggregates_5s"),
		1);
}

static void test_samples(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb_content c;
	struct host_sample a = {.time.ns = 20,
		.cpu_pct = 12.5,
		.mem_pct = 50,
		.mem_avail_mb = 100,
		.mem_total_mb = 200,
		.swap_mb = 3,
		.load1 = 0.25};
	struct host_sample b = a;
	struct nodedb *db = scratch_open(s->path);

	b.time.ns = 10;
	assert_int_equal(nodedb_put(db, &a, &err), 0);
	assert_int_equal(nodedb_put(db, &b, &err), 0);
	a.cpu_pct = 99;
	assert_int_equal(nodedb_put(db, &a, &err), 0); /* the same moment again */
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.sample_count, 2);
	assert_memory_equal(&c.samples[0], &b, sizeof(b));
	assert_memory_equal(&c.samples[1], &a, sizeof(a));
	nodedb_content_done(&c);
}

static void test_books_are_replaced_not_added(void **state)
{
	struct scratch *s = *state;
	struct session session = {.started.ns = 1};
	struct accounting books = {0};
	struct nodedb_content c;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);

	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	books.source[SOURCE_CUDA] = (struct account){.hits = 1, .stored = 1};
	assert_int_equal(nodedb_put_accounting(db, session.id, &books, &err), 0);
	books.source[SOURCE_CUDA] = (struct account){.hits = 10, .stored = 4, .aggregated = 3};
	books.source[SOURCE_CUDA].lost[LOSS_RING_FULL] = 2;
	books.source[SOURCE_CUDA].lost[LOSS_AT_STOP] = 1;
	assert_int_equal(nodedb_put_accounting(db, session.id, &books, &err), 0);
	assert_int_equal(nodedb_session_end(db, session.id, (wall_time){2}, &err), 0);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_true(c.has_books);
	assert_memory_equal(&c.books, &books, sizeof(books));
	assert_true(account_balances(&c.books.source[SOURCE_CUDA]));
	nodedb_content_done(&c);
	assert_int_equal(scratch_int(s->path, "SELECT lost FROM accounting WHERE source = 1"), 3);
	assert_int_equal(
		scratch_int(s->path, "SELECT count FROM losses WHERE reason = 'ring_full'"), 2);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM losses"), 2);

	/* A second session without books, as after a kill: the sum is no longer the whole. */
	db = scratch_open(s->path);
	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_false(c.has_books);
	nodedb_content_done(&c);
}

static void test_incidents(void **state)
{
	struct scratch *s = *state;
	struct incident i = {
		.id = "tail-high-cudaLaunchKernel-7",
		.severity = SEVERITY_HIGH,
		.pid = 7,
		.comm = "py\"\xff",
		.source = SOURCE_CUDA,
		.op = CUDA_LAUNCH,
		.first.ns = 100,
		.last.ns = 200,
		.calls = 50,
		.slow_calls = 5,
		.p50_ns = 2000,
		.p99_ns = 9000,
		.tail_ratio = 4.5,
		.explained = NAN, /* must not break the row */
		.confidence = 0.9,
		.cause_count = 1,
		.evidence = {3},
		.evidence_count = 1,
		.summary = "slow",
		.root_cause = "stress took the CPU",
		.fixes = {"pin it", "nice it"},
		.fix_count = 2,
		.evidence_sql = "SELECT 1",
	};
	struct nodedb_content c;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	char *text;

	assert_int_equal(nodedb_put_incident(db, &i, (wall_time){300}, &err), 0);
	i.first.ns = 150;
	i.last.ns = 400;
	i.slow_calls = 9;
	i.resolved.ns = 450;
	assert_int_equal(nodedb_put_incident(db, &i, (wall_time){500}, &err), 0);
	snprintf(i.id, sizeof(i.id), "n1:other"); /* has the node already */
	assert_int_equal(nodedb_put_incident(db, &i, (wall_time){600}, &err), 0);
	scratch_close(db);
	text = scratch_text(s->path,
		"SELECT id || '|' || first_seen || '|' || last_seen || '|' ||"
		" count || '|' || detected_at || '|' || resolved_at || '|' || severity || '|' ||"
		" evidence || '|' || json_valid(causes) FROM incidents"
		" WHERE id LIKE '%tail%'");
	assert_string_equal(
		text, "n1:tail-high-cudaLaunchKernel-7|100|400|9|300|450|HIGH|[\"n1:3\"]|1");
	free(text);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM incidents WHERE id = 'n1:other'"), 1);
	text = scratch_text(s->path, "SELECT cuda_op || '|' || cuda_p99_us || '|' || cuda_p50_us ||"
				     " '|' || tail_ratio || '|' || recommendations || '|' || node"
				     " FROM causal_chains WHERE id LIKE '%tail%'");
	assert_string_equal(text, "cudaLaunchKernel|9|2|4.5|[\"pin it\",\"nice it\"]|n1");
	free(text);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.chain_count, 2);
	assert_string_equal(c.chains[0].id, "n1:tail-high-cudaLaunchKernel-7");
	assert_int_equal(c.chains[0].detected_ns, 300);
	assert_string_equal(c.chains[0].severity, "HIGH");
	assert_string_equal(c.chains[0].root_cause, "stress took the CPU");
	assert_string_equal(c.chains[0].fixes, "pin it\nnice it");
	nodedb_content_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_aggregates_add_up_across_runs),
		TEST(test_aggregates_without_calls_and_beyond_the_range),
		TEST(test_samples),
		TEST(test_books_are_replaced_not_added),
		TEST(test_incidents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
