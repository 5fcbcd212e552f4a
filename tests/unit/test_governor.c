/* SPDX-License-Identifier: Apache-2.0 */
/* test_governor.c - the weight follows the load and the budget, and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/trace/governor.h"

static void test_within_budget_nothing_changes(void **state)
{
	struct governor g;

	governor_init(&g, 0.01, 2000, true);
	governor_period(&g, 4000, 500, 1); /* 4,500 x 2 us = 0.9 % */
	assert_int_equal(g.weight, 1);
	assert_true(g.overhead > 0.0089 && g.overhead < 0.0091);
}

static void test_over_budget_the_weight_rises_as_much_as_needed(void **state)
{
	struct governor g;

	governor_init(&g, 0.01, 2000, true);
	governor_period(&g, 50000, 0, 1); /* 10 %: a sixteenth is 0.6 % */
	assert_int_equal(g.weight, 16);
	governor_period(&g, 50000 / 16, 0, 1); /* the same load, seen a sixteenth of the time */
	assert_int_equal(g.weight, 16);
	assert_true(g.overhead < 0.01);
}

static void test_what_others_cost_does_not_hide_launches(void **state)
{
	struct governor g;

	governor_init(&g, 0.01, 1000, true);
	governor_period(&g, 10, 50000, 1); /* 5 % for others, and hardly a launch */
	assert_int_equal(g.weight, 1);
	governor_period(
		&g, 10000, 50000, 1); /* 1 % of launches: a quarter of the budget is theirs */
	assert_int_equal(g.weight, 4);
	governor_period(&g, 20, 50000, 2); /* it comes back while the others go on */
	assert_int_equal(g.weight, 2);
}

static void test_it_comes_back(void **state)
{
	struct governor g;

	governor_init(&g, 0.01, 2000, true);
	governor_period(&g, 100000, 0, 1);
	assert_int_equal(g.weight, GOVERNOR_WEIGHT_MAX);
	for (int i = 0; i < 6; i++)
		governor_period(&g, 10, 0, 1);
	assert_int_equal(g.weight, 1);
}

static void test_no_limit_and_no_switch(void **state)
{
	struct governor g;

	governor_init(&g, 0, 2000, true);
	governor_period(&g, 1000000, 0, 1);
	assert_int_equal(g.weight, 1);
	governor_init(&g, 0.01, 2000, false);
	governor_period(&g, 1000000, 0, 1);
	assert_int_equal(g.weight, 1);
	assert_true(g.overhead > 1.9); /* it says so all the same */
}

static void test_a_trial_moves_the_account_no_further_than_it_must(void **state)
{
	struct governor g;

	governor_init(&g, 0.01, 2000, true);
	governor_learn(&g, 0.05, 0.2);   /* of no load nothing is learnt */
	governor_period(&g, 4000, 0, 1); /* 0.8 % by hits x cost */
	assert_int_equal(g.weight, 1);
	governor_learn(&g, 0.002, 0.03); /* it may well be true */
	governor_period(&g, 4000, 0, 1);
	assert_int_equal(g.weight, 1);
	governor_learn(&g, 0.016, 0.03); /* twice as much at least: half of them is 0.8 % */
	governor_period(&g, 4000, 0, 1);
	assert_int_equal(g.weight, 2);
	assert_true(g.overhead > 0.0079 && g.overhead < 0.0081); /* still hits x cost */
	governor_learn(&g, 0.001, 0.006);                        /* it is less */
	governor_period(&g, 2000, 0, 1);
	assert_int_equal(g.weight, 1);
	governor_learn(&g, 5, 6);
	assert_true(g.launch_factor <= 8);
}

static void test_a_trial_costs_and_changes_nothing(void **state)
{
	struct governor g;

	governor_init(&g, 0.01, 2000, true);
	governor_trial(&g, 500000, 1);
	assert_int_equal(g.weight, 1);
	assert_true(governor_mean(&g) > 0.99);
	assert_true(g.overhead > 0.99);
	governor_trial(&g, 5, 0); /* no time has passed */
	assert_true(g.overhead > 0.99 && governor_mean(&g) > 0.99);
}

static void test_on_time_is_the_weights_share(void **state)
{
	struct governor g = {.weight = 8};
	int on = 0;

	for (int ms = 0; ms < 2000; ms++)
		on += governor_wants_on(&g, (wall_time){4000000000 + ms * 1000000LL});
	assert_int_equal(on, 250);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within_budget_nothing_changes),
		cmocka_unit_test(test_over_budget_the_weight_rises_as_much_as_needed),
		cmocka_unit_test(test_what_others_cost_does_not_hide_launches),
		cmocka_unit_test(test_it_comes_back),
		cmocka_unit_test(test_no_limit_and_no_switch),
		cmocka_unit_test(test_a_trial_moves_the_account_no_further_than_it_must),
		cmocka_unit_test(test_a_trial_costs_and_changes_nothing),
		cmocka_unit_test(test_on_time_is_the_weights_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
