/* SPDX-License-Identifier: Apache-2.0 */
/* test_border.c - a small drift before a large change is not taken for it, and nothing else is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/contrasts/regroup.h"
#include "base/clock.h"
#include "base/macros.h"

#define N 100

/* Steps since @slow are taken for slow; those since @change take @long_ns, the others before 3 ms or a little more. */
static struct classification settle(
	struct step_facts steps[N], size_t slow, size_t change, uint64_t long_ns)
{
	struct classification c = {.group = 1, .ordinary = slow, .slow = N - slow};

	for (size_t i = 0; i < N; i++)
		steps[i] = (struct step_facts){.dur_ns = i >= change ? long_ns
							 : i >= slow ? 3100 * NS_PER_US
								     : 3000 * NS_PER_US,
			.class = i >= slow ? STEP_SLOW : STEP_ORDINARY};
	border_settle(steps, N, &c);
	return c;
}

static void test_a_drift_before_a_change(void **state)
{
	struct step_facts steps[N];
	struct classification c = settle(steps, 50, 70, 18 * NS_PER_MS);

	assert_int_equal(c.ordinary, 70);
	assert_int_equal(c.slow, 30);
	assert_int_equal(steps[69].class, STEP_ORDINARY);
	assert_int_equal(steps[70].class, STEP_SLOW);
	assert_in_range(c.lost_ns, 30 * 14 * NS_PER_MS, 30 * 15 * NS_PER_MS);
}

static void test_a_hiccup_is_not_the_change(void **state)
{
	struct step_facts steps[N];
	struct classification c;

	settle(steps, 50, 70, 18 * NS_PER_MS);
	c = (struct classification){.group = 1, .ordinary = 50, .slow = 50};
	for (size_t i = 50; i < 70; i++)
		steps[i].class = STEP_SLOW;
	steps[55].dur_ns = 18 * NS_PER_MS;
	border_settle(steps, N, &c);
	assert_int_equal(steps[54].class, STEP_ORDINARY);
	assert_int_equal(steps[55].class, STEP_SLOW); /* it is slow all the same */
	assert_int_equal(steps[69].class, STEP_ORDINARY);
	assert_int_equal(c.slow, 31);
}

/* Classes that are near each other, slow steps among ordinary ones, steps in groups: as they were. */
static void test_what_is_left_alone(void **state)
{
	struct step_facts steps[N];
	struct classification c = settle(steps, 50, 70, 4 * NS_PER_MS);

	assert_int_equal(c.slow, 50);
	c = settle(steps, 50, 50, 18 * NS_PER_MS);
	assert_int_equal(c.slow, 50);
	assert_int_equal(c.lost_ns, 50 * 15 * NS_PER_MS);
	for (int way = 0; way < 2; way++) {
		settle(steps, 50, 70, 18 * NS_PER_MS);
		for (size_t i = 50; i < 70; i++)
			steps[i].class = STEP_SLOW;
		c = (struct classification){.group = way ? 8 : 1, .ordinary = 50, .slow = 50};
		if (!way)
			steps[90].class = STEP_ORDINARY;
		border_settle(steps, N, &c);
		assert_int_equal(c.slow, 50);
		assert_int_equal(steps[60].class, STEP_SLOW);
	}
	c = (struct classification){.group = 1};
	border_settle(steps, 0, &c);
	assert_int_equal(c.slow, 0);
}

/* Every 15th step waits 200 times more: it is the last piece of a unit, unless what it waits for are the copies of a model. */
static void test_a_checkpoint_ends_no_unit(void **state)
{
	struct step_account a = {.origin = STEP_BY_OPTIMIZER,
		.steps = 120,
		.mark_count = 120,
		.ordinary_steps = 112,
		.slow_steps = 8,
		.ordinary_step_ns = 30 * NS_PER_MS,
		.slow_step_ns = 800 * NS_PER_MS,
		.period_steps = 15,
		.period_confidence = 1,
		.ordinary_waits = 1,
		.slow_waits = 200,
		.slow_bytes = 1e5};

	assert_true(regroup_is_needed(&a));
	a.slow_bytes = 8e8;
	assert_false(regroup_is_needed(&a));
	a.ordinary_bytes = 4e8; /* each moves one */
	assert_true(regroup_is_needed(&a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_drift_before_a_change),
		cmocka_unit_test(test_a_hiccup_is_not_the_change),
		cmocka_unit_test(test_what_is_left_alone),
		cmocka_unit_test(test_a_checkpoint_ends_no_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
