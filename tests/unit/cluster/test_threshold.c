/* SPDX-License-Identifier: Apache-2.0 */
/* test_threshold.c - quorum, smoothing, floor, and refusal where half of the nodes are bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/macros.h"
#include "cluster/detect/spread.h"
#include "cluster/detect/threshold.h"
#include "nodes_fixture.h"

static struct threshold update(struct threshold_average *a, double *scores, size_t count,
	uint32_t known, uint32_t expected)
{
	struct threshold_input in = {scores, count, known, expected};
	struct threshold t;

	spread_sort(scores, count);
	threshold_update(a, &nodes_defaults, &in, &t);
	return t;
}

static void test_quorum(void **state)
{
	double scores[] = {0.95, 0.95, 0.95, 0.95, 0.95};
	const struct {
		size_t count;
		uint32_t known, expected;
		bool met;
	} cases[] = {
		{5, 5, 0, true},
		{4, 4, 0, false},
		{4, 4, 4, true},  /* a small job that is all there */
		{3, 4, 4, true},  /* most of it */
		{2, 4, 4, false}, /* half of it */
		{3, 3, 3, true},
		{2, 2, 2, false},  /* of two, nobody is the ordinary one */
		{4, 4, 64, false}, /* of a large job, too few */
		{5, 64, 64, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct threshold_average a = {0};
		struct threshold t =
			update(&a, scores, cases[i].count, cases[i].known, cases[i].expected);

		assert_int_equal(t.quorum_met, cases[i].met);
		assert_int_equal(t.value > 0, cases[i].met);
		assert_int_equal(t.active, cases[i].count);
	}
}

static void test_coverage_blocks_nothing(void **state)
{
	double scores[] = {0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95};
	struct threshold_average a = {0};
	struct threshold t = update(&a, scores, 7, 9, 0);

	assert_true(t.coverage_low && t.quorum_met); /* 7 of 9 */
	t = update(&a, scores, 7, 8, 0);
	assert_false(t.coverage_low);
	t = update(&a, scores, 7, 8, 64);
	assert_true(t.coverage_low);
}

static void test_floor_where_all_are_equal(void **state)
{
	double scores[] = {0.95, 0.95, 0.95, 0.95, 0.95, 0.95 - 1e-12};
	struct threshold_average a = {0};
	struct threshold t = update(&a, scores, 6, 6, 0);

	assert_float_equal(t.mad, 0, 1e-9);
	assert_true(t.value < 0.95 - 0.029); /* float noise flags nobody */
}

static void test_first_value_then_smoothed(void **state)
{
	double high[64], low[64];
	struct threshold_average a = {0};
	struct threshold first, t;

	for (size_t i = 0; i < 64; i++) {
		high[i] = 0.90;
		low[i] = 0.95;
	}
	first = update(&a, high, 64, 64, 0);
	for (unsigned step = 1; step <= 11; step++) {
		t = update(&a, low, 64, 64, 0);
		assert_true(fabs(t.value - first.value - 0.05 * (1 - pow(0.8, step))) < 1e-9);
	}
	assert_true(t.value - first.value > 0.9 * 0.05); /* 90 % after 11 steps */
}

static void test_fall_of_all_is_taken_in_the_end(void **state)
{
	double before[64], after[64];
	struct threshold_average a = {0};
	struct threshold t;

	for (size_t i = 0; i < 64; i++) {
		before[i] = 0.95;
		after[i] = 0.70;
	}
	assert_true(update(&a, before, 64, 64, 0).quorum_met);
	for (unsigned step = 0; step < 5; step++) {
		t = update(&a, after, 64, 64, 0);
		assert_true(t.half_bad && !t.quorum_met);
		assert_float_equal(t.value, 0, 0);
	}
	t = update(&a, after, 64, 64, 0);
	assert_true(t.quorum_met && !t.half_bad);
	assert_true(t.value < 0.70);
}

static void test_most_are_bad(void **state)
{
	double good[64], bad[64];
	struct threshold_average a = {0};

	for (size_t i = 0; i < 64; i++) {
		good[i] = 0.95;
		bad[i] = i < 40 ? 0.5 : 0.95;
	}
	assert_true(update(&a, good, 64, 64, 0).quorum_met);
	for (unsigned step = 0; step < 100; step++) { /* however long it lasts */
		struct threshold t = update(&a, bad, 64, 64, 0);

		assert_true(t.half_bad && !t.quorum_met);
	}
	assert_true(update(&a, good, 64, 64, 0).quorum_met);
}

/* The claimed breakdown point: of 64 nodes up to 31 bad ones are all found, whatever they say. */
static void test_breakdown_at_half(void **state)
{
	unsigned flagged = 0, healthy_nodes = 0;

	for (unsigned bad = 1; bad <= 32; bad++) {
		struct threshold_average a = {0};
		double scores[64], worst = 0;
		uint64_t seed = bad;
		struct threshold t;

		for (unsigned i = 0; i < 64; i++) {
			scores[i] = i < bad ? 0.3 + 0.4 * random_uniform(&seed)
					    : 0.95 + 0.01 * random_normal(&seed);
			if (i < bad && scores[i] > worst)
				worst = scores[i];
		}
		t = update(&a, scores, 64, 64, 0);
		assert_int_equal(t.quorum_met, bad < 32); /* half of them: no threshold at all */
		if (!t.quorum_met)
			continue;
		assert_true(worst < t.value);
		for (unsigned i = bad; i < 64; i++) /* sorted by now: these are the healthy ones */
			flagged += scores[i] < t.value;
		healthy_nodes += 64 - bad;
	}
	print_message("%u of %u healthy nodes flagged\n", flagged, healthy_nodes);
	assert_true(flagged * 100 <= healthy_nodes * 3);
}

static void test_agents_can_take_any_value(void **state)
{
	double wide[] = {0.1, 0.3, 0.5, 0.7, 0.9}, best[] = {1, 1, 1, 1, 1};
	struct threshold_average a = {0}, b = {0};

	assert_float_equal(update(&a, wide, 5, 5, 0).value, 0.10, 0);
	assert_true(update(&b, best, 5, 5, 0).value <= 0.99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quorum),
		cmocka_unit_test(test_coverage_blocks_nothing),
		cmocka_unit_test(test_floor_where_all_are_equal),
		cmocka_unit_test(test_first_value_then_smoothed),
		cmocka_unit_test(test_fall_of_all_is_taken_in_the_end),
		cmocka_unit_test(test_most_are_bad),
		cmocka_unit_test(test_breakdown_at_half),
		cmocka_unit_test(test_agents_can_take_any_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
