/* SPDX-License-Identifier: Apache-2.0 */
/* test_robust.c - nearest-rank statistics against definitions worked out by hand or by brute force.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "stat/robust.h"

static uint64_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

static void test_quantiles(void **state)
{
	uint64_t hundred[100], one = 7;

	for (unsigned i = 0; i < 100; i++)
		hundred[i] = i + 1;
	assert_int_equal(robust_quantile(hundred, 100, 0.5), 50);
	assert_int_equal(robust_quantile(hundred, 100, 0.07), 7);
	assert_int_equal(robust_quantile(hundred, 100, 0.95), 95);
	assert_int_equal(robust_quantile(hundred, 100, 1), 100);
	assert_int_equal(robust_quantile(hundred, 100, 0.001), 1);
	assert_int_equal(robust_median(hundred, 5), 3);
	assert_int_equal(robust_median(hundred, 4), 2);
	assert_int_equal(robust_median(&one, 1), 7);
	assert_int_equal(robust_median(NULL, 0), 0);
	assert_int_equal(robust_mad(NULL, 0), 0);
	assert_int_equal(robust_mad(&one, 1), 0);
}

static void test_sort(void **state)
{
	uint64_t v[] = {UINT64_MAX, 0, 5, UINT64_MAX - 1, 5};

	robust_sort(v, ARRAY_SIZE(v));
	assert_int_equal(v[0], 0);
	assert_int_equal(v[1], 5);
	assert_int_equal(v[2], 5);
	assert_int_equal(v[3], UINT64_MAX - 1);
	assert_int_equal(v[4], UINT64_MAX);
}

static void test_mad_is_the_median_distance(void **state)
{
	uint64_t seed = 42;

	for (size_t n = 1; n < 60; n++) {
		uint64_t v[60], distance[60], median;

		for (size_t i = 0; i < n; i++)
			v[i] = random_next(&seed) % 1000;
		robust_sort(v, n);
		median = robust_median(v, n);
		for (size_t i = 0; i < n; i++)
			distance[i] = v[i] > median ? v[i] - median : median - v[i];
		robust_sort(distance, n);
		assert_int_equal(robust_mad(v, n), robust_median(distance, n));
	}
}

static void test_wild_values_do_not_move_it(void **state)
{
	uint64_t v[] = {10, 11, 12, 13, 14, UINT64_MAX - 1, UINT64_MAX};

	assert_int_equal(robust_median(v, ARRAY_SIZE(v)), 13);
	assert_int_equal(robust_mad(v, ARRAY_SIZE(v)), 2);
}

static void test_what_is_on_the_way(void **state)
{
	uint64_t scratch[100], v[100];

	for (unsigned i = 0; i < 100; i++)
		v[i] = i < 20 ? 10 : i < 50 ? 20 : 40;
	assert_float_equal(robust_on_the_way(v, 100, 40, scratch), 0.3, 1e-9);
	for (unsigned i = 0; i < 100; i++)
		v[i] = i < 50 ? 10 : 40;
	assert_float_equal(robust_on_the_way(v, 100, 40, scratch), 0, 1e-9);
	for (unsigned i = 0; i < 100; i++)
		v[i] = i < 50 ? 10 : i % 2 ? 20 : 40; /* now and then, not before */
	assert_true(robust_on_the_way(v, 100, 40, scratch) < 0.08);
	assert_float_equal(robust_on_the_way(NULL, 0, 40, scratch), 0, 1e-9);
	v[0] = 0;
	assert_float_equal(robust_on_the_way(v, 1, 0, scratch), 0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_mad_is_the_median_distance),
		cmocka_unit_test(test_wild_values_do_not_move_it),
		cmocka_unit_test(test_what_is_on_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
