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
		cmocka_unit_test(test_it_comes_back),
		cmocka_unit_test(test_no_limit_and_no_switch),
		cmocka_unit_test(test_on_time_is_the_weights_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
