/* SPDX-License-Identifier: Apache-2.0 */
/* test_compare.c - two sets that differ and two that only seem to. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "stat/compare.h"

#define N 200

static double random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*seed >> 33) / (double)(UINT64_C(1) << 31);
}

/* About normal, with a standard deviation of 1. */
static double noise(uint64_t *seed)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += random_next(seed);
	return sum;
}

/* Welch, 1947: two small sets with another spread each, by hand. */
static void test_welch(void **state)
{
	struct compare_set a = {5, 10, 1}, b = {5, 14, 4};
	struct compared c = compare_sets(&a, &b, 0);

	/* sqrt(1/5 + 4/5) = 1, 5.88 degrees of freedom: t = 3.74 at 99 % */
	assert_true(fabs(c.margin - 3.74) < 0.02);
	assert_true(c.difference == 4 && c.verdict == COMPARE_MORE);
	assert_int_equal(compare_sets(&b, &a, 0).verdict, COMPARE_LESS);
	b.mean = 13.5;
	assert_int_equal(compare_sets(&a, &b, 0).verdict, COMPARE_NOISE);
	b.mean = 14;
	assert_int_equal(
		compare_sets(&a, &b, 4.5).verdict, COMPARE_NOISE); /* too small to matter */
	b.count = 2;
	assert_int_equal(compare_sets(&a, &b, 0).verdict, COMPARE_UNKNOWN);
	a = b = (struct compare_set){100, 7, 0};
	assert_int_equal(compare_sets(&a, &b, 0).verdict, COMPARE_NOISE);
	b.mean = 8; /* no spread at all: any difference is one */
	assert_int_equal(compare_sets(&a, &b, 0).verdict, COMPARE_MORE);
}

/* Equal sets are called different in about 2 of 100 cases, no more, whatever their numbers. */
static void test_noise(void **state)
{
	static const size_t sizes[][2] = {{3, 3}, {5, 5}, {4, 60}, {N, N}};
	double a[N], b[N];
	uint64_t seed = 1;

	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		int wrong = 0;

		for (int trial = 0; trial < 1000; trial++) {
			for (size_t i = 0; i < N; i++) {
				a[i] = 100 + noise(&seed);
				b[i] = 100 + noise(&seed);
			}
			wrong += compare_values(a, sizes[s][0], b, sizes[s][1], 0).verdict !=
				 COMPARE_NOISE;
		}
		assert_in_range(wrong, 0, 35);
	}
}

/* One wild value hides nothing and proves nothing; a slow one in twenty is a difference. */
static void test_wild(void **state)
{
	double a[N], b[N];
	uint64_t seed = 2;

	for (size_t i = 0; i < N; i++) {
		a[i] = 26 + noise(&seed);
		b[i] = 40 + noise(&seed);
	}
	a[0] = b[0] = 5000;
	assert_int_equal(compare_values(a, N, b, N, 1).verdict, COMPARE_MORE);
	for (size_t i = 0; i < N; i++)
		a[i] = b[i] = 26 + noise(&seed);
	b[17] = 5000;
	assert_int_equal(compare_values(a, N, b, N, 1).verdict, COMPARE_NOISE);
	for (size_t i = 0; i < N; i++)
		a[i] = b[i] = 26 + noise(&seed);
	for (size_t i = 0; i < N; i += 20)
		b[i] = 126;
	assert_int_equal(compare_values(a, N, b, N, 1).verdict, COMPARE_MORE);
}

/* Five buckets that are all larger are enough, however far they are apart; four are not, and a spread that overlaps. */
static void test_order(void **state)
{
	double a[] = {10, 11, 12, 13, 14}, b[] = {20, 2000, 35, 300, 28000};
	double c[] = {20, 2000, 13.5, 300, 28000};

	assert_int_equal(compare_values(a, 4, b, 4, 1).verdict, COMPARE_NOISE);
	assert_int_equal(compare_values(a, 5, b, 5, 1).verdict, COMPARE_MORE);
	assert_int_equal(compare_values(b, 5, a, 5, 1).verdict, COMPARE_LESS);
	assert_int_equal(compare_values(a, 5, c, 5, 1).verdict, COMPARE_NOISE);
	assert_int_equal(compare_values(a, 0, b, 5, 1).verdict, COMPARE_UNKNOWN);
}

/* What happens in half of the time: Welch's spread is as large as the difference. */
static void test_part(void **state)
{
	double a[] = {3, 3, 4, 4, 5}, b[] = {0, 3, 4, 1400, 1400}, once[] = {3, 4, 4, 4, 1400};
	double none[] = {0, 0, 0, 0, 0}, some[] = {0, 0, 0, 2, 2};

	assert_int_equal(compare_values(a, 5, b, 5, 1).verdict, COMPARE_NOISE);
	assert_int_equal(compare_part(a, 5, b, 5, 1), COMPARE_MORE);
	assert_int_equal(compare_part(b, 5, a, 5, 1), COMPARE_LESS);
	assert_int_equal(compare_part(a, 5, once, 5, 1), COMPARE_NOISE); /* one burst is chance */
	assert_int_equal(compare_part(a, 5, a, 5, 1), COMPARE_NOISE);
	assert_int_equal(compare_part(none, 5, some, 5, 1), COMPARE_MORE);
	assert_int_equal(compare_part(none, 5, some, 5, 3), COMPARE_NOISE); /* too little */
	assert_int_equal(compare_part(a, 2, b, 5, 1), COMPARE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_welch),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_wild),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
