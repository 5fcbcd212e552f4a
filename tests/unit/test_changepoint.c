/* SPDX-License-Identifier: Apache-2.0 */
/* test_changepoint.c - a lasting shift is found where it is; noise, spikes and spells are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/macros.h"
#include "stat/changepoint.h"

#define N 400
static uint64_t seed, v[N];

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

static void noise(uint64_t level, uint64_t spread)
{
	for (size_t i = 0; i < N; i++)
		v[i] = level + draw(spread);
}

static void test_shift(void **state)
{
	static const size_t at[] = {30, 50, 200, 350, 370};
	struct changepoint c;

	for (size_t k = 0; k < ARRAY_SIZE(at); k++) {
		seed = k + 1;
		noise(25000, 3000);
		for (size_t i = at[k]; i < N; i++)
			v[i] += 16000;
		for (size_t i = 7; i < N; i += 19)
			v[i] *= 20; /* outliers */
		assert_true(changepoint_find(v, N, &c));
		assert_in_range(c.index, at[k] - 2, at[k] + 2);
		assert_in_range(c.before, 25000, 28500);
		assert_in_range(c.after, 41000, 44500);
		assert_true(c.confidence > 0.8 && c.confidence <= 1);
	}
}

static void test_faster_is_a_shift_too(void **state)
{
	struct changepoint c;

	noise(50000, 100);
	for (size_t i = 100; i < N; i++)
		v[i] -= 20000;
	assert_true(changepoint_find(v, N, &c));
	assert_int_equal(c.index, 100);
	assert_true(c.after < c.before);
}

static void test_noise_is_none(void **state)
{
	struct changepoint c;
	int found = 0;

	for (seed = 1; seed < 100000; seed += 331) {
		uint64_t was = seed;

		noise(25000, 20000);
		found += changepoint_find(v, N, &c);
		seed = was;
	}
	assert_int_equal(found, 0);
}

static void test_spikes_and_spells_are_none(void **state)
{
	struct changepoint c;

	seed = 3;
	noise(25000, 1000);
	v[200] = 100000000;
	assert_false(changepoint_find(v, N, &c));
	for (size_t i = 200; i < 206; i++)
		v[i] = 100000;
	assert_false(changepoint_find(v, N, &c));
	for (size_t i = 150; i < 250; i++)
		v[i] = 60000; /* back to normal afterwards */
	assert_false(changepoint_find(v, N, &c));
	noise(25000, 1000);
	for (size_t i = 0; i < N; i += 10)
		v[i] = 90000; /* every tenth is slow */
	assert_false(changepoint_find(v, N, &c));
}

static void test_drift_is_none(void **state)
{
	struct changepoint c;

	seed = 9;
	noise(25000, 100);
	for (size_t i = 0; i < N; i++)
		v[i] += i *
			5; /* within a tenth: its halves overlap too little to refuse by share */
	if (changepoint_find(v, N, &c))
		assert_true(c.after - c.before < 2500);
}

static void test_long_and_hostile(void **state)
{
	size_t n = 1000003;
	uint64_t *many = calloc(n, sizeof(*many));
	struct changepoint c = {.index = 77};

	assert_non_null(many);
	assert_false(changepoint_find(NULL, 0, &c));
	assert_false(changepoint_find(many, 15, &c));
	assert_false(changepoint_find(many, n, &c));
	assert_int_equal(c.index, 77);
	for (size_t i = 700000; i < n; i++)
		many[i] = UINT64_MAX;
	assert_true(changepoint_find(many, n, &c));
	assert_in_range(c.index, 700000 - 32, 700000 + 32);
	assert_true(c.after == UINT64_MAX && c.before == 0);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shift),
		cmocka_unit_test(test_faster_is_a_shift_too),
		cmocka_unit_test(test_noise_is_none),
		cmocka_unit_test(test_spikes_and_spells_are_none),
		cmocka_unit_test(test_drift_is_none),
		cmocka_unit_test(test_long_and_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
