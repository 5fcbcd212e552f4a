/* SPDX-License-Identifier: Apache-2.0 */
/* test_periodicity.c - periods with jitter and gaps are found; chance is not a period. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "stat/periodicity.h"

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

static void test_exact(void **state)
{
	uint64_t p[30];
	struct periodicity r;

	for (uint64_t i = 0; i < 30; i++)
		p[i] = 3 + 14 * i;
	assert_true(periodicity_find(p, 30, &r));
	assert_true(r.period == 14 && r.jitter == 0 && r.missed == 0);
	assert_true(r.confidence > 0.85);
	assert_true(periodicity_find(p, 4, &r)); /* the fewest that can tell */
	assert_true(r.confidence < 0.7);
	assert_false(periodicity_find(p, 3, &r));
}

static void test_jitter_and_missing(void **state)
{
	struct periodicity r;

	for (seed = 1; seed < 200; seed += 7) {
		uint64_t p[40], n = 0;

		for (uint64_t i = 0; i < 40; i++)
			if (i % 7 != 3)
				p[n++] = 100 + 14 * i + draw(3) - 1;
		assert_true(periodicity_find(p, n, &r));
		assert_true(r.period > 13.8 && r.period < 14.2);
		assert_true(r.jitter <= 2 && r.missed >= 4);
		assert_true(r.confidence > 0.3 && r.confidence < 0.9);
	}
}

static void test_times_in_nanoseconds(void **state)
{
	uint64_t p[20];
	struct periodicity r;

	seed = 5;
	for (uint64_t i = 0; i < 20; i++)
		p[i] = UINT64_C(1774099490000000000) + i * 250000000 + draw(20000000);
	assert_true(periodicity_find(p, 20, &r));
	assert_true(r.period > 240e6 && r.period < 260e6);
}

/* At any rate of random stalls, and at any length, next to none may be called periodic. */
static void test_random_is_refused(void **state)
{
	static const uint64_t one_in[] = {2, 3, 5, 8, 15, 40};
	struct periodicity r;
	int found = 0, trials = 0;

	seed = 77;
	for (size_t k = 0; k < ARRAY_SIZE(one_in); k++) {
		for (int t = 0; t < 300; t++) {
			uint64_t p[64], n = 0, most = 5 + draw(59);

			for (uint64_t at = 0; n < most; at++)
				if (draw(one_in[k]) == 0)
					p[n++] = at;
			found += periodicity_find(p, n, &r);
			trials++;
		}
	}
	assert_true(found * 100 <= trials * 2);
}

static void test_always_is_no_period(void **state)
{
	uint64_t p[50];
	struct periodicity r;

	for (uint64_t i = 0; i < 50; i++)
		p[i] = i;
	assert_false(periodicity_find(p, 50, &r));
	for (uint64_t i = 0; i < 50; i++)
		p[i] = 2 * i; /* every second one is */
	assert_true(periodicity_find(p, 50, &r));
	assert_true(r.period == 2);
}

static void test_hostile(void **state)
{
	uint64_t back[] = {5, 4, 3, 2, 1}, same[] = {7, 7, 7, 7, 7};
	uint64_t wide[] = {0, 1, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
	struct periodicity r = {.period = -1};

	assert_false(periodicity_find(NULL, 0, &r));
	assert_false(periodicity_find(back, 5, &r));
	assert_false(periodicity_find(same, 5, &r));
	assert_false(periodicity_find(wide, 5, &r));
	assert_true(r.period == -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_jitter_and_missing),
		cmocka_unit_test(test_times_in_nanoseconds),
		cmocka_unit_test(test_random_is_refused),
		cmocka_unit_test(test_always_is_no_period),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
