/* SPDX-License-Identifier: Apache-2.0 */
/* test_probe_cost.c - what probing launches costs a step, from stretches with and without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/contrasts/classify.h"
#include "base/macros.h"

#define STEPS 200

static uint64_t even(size_t i)
{
	return 20 * NS_PER_MS + i % 5 * (NS_PER_MS / 10);
}

/* Every second stretch of 10 steps is probed, from @from on, and takes @cost times as long. */
static void play(struct step_facts *s, size_t from, double cost)
{
	for (size_t i = 0; i < STEPS; i++) {
		bool probed = i >= from && i / 10 % 2;

		s[i] = (struct step_facts){.dur_ns = even(i), .probed = probed};
		if (probed)
			s[i].dur_ns = (uint64_t)((double)s[i].dur_ns * cost);
	}
}

static double cost_of(const struct step_facts *s)
{
	double cost = 0;

	assert_int_equal(probe_cost_find(s, STEPS, &cost), 0);
	return cost;
}

static void test_stretches_say_what_it_costs(void **state)
{
	struct step_facts s[STEPS];

	play(s, 0, 1.2);
	assert_float_equal(cost_of(s), 1.2, 0.01);
	play(s, 0, 1.0);
	assert_float_equal(cost_of(s), 1.0, 0.01);
}

static void test_too_few_stretches_say_nothing(void **state)
{
	struct step_facts s[STEPS];

	play(s, STEPS - 60, 1.2); /* three, and the last has nothing after it */
	assert_float_equal(cost_of(s), 1.0, 0);
}

/* A job that becomes slower half-way, and one step that has its own reason. */
static void test_what_else_happens_is_no_cost(void **state)
{
	struct step_facts s[STEPS];

	play(s, 0, 1.1);
	for (size_t i = STEPS / 2; i < STEPS; i++)
		s[i].dur_ns *= 3;
	s[12].dur_ns *= 50;
	assert_float_equal(cost_of(s), 1.1, 0.02);
}

static void test_bounds(void **state)
{
	struct step_facts s[STEPS];

	play(s, 0, 4);
	assert_float_equal(cost_of(s), 1.5, 0); /* no probe costs more: that is something else */
	play(s, 0, 0.5);
	assert_float_equal(cost_of(s), 1.0, 0);
}

/* Steps that are probed for a part of their time, and those of another phase, are not compared. */
static void test_others_are_left_out(void **state)
{
	struct step_facts s[STEPS];

	play(s, 0, 1.2);
	for (size_t i = 9; i < STEPS; i += 10) {
		s[i].probed = 0.4;
		s[i].dur_ns *= 2;
	}
	for (size_t i = 5; i < STEPS; i += 10) {
		s[i].class = STEP_OTHER;
		s[i].dur_ns *= 30;
	}
	assert_float_equal(cost_of(s), 1.2, 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stretches_say_what_it_costs),
		cmocka_unit_test(test_too_few_stretches_say_nothing),
		cmocka_unit_test(test_what_else_happens_is_no_cost),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_others_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
