/* SPDX-License-Identifier: Apache-2.0 */
/* test_paired.c - the interval holds the truth as often as it says, whatever the noise. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macros.h"
#include "stat/compare.h"

#define TRIALS 500

static double uniform(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*seed >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

static double normal(uint64_t *seed)
{
	return sqrt(-2 * log(uniform(seed))) * cos(2 * 3.14159265358979 * uniform(seed));
}

/* One difference: of 100 windows one is disturbed by something else altogether. */
static double difference(uint64_t *seed, double truth, double noise)
{
	double wild = uniform(seed) < 0.01 ? 20 : 1;

	return truth + wild * noise * normal(seed);
}

static void the_truth_is_in_the_interval(void **state)
{
	static const double truths[] = {0, 0.03, 0.10}, noises[] = {0.01, 0.05};
	static const size_t sizes[] = {8, 16, 32};
	uint64_t seed = 11;

	for (size_t t = 0; t < ARRAY_SIZE(truths); t++)
		for (size_t s = 0; s < ARRAY_SIZE(sizes); s++)
			for (size_t k = 0; k < ARRAY_SIZE(noises); k++) {
				int held = 0;

				for (int trial = 0; trial < TRIALS; trial++) {
					double d[PAIRED_MAX];
					struct paired p;

					for (size_t i = 0; i < sizes[s]; i++)
						d[i] = difference(&seed, truths[t], noises[k]);
					assert_int_equal(paired_estimate(d, sizes[s], &p), 0);
					assert_true(p.low <= p.middle && p.middle <= p.high);
					held += p.low <= truths[t] && truths[t] <= p.high;
				}
				/* 95 % are meant; below 90 % has a chance of one in a million. */
				assert_in_range(held, TRIALS * 9 / 10, TRIALS);
			}
}

/* An interval that always holds the truth because it is endless would pass the test above. */
static void the_interval_is_no_wider_than_need_be(void **state)
{
	double d[PAIRED_MAX], width = 0;
	uint64_t seed = 5;
	struct paired p;

	for (int trial = 0; trial < TRIALS; trial++) {
		for (size_t i = 0; i < 16; i++)
			d[i] = difference(&seed, 0.03, 0.01);
		paired_estimate(d, 16, &p);
		width += (p.high - p.low) / TRIALS;
	}
	/* Student's for the same noise: 2 x 2.13 x 0.01 / 4. */
	assert_true(width > 0.008 && width < 0.014);
}

static void known_values(void **state)
{
	const double d[] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct paired p = {.middle = 77};

	assert_int_equal(paired_estimate(d, 7, &p), -ERANGE);
	assert_true(p.middle == 77);
	assert_int_equal(paired_estimate(d, 8, &p), 0);
	assert_true(p.middle == 4.5);
	/* The tables leave out 3 of 36 at either end: 1, 1.5, 2 | 2. */
	assert_true(p.low == 2 && p.high == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_truth_is_in_the_interval),
		cmocka_unit_test(the_interval_is_no_wider_than_need_be),
		cmocka_unit_test(known_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
