/* SPDX-License-Identifier: Apache-2.0 */
/* test_clocks.c - clocks that are wrong by a known amount are brought together: distance, drift, a clock
 * that is set, nodes that only others tie, and those that nothing but their pushes places. */
#include "calls_fixture.h"
#include "blame/clock_pair.h"
#include "blame/clocks.h"

/* How far two ranks' clocks are from each other after correction. */
static int64_t apart(const struct calls *c, const struct job *j, int a, int b)
{
	struct worker_view x, y;

	assert_true(worker_of_rank(c, a, &x));
	assert_true(worker_of_rank(c, b, &y));
	return x.offset_ns + job_clock(j, job_node(j, a), j->now_ns) -
	       (y.offset_ns + job_clock(j, job_node(j, b), j->now_ns));
}

static void play(struct job *j, struct calls *c, int steps, int64_t step_ns)
{
	for (int i = 0; i < steps; i++) {
		job_step(j, step_ns, i % j->ranks, 5 * MS);
		if (i % 10 == 9) {
			job_push(j, c);
			calls_tick(c, j->now_ns + 2 * MS);
		}
	}
}

static void test_skew(void **state)
{
	struct calls *c = calls_made();
	struct worker_view w;
	struct job j;

	job_init(&j, 32, 4);
	job_skew(&j, 20 * MS);
	play(&j, c, 100, 50 * MS);
	for (int rank = 0; rank < 32; rank++) {
		assert_true(llabs(apart(c, &j, rank, 0)) < MS / 10);
		assert_true(worker_of_rank(c, rank, &w));
		assert_true(w.error_ns < (uint64_t)MS / 10);
		/* against the cluster's clock: the way of a push is 2 ms here */
		assert_true(llabs(w.offset_ns + j.skew_ns[rank / 4]) < 3 * MS);
	}
	assert_int_equal(calls_stats(c).clock_steps, 0);
	job_done(&j);
	calls_free(c);
}

static void test_drift(void **state)
{
	struct calls *c = calls_made();
	struct worker_view a, b;
	struct job j;

	job_init(&j, 4, 1);
	job_skew(&j, 20 * MS);
	j.drift[1] = 40e-6;
	j.drift[2] = -25e-6;
	play(&j, c, 600, 60 * MS);
	for (int rank = 1; rank < 4; rank++)
		assert_true(llabs(apart(c, &j, rank, 0)) < MS / 5);
	assert_true(worker_of_rank(c, 1, &a));
	assert_true(worker_of_rank(c, 2, &b));
	assert_true(a.drift_ppm - b.drift_ppm < -60 && a.drift_ppm - b.drift_ppm > -70);
	assert_int_equal(calls_stats(c).clock_steps, 0);
	job_done(&j);
	calls_free(c);
}

/* A clock that is set: found again within a few collectives, and nobody is called late for it. */
static void set_clock(uint32_t node, int64_t by_ns, uint64_t pairs)
{
	struct calls *c = calls_made();
	struct worker_view w;
	struct job j;
	int64_t x[8];

	job_init(&j, 8, 2);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < 100; i++) {
		if (i == 60)
			j.skew_ns[node] += by_ns;
		job_step(&j, 50 * MS, -1, 0);
		if (i % 10 == 9) {
			job_push(&j, c);
			calls_tick(c, j.now_ns + 2 * MS);
		}
	}
	assert_int_equal(calls_stats(c).clock_steps, pairs);
	for (int rank = 0; rank < 8; rank++) {
		assert_true(llabs(apart(c, &j, rank, 0)) < MS / 10);
		assert_true(worker_of_rank(c, rank, &w));
		assert_true(w.lag.max < (uint64_t)MS);
	}
	/* those before it are still in line */
	for (uint64_t seq = 50; seq < 70; seq++) {
		assert_int_equal(calls_arrivals(c, COMM, seq, x, 8), 8);
		for (int rank = 1; rank < 8; rank++)
			assert_true(llabs(x[rank] - x[0]) < MS);
	}
	job_done(&j);
	calls_free(c);
}

static void test_step(void **state)
{
	set_clock(2, 300 * MS, 1);
	set_clock(2, -300 * MS, 1);
	set_clock(3, 5 * MS, 1);
	set_clock(0, -25 * MS, 3); /* all are compared with this one */
	set_clock(1, 30 * SECOND, 1);
	set_clock(1, 0, 0); /* positive control */
}

/* Few ranks that wake late do not move the estimate. */
static void test_outliers(void **state)
{
	struct calls *c = calls_made();
	struct job j;

	job_init(&j, 8, 2);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < 200; i++) {
		job_step(&j, 20 * MS, -1, 0);
		if (i % 5 == 0) /* both ranks of a node leave 4 ms late */
			for (size_t k = j.count - 8; k < j.count; k++)
				if (j.items[k].node == 1) {
					j.items[k].call.leave_ns += 4 * MS;
					j.items[k].call.wait_ns += (uint64_t)(4 * MS);
				}
	}
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	assert_true(llabs(apart(c, &j, 2, 0)) < MS / 10);
	assert_int_equal(calls_stats(c).clock_steps, 0);
	job_done(&j);
	calls_free(c);
}

/* Nodes 0-1 and 1-2 meet, 0 and 2 never do; node 3 meets nobody. */
static void test_chain(void **state)
{
	struct calls *c = calls_made();
	struct worker_view w;
	struct job j;

	job_init(&j, 4, 1);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < 100; i++)
		for (int pair = 0; pair < 3; pair++) {
			j.now_ns += 10 * MS;
			for (int k = 0; k < (pair < 2 ? 2 : 1); k++) {
				int rank = pair < 2 ? pair + k : 3;
				struct push_call call = job_call(&j, rank, j.now_ns, j.now_ns + MS);

				call.comm += (uint64_t)pair;
				call.rank = k;
				call.nranks = pair < 2 ? 2 : 1;
				call.seq = (uint64_t)i;
				job_add(&j, job_node(&j, rank), call);
			}
		}
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	assert_true(llabs(apart(c, &j, 2, 0)) < MS / 10);
	assert_true(worker_of_rank(c, 3, &w));
	assert_true(w.error_ns >= 5 * (uint64_t)MS && w.error_ns < UINT64_MAX);
	assert_true(llabs(w.offset_ns + j.skew_ns[3]) <= (int64_t)w.error_ns);
	job_done(&j);
	calls_free(c);
}

/* Calls that nobody waited for say nothing about clocks. */
static void test_waits_unknown(void **state)
{
	struct calls *c = calls_made();
	struct worker_view w;
	struct job j;

	job_init(&j, 4, 1);
	for (int i = 0; i < 100; i++) {
		job_step(&j, 20 * MS, 1, 10 * MS);
		for (size_t k = j.count - 4; k < j.count; k++) {
			j.items[k].call.leave_ns = j.items[k].call.enter_ns + 5000;
			j.items[k].call.wait_ns = UINT64_MAX;
		}
	}
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	assert_true(worker_of_rank(c, 1, &w));
	assert_true(w.error_ns >= 5 * (uint64_t)MS);
	job_done(&j);
	calls_free(c);
}

/* The last @ranks calls return at once, or when the collective ends, and none says how long it waited. */
static void make_silent(struct job *j, bool returns_at_once)
{
	for (size_t k = j->count - (size_t)j->ranks; k < j->count; k++) {
		struct push_call *call = &j->items[k].call;

		call->wait_ns = UINT64_MAX;
		if (returns_at_once)
			call->leave_ns = call->enter_ns + 5000;
	}
}

static uint64_t error_of(const struct calls *c, int rank)
{
	struct worker_view w;

	assert_true(worker_of_rank(c, rank, &w));
	return w.error_ns;
}

/* Ranks of a node that come one after the other and leave together tell the end, without a word of waiting. */
static void test_left_together(void **state)
{
	struct calls *c = calls_made();
	struct job j;

	job_init(&j, 8, 4);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < 100; i++) { /* in each step one rank of each node is 10 ms late */
		job_step(&j, 20 * MS, i % 4, 10 * MS);
		j.items[j.count - 4 + (size_t)(i % 4)].call.enter_ns += 10 * MS;
		make_silent(&j, false);
		if (i % 10 == 9) {
			job_push(&j, c);
			calls_tick(c, j.now_ns + 2 * MS);
		}
	}
	assert_true(llabs(apart(c, &j, 4, 0)) < MS / 10);
	assert_true(error_of(c, 4) < (uint64_t)MS / 5);
	job_done(&j);
	calls_free(c);
}

/* What nothing confirms is trusted less with each second, though the nodes go on to push. */
static void test_age(void **state)
{
	struct calls *c = calls_made();
	struct job j;

	job_init(&j, 2, 1);
	job_skew(&j, 20 * MS);
	play(&j, c, 100, 50 * MS);
	assert_true(error_of(c, 1) < (uint64_t)MS / 5);
	for (int i = 0; i < 60; i++) {
		job_step(&j, SECOND, -1, 0);
		make_silent(&j, true);
		job_push(&j, c);
		calls_tick(c, j.now_ns + 2 * MS);
	}
	assert_true(error_of(c, 1) > (uint64_t)MS);
	job_done(&j);
	calls_free(c);
}

/* A clock is set by @by_ns while no collective tells: the pushes do. Whether anybody is late by it. */
static bool is_late_after(int64_t by_ns)
{
	struct calls *c = calls_made();
	int64_t x[2];
	struct job j;
	bool late;

	job_init(&j, 2, 1);
	play(&j, c, 100, 50 * MS);
	j.skew_ns[1] += by_ns;
	for (int i = 0; i < 100; i++) {
		job_step(&j, 50 * MS, -1, 0);
		make_silent(&j, true);
		if (i % 10 == 9) {
			job_push(&j, c);
			calls_tick(c, j.now_ns + 2 * MS);
		}
	}
	assert_int_equal(calls_stats(c).clock_steps, by_ns != 0);
	assert_true(error_of(c, 1) >= 5 * (uint64_t)MS || by_ns == 0);
	assert_int_equal(calls_arrivals(c, COMM, j.seq - 1, x, 2), 2);
	late = (uint64_t)llabs(x[0] - x[1]) > error_of(c, 1);
	job_done(&j);
	calls_free(c);
	return late;
}

static void test_set_unseen(void **state)
{
	assert_false(is_late_after(0));
	assert_false(is_late_after(13 * MS));
	assert_false(is_late_after(-13 * MS));
	assert_false(is_late_after(400 * MS));
}

/* A collective within each node, @after_ns later: node 1 is quicker. */
static void add_inner(struct job *j, int64_t after_ns)
{
	j->now_ns += after_ns;
	for (int rank = 0; rank < j->ranks; rank++) {
		uint32_t node = job_node(j, rank);
		int64_t at = j->now_ns - 20 * MS * node;
		struct push_call call = job_call(j, rank, at, at + MS);

		call.comm += 1 + node;
		call.rank = rank % j->ranks_per_node;
		call.nranks = j->ranks_per_node;
		job_add(j, node, call);
	}
}

/* A job whose calls say nothing of clocks has ended; then a clock is set, and the next job tells by how much.
 * The calls of the first are not judged by the clocks of the second. */
static void test_ended_before(void **state)
{
	for (int is_set = 0; is_set < 2; is_set++) {
		struct calls *c = calls_made();
		struct blame_worker *workers = NULL;
		size_t count = 0;
		struct blame b;
		struct job j;

		job_init(&j, 8, 4);
		play(&j, c, 100, 50 * MS);
		for (int i = 0; i < 100; i++) {
			add_inner(&j, 50 * MS);
			job_step(&j, 10 * MS, -1, 0);
			make_silent(&j, true);
		}
		job_push(&j, c);
		calls_tick(c, j.now_ns + 2 * MS);
		if (is_set)
			j.skew_ns[1] += 13 * MS;
		for (int i = 0; i < 30; i++) {
			job_step(&j, 50 * MS, -1, 0);
			job_push(&j, c);
			calls_tick(c, j.now_ns + 2 * MS);
		}
		assert_int_equal(calls_stats(c).clock_steps, is_set);
		assert_int_equal(calls_blame(c, &workers, &count, &b), 0);
		assert_int_equal(b.suspect_count, 0);
		assert_true(is_set ? b.steps < 40 : b.steps > 90);
		blame_done(&b);
		free(workers);
		job_done(&j);
		calls_free(c);
	}
}

/* Ends that are 10 ms apart are no clock that was set, at any pace; one that was is still seen. */
static void test_ends_are_no_moment(void **state)
{
	for (int64_t step_ns = 100000000; step_ns <= INT64_C(50000000000); step_ns *= 500) {
		struct clock_pair p = CLOCK_PAIR_INIT(0, 1, SECOND);
		unsigned set = 0;
		int64_t at = 0;

		for (uint32_t i = 0; i < 200; i++, at += step_ns) {
			int64_t apart = (int64_t)(i * 8 % 21) * 1000000 - 10000000;

			set += clock_pair_add(&p, (struct clock_moment){at, apart});
			clock_pair_fit(&p);
		}
		assert_int_equal(set, 0);
		assert_in_range(clock_pair_spread(&p), 1000000, 15000000);
		for (uint32_t i = 0; i < 16; i++, at += step_ns)
			set += clock_pair_add(&p, (struct clock_moment){at, 400000000});
		assert_int_equal(set, 1);
	}
}

/* Those of one communicator are no more apart than a microsecond, those of another by 8 ms in all of a step: who looks at the
 * first alone for a while takes the second for a clock that was set. A clock that was set stays so. */
static void test_ends_of_two_kinds(void **state)
{
	struct clock_pair p = CLOCK_PAIR_INIT(0, 1, SECOND);
	unsigned set = 0;
	int64_t at = BEGIN_NS;

	for (uint32_t i = 0; i < 400; i++, at += 20 * MS)
		set += clock_pair_add(
			&p, (struct clock_moment){at, i % 40 >= 32 ? 8 * MS : i % 2 * 1000});
	assert_int_equal(set, 0);
	for (uint32_t i = 0; i < 100; i++, at += 20 * MS)
		set += clock_pair_add(&p, (struct clock_moment){at, 8 * MS});
	assert_int_equal(set, 1);
}

static void test_pair_alone(void **state)
{
	struct clock_pair p = CLOCK_PAIR_INIT(0, 1, SECOND);

	clock_pair_fit(&p);
	assert_false(p.is_fitted);
	for (int i = 0; i < 20000; i++) /* 20 s, 100 ppm */
		assert_false(clock_pair_add(&p,
			(struct clock_moment){BEGIN_NS + i * MS, 7 * MS + i * 100 + i % 7 * 1000}));
	clock_pair_fit(&p);
	assert_true(p.is_fitted);
	assert_true(p.slope > 95e-6 && p.slope < 105e-6);
	assert_true(p.error_ns < 50000);
	assert_int_equal(p.points[0].samples >= 32, 1);
}

/* Two jobs on the same nodes of which one sees ends by @of_second later: which of them is right is not known, and the
 * error says so. */
static uint64_t error_of_two(int64_t of_second)
{
	struct clock_pair p = CLOCK_PAIR_INIT(0, 1, SECOND);

	for (int i = 0; i < 40; i++)
		assert_false(
			clock_pair_add(&p, (struct clock_moment){BEGIN_NS + i * SECOND,
						   i % 7 * MS / 10 + (i % 2 ? of_second : 0)}));
	clock_pair_fit(&p);
	assert_true(p.is_fitted);
	for (int i = 0; i < 2 && of_second; i++) /* the middle of either kind */
		assert_true(llabs(p.line.apart_ns - 3 * MS / 10 - i * of_second) <=
			    (int64_t)p.error_ns + 6 * MS / 10);
	return p.error_ns;
}

static void test_error_holds_for_both_of_two(void **state)
{
	assert_true(error_of_two(12 * MS) >= (uint64_t)5 * MS);
	assert_true(error_of_two(0) < (uint64_t)MS / 4); /* positive control */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_skew),
		cmocka_unit_test(test_drift),
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_outliers),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_waits_unknown),
		cmocka_unit_test(test_left_together),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_set_unseen),
		cmocka_unit_test(test_ended_before),
		cmocka_unit_test(test_ends_are_no_moment),
		cmocka_unit_test(test_ends_of_two_kinds),
		cmocka_unit_test(test_pair_alone),
		cmocka_unit_test(test_error_holds_for_both_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
