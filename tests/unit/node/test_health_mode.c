/* SPDX-License-Identifier: Apache-2.0 */
/* test_health_mode.c - the five modes in their order, without holes between them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/health/health_monitor.h"
#include "base/clock.h"

#define S ((int64_t)NS_PER_S)

static struct health_mode_facts facts(int64_t age_s, bool quorum, bool reachable, bool warm)
{
	return (struct health_mode_facts){
		.cached = {.known = true, .value = 0.9, .quorum = quorum, .at_ns = 1000 * S},
		.now_ns = (1000 + age_s) * S,
		.push_interval_ns = 10 * NS_PER_S,
		.reachable = reachable,
		.warm = warm};
}

static void expect(struct health_mode_facts f, enum health_mode mode, double threshold)
{
	double got;

	assert_string_equal(health_mode_id(health_mode_choose(&f, &got)), health_mode_id(mode));
	assert_true(got == threshold);
}

static void test_walk(void **state)
{
	expect(facts(0, true, true, true), HEALTH_MODE_FLEET, 0.9);
	expect(facts(25, true, false, true), HEALTH_MODE_FLEET, 0.9);
	expect(facts(26, true, false, true), HEALTH_MODE_LOCAL_CACHED, 0.9);
	expect(facts(0, false, true, true), HEALTH_MODE_FLEET_CACHED, 0.9);
	expect(facts(300, false, false, true), HEALTH_MODE_LOCAL_CACHED, 0.9);
	expect(facts(301, true, false, true), HEALTH_MODE_LOCAL_BASELINE, HEALTH_LOCAL_THRESHOLD);
	expect(facts(301, true, false, false), HEALTH_MODE_NONE, 0);
}

/* A threshold of a quorum that is over 20 s old while the fleet can be reached. */
static void test_no_hole_between_fresh_and_old(void **state)
{
	expect(facts(30, true, true, true), HEALTH_MODE_FLEET_CACHED, 0.9);
	expect(facts(300, true, true, false), HEALTH_MODE_FLEET_CACHED, 0.9);
}

/* The age is looked at before a push renews it: with a push every 30 or 600 s it is that old. */
static void test_a_slow_cadence_does_not_switch_it_off(void **state)
{
	struct health_mode_facts f = facts(33, true, true, true);

	f.push_interval_ns = 30 * NS_PER_S;
	expect(f, HEALTH_MODE_FLEET, 0.9);
	f = facts(660, true, true, true);
	f.push_interval_ns = 600 * NS_PER_S;
	expect(f, HEALTH_MODE_FLEET, 0.9);
}

/* A fleet below its quorum says 0: a small cluster still watches itself. */
static void test_a_fleet_without_a_threshold(void **state)
{
	struct health_mode_facts f = facts(0, false, true, true);

	f.cached.value = 0;
	expect(f, HEALTH_MODE_LOCAL_BASELINE, HEALTH_LOCAL_THRESHOLD);
	f.warm = false;
	expect(f, HEALTH_MODE_NONE, 0);
	f = facts(0, true, true, true);
	f.cached.known = false;
	expect(f, HEALTH_MODE_LOCAL_BASELINE, HEALTH_LOCAL_THRESHOLD);
}

static void test_a_clock_that_was_set_back(void **state)
{
	expect(facts(-1, true, true, false), HEALTH_MODE_NONE, 0);
}

static void test_bounds(void **state)
{
	assert_true(health_threshold_is_usable(0.1) && health_threshold_is_usable(0.99));
	assert_false(health_threshold_is_usable(0.0999) || health_threshold_is_usable(0.991) ||
		     health_threshold_is_usable(NAN));
}

static void test_unreachable_after_three(void **state)
{
	struct health_reach r = {0};

	assert_true(health_reach_ok(&r));
	health_reach_note(&r, false);
	health_reach_note(&r, false);
	assert_true(health_reach_ok(&r));
	health_reach_note(&r, false);
	assert_false(health_reach_ok(&r));
	health_reach_note(&r, true);
	assert_true(health_reach_ok(&r));
}

static void test_modes_are_found_by_name(void **state)
{
	enum health_mode m = HEALTH_MODE_FLEET;

	assert_false(health_mode_find("", &m));
	assert_false(health_mode_find("fleets", &m));
	assert_int_equal(m, HEALTH_MODE_FLEET);
	for (int i = HEALTH_MODE_NONE; i <= HEALTH_MODE_LOCAL_BASELINE; i++) {
		assert_true(health_mode_find(health_mode_id((enum health_mode)i), &m));
		assert_int_equal(m, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_no_hole_between_fresh_and_old),
		cmocka_unit_test(test_a_slow_cadence_does_not_switch_it_off),
		cmocka_unit_test(test_a_fleet_without_a_threshold),
		cmocka_unit_test(test_a_clock_that_was_set_back),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_unreachable_after_three),
		cmocka_unit_test(test_modes_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
