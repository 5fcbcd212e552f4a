/* SPDX-License-Identifier: Apache-2.0 */
/* test_classify.c - which units are slow: jitter of whatever shape is not, a change, a period, outliers and a drift
 * are, each as what it is. Lengths are made up; a seed makes each of them again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/contrasts/classify.h"
#include "diagnose/contrasts/rhythm.h"
#include "base/macros.h"

#define SEEDS   200
#define UNIT_NS (20.0 * (double)NS_PER_MS)
#define MOST    5000

struct random {
	uint64_t state;
};

/* 0 < x < 1 */
static double next_uniform(struct random *r)
{
	uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return ((double)(x >> 11) + 0.5) / 9007199254740992.0;
}

static double next_normal(struct random *r)
{
	double radius = sqrt(-2 * log(next_uniform(r)));

	return radius * cos(2 * M_PI * next_uniform(r));
}

static double bell(struct random *r, double width)
{
	return MAX(1 + width / 2 * next_normal(r), 0.1); /* nineteen in twenty within the width */
}

static double lognormal(struct random *r, double width)
{
	return exp(width / 2 * next_normal(r));
}

static double uniform(struct random *r, double width)
{
	return 1 + width * (2 * next_uniform(r) - 1);
}

typedef double (*jitter)(struct random *, double);
static const jitter jitters[] = {bell, lognormal, uniform};

struct run {
	struct step_facts steps[MOST];
	struct step_span spans[MOST];
	struct classification found;
	struct rhythm rhythm;
};

static void classify(struct run *r, size_t n)
{
	assert_int_equal(classify_steps(r->steps, n, &r->found), 0);
	assert_int_equal(rhythm_find(r->spans, r->steps, n, r->found.group, &r->rhythm), 0);
}

static void put(struct run *r, size_t i, double times)
{
	r->steps[i] = (struct step_facts){.dur_ns = (uint64_t)(times * UNIT_NS)};
}

/* Of 200 seeds and each kind of jitter at most two say that some are slow. */
static void test_jitter_is_not_slow(void **state)
{
	static const size_t counts[] = {50, 100, 500, 5000};
	struct run *r = calloc(1, sizeof(*r));

	for (size_t k = 0; k < ARRAY_SIZE(jitters); k++)
		for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
			int alarms = 0;

			for (uint64_t seed = 1; seed <= SEEDS; seed++) {
				struct random random = {seed << 32};

				for (size_t i = 0; i < counts[c]; i++)
					put(r, i, jitters[k](&random, 0.25));
				classify(r, counts[c]);
				alarms += r->found.slow > 0;
			}
			if (alarms > SEEDS / 100)
				fail_msg("jitter %zu, %zu units: %d alarms", k, counts[c], alarms);
		}
	free(r);
}

/* How many of the seeds show what @make makes as @is wants it. */
typedef double (*shape)(size_t i, size_t n, struct random *random);
typedef bool (*verdict)(const struct run *r, size_t n);

static int count_seen(shape make, size_t n, double width, verdict is)
{
	struct run *r = calloc(1, sizeof(*r));
	int seen = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct random random = {seed << 32};

		for (size_t i = 0; i < n; i++)
			put(r, i, make(i, n, &random) * lognormal(&random, width));
		classify(r, n);
		seen += is(r, n);
	}
	free(r);
	return seen;
}

static double ramp(size_t i, size_t n, struct random *random)
{
	return 1 + 0.6 * (double)i / (double)n;
}

static double thermal(size_t i, size_t n, struct random *random)
{
	return 1.6 - 0.6 * exp(-3.0 * (double)i / (double)n);
}

static bool is_ramp(const struct run *r, size_t n)
{
	double from = (double)r->found.trend.from_ns / UNIT_NS;
	double to = (double)r->found.trend.to_ns / UNIT_NS;

	return r->found.trend.is_drift && fabs(from - 1) < 0.15 && fabs(to - 1.6) < 0.2;
}

static bool is_any_drift(const struct run *r, size_t n)
{
	return r->found.trend.is_drift;
}

static void test_drift_is_drift(void **state)
{
	assert_true(count_seen(ramp, 100, 0.1, is_ramp) >= SEEDS * 99 / 100);
	assert_true(count_seen(ramp, 400, 0.25, is_ramp) >= SEEDS * 99 / 100);
	assert_true(count_seen(ramp, 5000, 0.25, is_ramp) >= SEEDS * 99 / 100);
	assert_true(count_seen(thermal, 400, 0.1, is_any_drift) >= SEEDS * 95 / 100);
}

/* What a drift cost is what is beyond the first quarter. */
static void test_a_drift_has_a_price(void **state)
{
	struct run *r = calloc(1, sizeof(*r));
	double lost = 0;

	for (size_t i = 0; i < 400; i++) {
		put(r, i, 1 + 0.6 * (double)i / 400);
		lost += i >= 100 ? (0.6 * (double)i / 400 - 0.6 * 49.5 / 400) * UNIT_NS : 0;
	}
	classify(r, 400);
	assert_true(r->found.trend.is_drift);
	assert_int_equal(r->found.ordinary, 100);
	assert_int_equal(r->found.slow, 300);
	assert_true(fabs((double)r->found.lost_ns - lost) < 0.001 * lost);
	free(r);
}

static double change(size_t i, size_t n, struct random *random)
{
	return i < n / 3 ? 1 : 1.3;
}

static bool is_change(const struct run *r, size_t n)
{
	size_t at = r->found.trend.since, third = n / 3;

	return !r->found.trend.is_drift && at != SIZE_MAX && at + n / 50 >= third &&
	       at <= third + n / 50;
}

static void test_a_change_stays_a_change(void **state)
{
	assert_true(count_seen(change, 100, 0.1, is_change) >= SEEDS * 99 / 100);
	assert_true(count_seen(change, 2000, 0.2, is_change) >= SEEDS * 99 / 100);
}

static double every_tenth(size_t i, size_t n, struct random *random)
{
	return i % 10 == 9 ? 1.5 : 1;
}

static bool is_every_tenth(const struct run *r, size_t n)
{
	return r->rhythm.period_steps == 10 && r->found.slow + n / 50 >= n / 10 &&
	       r->found.slow <= n / 10 + n / 50;
}

/* Also where the longest ordinary ones reach to the shortest slow ones. */
static void test_a_period_is_found(void **state)
{
	assert_true(count_seen(every_tenth, 200, 0.05, is_every_tenth) >= SEEDS * 99 / 100);
	assert_true(count_seen(every_tenth, 500, 0.15, is_every_tenth) >= SEEDS * 95 / 100);
	assert_true(count_seen(every_tenth, 2000, 0.15, is_every_tenth) >= SEEDS * 99 / 100);
}

static double outliers(size_t i, size_t n, struct random *random)
{
	return i == 31 || i == 70 || i == 88 ? 4 : 1;
}

static bool is_three(const struct run *r, size_t n)
{
	return r->found.slow == 3 && r->steps[31].class == STEP_SLOW &&
	       r->steps[88].class == STEP_SLOW;
}

static void test_outliers_are_found(void **state)
{
	assert_true(count_seen(outliers, 100, 0.1, is_three) >= SEEDS * 99 / 100);
	assert_true(count_seen(outliers, 1000, 0.2, is_three) >= SEEDS * 99 / 100);
}

/* Slow by all kinds of amounts, as beside a neighbour that is busy now and then. */
static double neighbour(size_t i, size_t n, struct random *random)
{
	return next_uniform(random) < 0.3 ? 1.3 + 3 * next_uniform(random) : 1;
}

/* The longest of them are slow in any case: a third are slow. */
static bool is_some(const struct run *r, size_t n)
{
	return r->found.slow > n / 12 && r->found.slow < n / 2;
}

static void test_a_neighbour_is_found(void **state)
{
	assert_true(count_seen(neighbour, 100, 0.1, is_some) >= SEEDS * 95 / 100);
	assert_true(count_seen(neighbour, 1000, 0.1, is_some) >= SEEDS * 99 / 100);
}

/* Somewhat slower for a while, and then as before. */
static double stretch(size_t i, size_t n, struct random *random)
{
	return i > n / 2 && i < n * 3 / 4 ? 1.5 : 1;
}

static bool is_a_quarter(const struct run *r, size_t n)
{
	return r->found.slow > n / 5 && r->found.slow < n / 3;
}

static void test_a_stretch_is_found(void **state)
{
	assert_true(count_seen(stretch, 200, 0.2, is_a_quarter) >= SEEDS * 99 / 100);
}

/* @every units, from @from on, half of a unit is added in which code is made. */
static void make_code(
	struct run *r, enum code_making how, size_t n, size_t from, size_t to, size_t every)
{
	for (size_t i = 0; i < n; i++) {
		bool makes = i >= from && i < to && i % every == 0;

		put(r, i, makes ? 1.9 : 1.0 + 0.01 * (double)(i % 3));
		r->steps[i].made_ns[how] = makes ? (uint64_t)(0.9 * UNIT_NS) : 0;
	}
	classify(r, n);
}

static void compile(struct run *r, size_t n, size_t from, size_t to, size_t every)
{
	make_code(r, MAKING_CODE, n, from, to, every);
}

static void test_code_that_is_made_once_is_set_up(void **state)
{
	struct run *r = calloc(1, sizeof(*r));

	compile(r, 200, 0, 60, 5); /* and again for new sizes, ever rarer */
	assert_true(r->found.is_setup[MAKING_CODE]);
	assert_int_equal(r->found.slow, 0);
	assert_int_equal(
		r->steps[25].dur_ns, (uint64_t)(1.9 * UNIT_NS) - (uint64_t)(0.9 * UNIT_NS));
	compile(r, 200, 150, 151, 1); /* late, but once */
	assert_int_equal(r->found.slow, 0);
	compile(r, 200, 100, 200, 5); /* since a moment, all the time */
	assert_false(r->found.is_setup[MAKING_CODE]);
	assert_int_equal(r->found.slow, 20);
	free(r);
}

/* As many units in the last third of the time, but of many more units that follow each other faster. */
static void test_code_that_ever_fewer_units_need_is_set_up(void **state)
{
	struct run *r = calloc(1, sizeof(*r));

	for (size_t i = 0; i < 200; i++) {
		bool makes = i < 60 ? i % 2 == 0 : i % 12 == 0;

		put(r, i, makes ? 20.0 : 1.0);
		r->steps[i].made_ns[MAKING_CODE] = makes ? 19 * (uint64_t)UNIT_NS : 0;
	}
	classify(r, 200);
	assert_true(r->found.is_setup[MAKING_CODE]);
	free(r);
}

/* Ten short units, of which few make code for hundreds of times as long: again after others, or once. */
static void test_code_that_takes_most_of_a_short_run(void **state)
{
	struct run *r = calloc(1, sizeof(*r));

	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < 10; i++) {
			bool makes = i == 3 || (again && i == 7);

			put(r, i, makes ? 300.0 : 1.0);
			r->steps[i].made_ns[MAKING_CODE] = makes ? 299 * (uint64_t)UNIT_NS : 0;
		}
		classify(r, 10);
		assert_int_equal(r->found.is_setup[MAKING_CODE], !again);
	}
	free(r);
}

/* Four times in 450 units: once in a hundred goes on, ever rarer does not. */
static void test_code_that_is_made_every_so_many_units(void **state)
{
	static const size_t regular[] = {90, 190, 290, 390}, rarer[] = {10, 30, 100, 390};
	struct run *r = calloc(1, sizeof(*r));

	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < 450; i++)
			put(r, i, 1.0 + 0.01 * (double)(i % 3));
		for (size_t m = 0; m < ARRAY_SIZE(regular); m++) {
			struct step_facts *f = &r->steps[k ? rarer[m] : regular[m]];

			f->dur_ns = 80 * (uint64_t)UNIT_NS;
			f->made_ns[MAKING_CODE] = 79 * (uint64_t)UNIT_NS;
		}
		classify(r, 450);
		assert_int_equal(r->found.is_setup[MAKING_CODE], k);
		assert_int_equal(r->found.slow, k ? 0 : 4);
	}
	free(r);
}

/* Since a moment all units are a third longer, and one of them is twelve times as long: what delayed that one is not
 * what made the others longer. */
static void test_one_long_unit_since_a_change(void **state)
{
	struct run *r = calloc(1, sizeof(*r));

	for (size_t i = 0; i < 100; i++)
		put(r, i, (i < 40 ? 1.0 : 1.3) + 0.01 * (double)(i % 7));
	put(r, 70, 16);
	classify(r, 100);
	assert_int_equal(r->found.trend.since, 40);
	assert_int_equal(r->found.slow, 59);
	assert_int_equal(r->found.other, 1);
	assert_int_equal(r->steps[70].class, STEP_OTHER);
	for (size_t i = 50; i < 90; i += 10)
		put(r, i, 16);
	classify(r, 100);
	assert_int_equal(r->found.other, 0); /* four are no chance */
	free(r);
}

/* Lengths that vary threefold and are half as long again since a moment: many show it, few may be chance, and so are a few
 * percent. */
static void test_a_change_of_lengths_that_vary(void **state)
{
	static const struct {
		size_t count;
		double more;
		bool is_seen;
	} cases[] = {{300, 1.6, true}, {36, 1.6, false}, {300, 1.15, false}, {300, 1.0, false}};
	struct run *r = calloc(1, sizeof(*r));

	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		uint32_t random = 1;

		for (size_t i = 0; i < cases[c].count; i++) {
			random = random * 1664525 + 1013904223;
			put(r, i,
				(1 + 2.0 * (random >> 16) / 65536) *
					(i < cases[c].count / 2 ? 1 : cases[c].more));
		}
		classify(r, cases[c].count);
		if (cases[c].is_seen)
			assert_in_range(r->found.trend.since, 130, 170);
		else
			assert_true(r->found.trend.since == SIZE_MAX);
		if (cases[c].count > 100)
			assert_false(r->found.trend.is_drift);
	}
	free(r);
}

/* A checkpoint now and then all along hides no change, whichever side it is on. */
static void test_a_change_beside_checkpoints(void **state)
{
	struct run *r = calloc(1, sizeof(*r));

	for (size_t i = 0; i < 600; i++)
		put(r, i, (i < 300 ? 1.0 : 1.2) + 0.01 * (double)(i % 7));
	for (size_t i = 60; i < 600; i += 120)
		put(r, i, 10);
	classify(r, 600);
	assert_int_equal(r->found.trend.since, 300);
	assert_int_equal(r->found.other, 5);
	assert_in_range(r->found.lost_ns, 55 * UNIT_NS, 65 * UNIT_NS);
	free(r);
}

/* What a few units took beyond the others is told, if it is more than what all others lost by a change. */
static void test_the_larger_loss_is_found(void **state)
{
	struct run *r = calloc(1, sizeof(*r));

	for (size_t i = 0; i < 200; i++)
		put(r, i, (i < 80 ? 1.0 : 1.13) + 0.01 * (double)(i % 7));
	classify(r, 200);
	assert_int_equal(r->found.trend.since, 80); /* control: the change alone */
	put(r, 140, 300);
	put(r, 141, 300);
	classify(r, 200);
	assert_int_equal(r->found.slow, 2);
	assert_int_equal(r->found.trend.since, SIZE_MAX);
	assert_in_range(r->found.lost_ns, 590 * UNIT_NS, 600 * UNIT_NS);
	free(r);
}

/* Libraries make a plan for each new shape: within a minute that is a warm-up, later it is said. */
static void test_plans_of_libraries_are_warm_up_at_first(void **state)
{
	struct run *r = calloc(1, sizeof(*r));

	make_code(r, MAKING_PLANS, 200, 100, 200, 5);
	assert_true(r->found.is_setup[MAKING_PLANS]);
	assert_int_equal(r->found.slow, 0);
	make_code(r, MAKING_PLANS, MOST, 0, MOST, 5); /* 100 s of it */
	assert_false(r->found.is_setup[MAKING_PLANS]);
	free(r);
}

static void test_models_that_are_built_now_and_then_are_set_up(void **state)
{
	struct run *r = calloc(1, sizeof(*r));

	make_code(r, MAKING_MODEL, 200, 0, 200, 10);
	assert_true(r->found.is_setup[MAKING_MODEL]);
	assert_int_equal(r->found.slow, 0);
	make_code(r, MAKING_MODEL, 200, 0, 200, 5);
	assert_false(r->found.is_setup[MAKING_MODEL]);
	assert_true(r->found.slow > 0);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_that_takes_most_of_a_short_run),
		cmocka_unit_test(test_code_that_is_made_every_so_many_units),
		cmocka_unit_test(test_one_long_unit_since_a_change),
		cmocka_unit_test(test_a_change_of_lengths_that_vary),
		cmocka_unit_test(test_a_change_beside_checkpoints),
		cmocka_unit_test(test_the_larger_loss_is_found),
		cmocka_unit_test(test_jitter_is_not_slow),
		cmocka_unit_test(test_drift_is_drift),
		cmocka_unit_test(test_a_drift_has_a_price),
		cmocka_unit_test(test_a_change_stays_a_change),
		cmocka_unit_test(test_a_period_is_found),
		cmocka_unit_test(test_outliers_are_found),
		cmocka_unit_test(test_a_neighbour_is_found),
		cmocka_unit_test(test_a_stretch_is_found),
		cmocka_unit_test(test_code_that_is_made_once_is_set_up),
		cmocka_unit_test(test_code_that_ever_fewer_units_need_is_set_up),
		cmocka_unit_test(test_plans_of_libraries_are_warm_up_at_first),
		cmocka_unit_test(test_models_that_are_built_now_and_then_are_set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
