/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost_felt.c - a job that waits for its GPU does not lose what probes take; one that keeps its GPU
 * waiting loses all of it; what trials find comes before what is reckoned. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/trace/governor.h"

#define ABOUT(x, y) assert_true(fabs((x) - (y)) < 1e-9)

static struct cost_load load(double launches, double waits, double waited_share)
{
	return (struct cost_load){.seconds = 2,
		.launches = 2 * launches,
		.waits = 2 * waits,
		.waited_ns = 2 * waited_share * (double)NS_PER_S};
}

static void launch_bound_feels_all_of_it(void **state)
{
	struct cost_load l = load(40000, 70, 0.0002); /* an H200's: it hardly ever waits */
	struct cost_felt f = cost_felt_guess(0.02, &l);

	ABOUT(f.high, 0.02);
	ABOUT(f.low, 0.0198);
	ABOUT(f.share, f.low);
}

static void without_a_wait_nothing_is_hidden(void **state)
{
	struct cost_load l = load(40000, 0, 0), none = {0};

	ABOUT(cost_felt_guess(0.02, &l).low, 0.02);
	ABOUT(cost_felt_guess(0.02, &none).low, 0.02);
}

static void gpu_bound_may_feel_none_of_it(void **state)
{
	struct cost_load l = load(36000, 60, 0.5); /* 600 launches a step, and then it waits */
	struct cost_felt f = cost_felt_guess(0.025, &l);

	ABOUT(f.high, 0.025);
	ABOUT(f.low, 0.025 / 600);
	ABOUT(f.share, f.low);
	l = load(36000, 0, 0.5); /* it waits in launches only, for room in the queue */
	ABOUT(cost_felt_guess(0.025, &l).low, 0);
}

/* Waits for every launch: the GPU has nothing to do while the probe runs, however long the wait. */
static void a_launch_after_a_wait_is_felt(void **state)
{
	struct cost_load l = load(5000, 5000, 0.8);

	ABOUT(cost_felt_guess(0.01, &l).low, 0.01);
	l = load(10000, 5000, 0.8);
	ABOUT(cost_felt_guess(0.01, &l).low, 0.005);
	l = load(0, 5000, 0.8);
	ABOUT(cost_felt_guess(0.01, &l).low, 0.01);
}

static void short_waits_hide_their_length(void **state)
{
	struct cost_load l = load(36000, 60, 0.015);

	ABOUT(cost_felt_guess(0.025, &l).low, 0.01);
}

static void loads_add_up(void **state)
{
	struct cost_load sum = {0}, one = load(100, 1, 0), other = load(300, 3, 0.5);

	cost_load_add(&sum, &one);
	cost_load_add(&sum, &other);
	ABOUT(sum.seconds, 4);
	ABOUT(sum.launches, 800);
	ABOUT(sum.waits, 8);
	ABOUT(sum.waited_ns, (double)NS_PER_S);
}

static void a_trial_by_the_clock_comes_last(void **state)
{
	struct cost_felt others = {.share = 0.001, .low = 0, .high = 0.002}, f;
	struct cost_found found = {.cpu = {0.2, 0.16, 0.24}, .clock = {0.001, -0.002, 0.003}};

	/* GPU-bound, and asleep while it waits: the CPU time is paid, and nothing lost. */
	f = cost_felt_join(0.04, &found, 0.5, &others);
	ABOUT(f.low, 0);
	ABOUT(f.share, 0.003 * 0.5 + 0.001);
	ABOUT(f.high, 0.003 * 0.5 + 0.002);

	/* Launch-bound, noisy by the clock: what CPU time says is kept. */
	found.clock = (struct paired){0.1, -0.3, 0.9};
	f = cost_felt_join(0.04, &found, 0.5, &others);
	ABOUT(f.low, 0);
	ABOUT(f.share, 0.16 * 0.5 + 0.001);
	ABOUT(f.high, 0.24 * 0.5 + 0.002);

	/* The account is within both: it stays. */
	found.cpu.low = 0.03;
	ABOUT(cost_felt_join(0.04, &found, 1, &others).share, 0.041);
}

static void a_clock_that_says_more_than_the_cpu_is_believed(void **state)
{
	struct cost_felt others = {0}, f;
	struct cost_found found = {.cpu = {0, -0.01, 0.01}, .clock = {0.06, 0.05, 0.07}};

	f = cost_felt_join(0.04, &found, 1, &others);
	ABOUT(f.low, 0.05);
	ABOUT(f.share, 0.05);
	ABOUT(f.high, 0.07);
}

static void a_wide_trial_reaches_no_further_than_twice_the_account(void **state)
{
	struct cost_felt others = {0}, f;
	struct cost_found found = {.cpu = {0.02, -0.30, 0.60}, .clock = {0.02, -0.30, 0.57}};

	f = cost_felt_join(0.004, &found, 1, &others);
	ABOUT(f.low, 0);
	ABOUT(f.share, 0.004);
	ABOUT(f.high, 0.008);
}

static void probes_do_not_make_steps_shorter(void **state)
{
	struct cost_felt others = {0}, f;
	struct cost_found found = {.cpu = {-0.02, -0.03, -0.01}, .clock = {-0.02, -0.03, -0.01}};

	f = cost_felt_join(0.04, &found, 1, &others);
	ABOUT(f.low, 0);
	ABOUT(f.share, 0);
	ABOUT(f.high, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launch_bound_feels_all_of_it),
		cmocka_unit_test(without_a_wait_nothing_is_hidden),
		cmocka_unit_test(gpu_bound_may_feel_none_of_it),
		cmocka_unit_test(a_launch_after_a_wait_is_felt),
		cmocka_unit_test(short_waits_hide_their_length),
		cmocka_unit_test(loads_add_up),
		cmocka_unit_test(a_trial_by_the_clock_comes_last),
		cmocka_unit_test(a_clock_that_says_more_than_the_cpu_is_believed),
		cmocka_unit_test(a_wide_trial_reaches_no_further_than_twice_the_account),
		cmocka_unit_test(probes_do_not_make_steps_shorter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
