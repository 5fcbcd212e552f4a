/* SPDX-License-Identifier: Apache-2.0 */
/* test_lags.c - the rank that is late is found in every collective, with its lag, through clocks that
 * are wrong; in whatever order calls come. */
#include "calls_fixture.h"

/* Which rank was last in each collective, and nothing about the others. */
static void test_every_collective(void **state)
{
	const int collectives = 10000;
	struct calls *c = calls_made();
	int *truth = calloc((size_t)collectives, sizeof(*truth));
	struct collective_view v;
	struct worker_view w;
	int right = 0, found = 0;
	size_t cursor = 0;
	struct job j;

	job_init(&j, 16, 2);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < collectives; i++) {
		truth[i] = (int)(job_random(&j) % 16);
		job_step(&j, 1 * MS, truth[i], (int64_t)(2 + job_random(&j) % 30) * MS / 10 + MS);
		if (i % 50 == 49) {
			job_push(&j, c);
			calls_tick(c, j.now_ns + 2 * MS);
		}
	}
	while (calls_collective_next(c, &cursor, &v)) {
		size_t k = 0;

		while (calls_worker_next(c, &k, &w) && w.worker != v.last_worker)
			;
		right += w.world_rank == truth[v.seq];
		found++;
	}
	assert_int_equal(found, collectives);
	assert_int_equal(right, collectives);
	assert_int_equal(calls_stats(c).taken, 16 * collectives);
	assert_int_equal(calls_stats(c).unmatched, 0);
	/* each is counted for the rank that was late and for nobody else */
	for (int rank = 0; rank < 16; rank++) {
		uint64_t expected = 0;

		for (int i = 0; i < collectives; i++)
			expected += truth[i] == rank;
		assert_true(worker_of_rank(c, rank, &w));
		assert_int_equal(w.last_count, expected);
		assert_int_equal(w.calls, collectives);
	}
	free(truth);
	job_done(&j);
	calls_free(c);
}

static void test_rank_41_of_64(void **state)
{
	struct calls *c = calls_made();
	struct worker_view w;
	struct job j;

	job_init(&j, 64, 8);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < 50; i++)
		job_step(&j, 400 * MS, -1, 0);
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	assert_false(calls_is_late(c));
	job_step(&j, 400 * MS, 41, 80 * MS);
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	assert_true(calls_is_late(c)); /* with the first late one */
	for (int i = 0; i < 49; i++)
		job_step(&j, 400 * MS, 41, 80 * MS);
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	for (int rank = 0; rank < 64; rank++) {
		assert_true(worker_of_rank(c, rank, &w));
		if (rank == 41) {
			assert_true(w.last_count >= 50 && w.last_count <= 52);
			assert_true(w.lag.max >= 79 * (uint64_t)MS);
			assert_true(w.lag.max <= 81 * (uint64_t)MS);
			assert_true(sketch_quantile(&w.lag, 0.5) >= 77 * (uint64_t)MS);
			assert_true(llabs(w.late_since_ns - (BEGIN_NS + 51 * 400 * MS)) < SECOND);
		} else {
			assert_true(w.lag.max < (uint64_t)MS);
			assert_int_equal(w.late_since_ns, 0);
			assert_true(w.waited_ns > 49 * 80 * (uint64_t)MS);
		}
	}
	job_done(&j);
	calls_free(c);
}

static void test_every_14th(void **state)
{
	struct calls *c = calls_made();
	struct collective_view v;
	struct worker_view w;
	size_t cursor = 0;
	struct job j;

	job_init(&j, 8, 2);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < 140; i++)
		job_step(&j, 100 * MS, i % 14 == 13 ? 5 : -1, 290 * MS);
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	assert_true(calls_is_late(c));
	assert_true(worker_of_rank(c, 5, &w));
	assert_true(w.lag.max > 285 * (uint64_t)MS && w.lag.max < 295 * (uint64_t)MS);
	while (calls_collective_next(c, &cursor, &v)) {
		bool late = v.lag_ns > (uint64_t)MS;

		assert_int_equal(late, v.seq % 14 == 13);
		if (!late)
			continue;
		assert_int_equal(v.last_worker, w.worker);
		assert_true(v.lag_ns > 285 * (uint64_t)MS && v.lag_ns < 295 * (uint64_t)MS);
		assert_true(v.waited_ns > 7 * 285 * (uint64_t)MS);
	}
	for (int rank = 0; rank < 8; rank++) {
		assert_true(worker_of_rank(c, rank, &w));
		assert_true(rank == 5 || w.lag.max < (uint64_t)MS);
	}
	job_done(&j);
	calls_free(c);
}

/* Two that are late together count both; a node's clock does not matter among its own ranks. */
static void test_two_late(void **state)
{
	struct calls *c = calls_made();
	struct worker_view w;
	struct job j;

	job_init(&j, 8, 2);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < 100; i++) {
		job_step(&j, 100 * MS, 3, 50 * MS);
		for (size_t k = j.count - 8; k < j.count; k++)
			if (j.items[k].call.rank == 6) {
				j.items[k].call.enter_ns += 50 * MS;
				j.items[k].call.wait_ns -= (uint64_t)(50 * MS);
			}
	}
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	for (int rank = 0; rank < 8; rank++) {
		assert_true(worker_of_rank(c, rank, &w));
		assert_int_equal(w.last_count, rank == 3 || rank == 6 ? 100 : 0);
	}
	job_done(&j);
	calls_free(c);
}

/* The same job, in order and in a random order with half of it twice. */
static void test_any_order(void **state)
{
	struct calls *plain = calls_made(), *mixed = calls_made();
	struct worker_view a, b;
	struct calls_taken n;
	struct job j, k;
	int64_t x[16], y[16];

	job_init(&j, 16, 4);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < 500; i++)
		job_step(&j, 20 * MS, (int)(job_random(&j) % 16), 5 * MS);
	k = j;
	k.items = calloc(j.count * 2, sizeof(*k.items));
	k.room = j.count * 2;
	memcpy(k.items, j.items, j.count * sizeof(*k.items));
	for (size_t i = 0; i < j.count; i += 2)
		k.items[k.count++] = j.items[i];
	job_shuffle(&k);
	n = job_push(&j, plain);
	assert_int_equal(n.taken, 8000);
	n = job_push(&k, mixed);
	assert_int_equal(n.taken, 8000);
	assert_int_equal(n.duplicate, 4000);
	calls_tick(plain, j.now_ns);
	calls_tick(mixed, k.now_ns);
	for (int rank = 0; rank < 16; rank++) {
		assert_true(worker_of_rank(plain, rank, &a));
		assert_true(worker_of_rank(mixed, rank, &b));
		assert_int_equal(a.calls, b.calls);
		assert_int_equal(a.last_count, b.last_count);
		assert_int_equal(a.waited_ns, b.waited_ns);
		assert_int_equal(a.lag.sum, b.lag.sum);
		assert_int_equal(a.offset_ns, b.offset_ns);
	}
	for (uint64_t seq = 0; seq < 500; seq++) {
		assert_int_equal(calls_arrivals(plain, COMM, seq, x, 16), 16);
		assert_int_equal(calls_arrivals(mixed, COMM, seq, y, 16), 16);
		assert_memory_equal(x, y, sizeof(x));
	}
	job_done(&j);
	job_done(&k);
	calls_free(plain);
	calls_free(mixed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_collective),
		cmocka_unit_test(test_rank_41_of_64),
		cmocka_unit_test(test_every_14th),
		cmocka_unit_test(test_two_late),
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
