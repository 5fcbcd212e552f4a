/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c - the conversion from monotonic to wall time, and steps of the wall clock.
 * A step is played by falsifying the remembered offset: the same difference, without root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/clock.h"

/* Far above what two readings in a row take on a busy machine, far below a wrong conversion. */
#define SLACK_NS (2LL * (int64_t)NS_PER_S)

static void test_monotonic_never_goes_back(void **state)
{
	mono_time last = mono_now();

	for (int i = 0; i < 10007; i++) {
		mono_time now = mono_now();

		assert_true(now.ns >= last.ns);
		last = now;
	}
	assert_true(last.ns > 0);
}

static void test_wall_is_in_this_age(void **state)
{
	wall_time now = wall_now();

	assert_true(now.ns > 1600000000LL * (int64_t)NS_PER_S); /* 2020 */
}

static void test_map_agrees_with_wall_clock(void **state)
{
	struct clock_map m;
	int64_t before, mapped, after;

	clock_map_init(&m);
	before = wall_now().ns;
	mapped = clock_map_wall(&m, mono_now()).ns;
	after = wall_now().ns;
	assert_true(mapped > before - (int64_t)NS_PER_MS);
	assert_true(mapped < after + (int64_t)NS_PER_MS);
	assert_int_equal(m.steps, 0);
	assert_int_equal(m.step_ns, 0);
}

static void test_map_is_a_plain_offset(void **state)
{
	struct clock_map m = {.offset_ns = -250};

	assert_int_equal(clock_map_wall(&m, (mono_time){1000}).ns, 750);
	assert_int_equal(clock_map_wall(&m, (mono_time){0}).ns, -250);
}

static void test_refresh_without_step(void **state)
{
	struct clock_map m;

	clock_map_init(&m);
	assert_false(clock_map_refresh(&m));
	assert_int_equal(m.steps, 0);
	assert_int_equal(m.step_ns, 0);
}

static void test_small_drift_is_followed_quietly(void **state)
{
	struct clock_map m;
	int64_t right;

	clock_map_init(&m);
	right = m.offset_ns;
	m.offset_ns -= 500 * (int64_t)NS_PER_US;
	assert_false(clock_map_refresh(&m));
	assert_int_equal(m.steps, 0);
	assert_true(llabs(m.offset_ns - right) < 400 * (int64_t)NS_PER_US);
}

static void test_steps_are_followed_and_counted(void **state)
{
	struct clock_map m;
	int64_t right;

	clock_map_init(&m);
	right = m.offset_ns;
	m.offset_ns -= 3600 * (int64_t)NS_PER_S; /* the wall clock jumped an hour ahead */
	assert_true(clock_map_refresh(&m));
	assert_int_equal(m.steps, 1);
	assert_true(llabs(m.step_ns - 3600 * (int64_t)NS_PER_S) < SLACK_NS);
	assert_true(llabs(m.offset_ns - right) < SLACK_NS);

	m.offset_ns += 600 * (int64_t)NS_PER_S; /* and back by ten minutes: less than before */
	assert_false(clock_map_refresh(&m));
	assert_int_equal(m.steps, 2);
	assert_true(llabs(m.step_ns - 3000 * (int64_t)NS_PER_S) < SLACK_NS);

	m.offset_ns += 7200 * (int64_t)NS_PER_S; /* back by more than it ever went */
	assert_true(clock_map_refresh(&m));
	assert_int_equal(m.steps, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_monotonic_never_goes_back),
		cmocka_unit_test(test_wall_is_in_this_age),
		cmocka_unit_test(test_map_agrees_with_wall_clock),
		cmocka_unit_test(test_map_is_a_plain_offset),
		cmocka_unit_test(test_refresh_without_step),
		cmocka_unit_test(test_small_drift_is_followed_quietly),
		cmocka_unit_test(test_steps_are_followed_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
