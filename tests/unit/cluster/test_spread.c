/* SPDX-License-Identifier: Apache-2.0 */
/* test_spread.c - median, MAD and the factor for small samples, by definition and by Monte Carlo. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cluster/detect/spread.h"
#include "nodes_fixture.h"

static void test_median_and_mad(void **state)
{
	double odd[] = {5, 1, 9, 3, 4}, even[] = {4, 1, 3, 10}, same[] = {2, 2, 2}, one[] = {7};
	struct spread s;

	spread_sort(odd, 5);
	s = spread_of(odd, 5, 2, 0);
	assert_float_equal(s.median, 4, 0);
	assert_float_equal(s.mad, 1, 0); /* 0 1 1 3 5 */
	spread_sort(even, 4);
	s = spread_of(even, 4, 2, 0);
	assert_float_equal(s.median, 3.5, 0);
	assert_float_equal(s.mad, 1.5, 0); /* 0.5 0.5 2.5 6.5 */
	s = spread_of(same, 3, 2, 0.01);
	assert_float_equal(s.mad, 0, 0);
	assert_true(s.sigma > 0.0148); /* the floor */
	s = spread_of(one, 1, 2, 0);
	assert_float_equal(s.median, 7, 0);
	assert_float_equal(s.mad, 0, 0);
	s = spread_of(NULL, 0, 2, 0.01);
	assert_int_equal(s.count, 0);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void test_mad_is_the_median_distance(void **state)
{
	uint64_t seed = 7;

	for (size_t n = 1; n < 70; n++) {
		double v[70], distance[70];
		struct spread s;

		for (size_t i = 0; i < n; i++)
			v[i] = floor(random_uniform(&seed) * 20);
		spread_sort(v, n);
		s = spread_of(v, n, 2, 0);
		for (size_t i = 0; i < n; i++)
			distance[i] = fabs(v[i] - s.median);
		qsort(distance, n, sizeof(*distance), by_value);
		assert_float_equal(s.mad, spread_median(distance, n), 1e-12);
	}
}

/* Of @n healthy nodes with normal scores, what part is below median - k sigma? */
static double flagged(size_t n, double k, size_t draws, bool corrected)
{
	uint64_t seed = 99 + n;
	size_t below = 0, all = 0;
	double v[1000];

	while (all < draws) {
		struct spread s;

		for (size_t i = 0; i < n; i++)
			v[i] = 0.9 + 0.02 * random_normal(&seed);
		spread_sort(v, n);
		s = spread_of(v, n, k, 1e-9);
		if (!corrected)
			s.sigma /= spread_factor(n, k);
		for (size_t i = 0; i < n; i++)
			below += v[i] < s.median - k * s.sigma;
		all += n;
	}
	return (double)below / (double)all;
}

static void test_false_flags_at_every_size(void **state)
{
	const size_t sizes[] = {3, 4, 5, 6, 8, 16, 23, 64, 200};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		double rate = flagged(sizes[i], 2, 400000, true);

		print_message("k 2, %zu nodes: %.2f %% flagged, uncorrected %.2f %%\n", sizes[i],
			100 * rate, 100 * flagged(sizes[i], 2, 400000, false));
		assert_true(rate > 0.0205 && rate < 0.0250);
	}
	assert_true(flagged(3, 2, 400000, false) > 0.07); /* what the factor is for */
}

static void test_published_rates_of_k(void **state)
{
	double k15 = flagged(1000, 1.5, 2000000, true), k2 = flagged(1000, 2, 2000000, true),
	       k3 = flagged(1000, 3, 2000000, true);

	print_message("1000 nodes: %.2f %%, %.2f %%, %.3f %%\n", 100 * k15, 100 * k2, 100 * k3);
	assert_float_equal(k15, 0.067, 0.003);
	assert_float_equal(k2, 0.023, 0.002);
	assert_float_equal(k3, 0.0013, 0.0003);
}

static void test_z(void **state)
{
	assert_float_equal(spread_z(0.02275), 2, 0.001);
	assert_float_equal(spread_z(0.00135), 3, 0.001);
	assert_float_equal(spread_z(3.167e-5), 4, 0.001);
}

static void test_split(void **state)
{
	double v[64];

	for (unsigned bad = 0; bad <= 44; bad++) {
		uint64_t seed = bad;

		for (unsigned i = 0; i < 64; i++)
			v[i] = i < bad ? 0.3 + 0.4 * random_uniform(&seed)
				       : 0.95 + 0.01 * random_normal(&seed);
		spread_sort(v, 64);
		assert_int_equal(spread_is_split(v, 64, 0.01), bad >= 32);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median_and_mad),
		cmocka_unit_test(test_mad_is_the_median_distance),
		cmocka_unit_test(test_false_flags_at_every_size),
		cmocka_unit_test(test_published_rates_of_k),
		cmocka_unit_test(test_z),
		cmocka_unit_test(test_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
