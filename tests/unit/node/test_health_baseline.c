/* SPDX-License-Identifier: Apache-2.0 */
/* test_health_baseline.c - averages are right from the first sample on, and a lasting fall shows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/health/health_baseline.h"

static const struct health_baseline_settings *const S = &health_baseline_defaults;

static void add(struct health_baseline *b, double throughput, int times)
{
	const double sample[] = {throughput, 0.8, 0.9, 0.7};

	for (int i = 0; i < times; i++)
		health_baseline_add(b, S, sample);
}

static void test_constant_input_is_its_own_average(void **state)
{
	struct health_baseline b = {0};

	assert_true(health_baseline_fast(&b, S, HEALTH_THROUGHPUT) == 0);
	assert_true(health_baseline_ratio(&b, S, HEALTH_THROUGHPUT, 5) == 0);
	for (int n = 1; n <= 100; n++) {
		add(&b, 4321, 1);
		assert_true(fabs(health_baseline_fast(&b, S, HEALTH_THROUGHPUT) - 4321) < 1e-6);
		assert_true(fabs(health_baseline_floor(&b, S, HEALTH_THROUGHPUT) - 4321) < 1e-6);
		assert_true(fabs(health_baseline_floor(&b, S, HEALTH_CPU) - 0.7) < 1e-9);
	}
	assert_true(fabs(health_baseline_ratio(&b, S, HEALTH_THROUGHPUT, 4321) - 1) < 1e-9);
	assert_true(b.samples == 100);
}

/* The recurrence, written out. */
static void test_recurrence(void **state)
{
	struct health_baseline b = {0};
	double fast = 0, decay = 1;

	for (int i = 0; i < 50; i++) {
		double x = i % 7;

		add(&b, x, 1);
		fast = 0.1 * x + 0.9 * fast;
		decay *= 0.9;
		assert_true(fabs(health_baseline_fast(&b, S, HEALTH_THROUGHPUT) -
				    fast / (1 - decay)) < 1e-9);
	}
}

static void test_degradation_is_warned_about(void **state)
{
	struct health_baseline b = {0};

	add(&b, 1000, 29);
	add(&b, 0, 0);
	assert_false(health_baseline_degraded(&b, S));
	add(&b, 1000, 200);
	assert_false(health_baseline_degraded(&b, S));
	add(&b, 300, 30); /* the fast average is near 300, the long one near 900 */
	assert_true(health_baseline_degraded(&b, S));
}

/* A signal that has always been near 0 is not warned about. */
static void test_what_was_never_there_cannot_fall(void **state)
{
	struct health_baseline b = {0};
	double sample[] = {0.009, 0.8, 0.9, 0.7};

	for (int i = 0; i < 100; i++)
		health_baseline_add(&b, S, sample);
	sample[0] = 0;
	for (int i = 0; i < 100; i++)
		health_baseline_add(&b, S, sample);
	assert_false(health_baseline_degraded(&b, S));
}

static void test_no_numbers(void **state)
{
	struct health_baseline b = {0};
	const double sample[] = {NAN, INFINITY, -1, 0.5};

	health_baseline_add(&b, S, sample);
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++)
		assert_true(isfinite(b.fast[i]) && b.fast[i] >= 0);
}

static void test_settings_are_checked(void **state)
{
	struct health_baseline_settings s = *S;
	struct errinfo e = {0};

	assert_int_equal(health_baseline_check(&s, &e), 0);
	s.floor_alpha = s.fast_alpha;
	assert_true(health_baseline_check(&s, &e) < 0);
	s = *S;
	s.fast_alpha = 1;
	assert_true(health_baseline_check(&s, &e) < 0);
	s = *S;
	s.warning_ratio = 0;
	assert_true(health_baseline_check(&s, &e) < 0);
	s = *S;
	s.floor_warmth_min = 1;
	assert_true(health_baseline_check(&s, &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constant_input_is_its_own_average),
		cmocka_unit_test(test_recurrence),
		cmocka_unit_test(test_degradation_is_warned_about),
		cmocka_unit_test(test_what_was_never_there_cannot_fall),
		cmocka_unit_test(test_no_numbers),
		cmocka_unit_test(test_settings_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
