/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/capture/host.h"

static bool registry(struct deadband *d, int second, double cpu)
{
	struct host_sample s = {.time.ns = second * (int64_t)NS_PER_S + 17 * second,
		.cpu_pct = cpu,
		.mem_pct = 50,
		.mem_total_mb = 1000};

	return deadband_admits(d, &s);
}

static void test_off(void **state)
{
	struct deadband d = {0};

	for (int i = 0; i < 5; i++)
		assert_true(registry(&d, i, 10));
}

static void test_points_alone(void **state)
{
	struct deadband d = {.points = 5};

	assert_true(registry(&d, 0, 10));
	assert_false(registry(&d, 1, 15));
	assert_false(registry(&d, 2, 5));
	assert_true(registry(&d, 3, 15.5));
	assert_false(registry(&d, 4, 11)); /* against the last one stored */
	assert_false(registry(&d, 99999, 11));
}

static void test_beat_alone(void **state)
{
	struct deadband d = {.beat_ns = 10 * NS_PER_S};
	int stored = 0;

	for (int i = 0; i < 100; i++)
		stored += registry(&d, i, i % 2 ? 90 : 10);
	assert_int_equal(stored, 10);
	assert_true(registry(&d, 50, 1)); /* the clock was set back */
}

static void test_both(void **state)
{
	struct deadband d = {.points = 5, .beat_ns = 10 * NS_PER_S};
	int stored = 0;

	for (int i = 0; i < 100; i++)
		stored += registry(&d, i, i == 55 ? 90 : 10);
	assert_int_equal(stored, 12); /* each tenth, and there and back again */
}

static void test_swap_counts(void **state)
{
	struct deadband d = {.points = 5};
	struct host_sample s = {.mem_total_mb = 1000};

	assert_true(deadband_admits(&d, &s));
	s.swap_mb = 40;
	assert_false(deadband_admits(&d, &s));
	s.swap_mb = 60;
	assert_true(deadband_admits(&d, &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_points_alone),
		cmocka_unit_test(test_beat_alone),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_swap_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
