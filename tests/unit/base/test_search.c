/* SPDX-License-Identifier: Apache-2.0 */
/* test_search.c - against looking at one element after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macros.h"
#include "base/search.h"

static void test_nothing_to_search(void **state)
{
	const int *none = NULL;

	assert_int_equal(LOWER_BOUND(i, 0, none[i] < 3), 0);
}

static void test_ends(void **state)
{
	static const int v[] = {2, 4, 4, 4, 9};

	assert_int_equal(LOWER_BOUND(i, ARRAY_SIZE(v), v[i] < 1), 0);
	assert_int_equal(LOWER_BOUND(i, ARRAY_SIZE(v), v[i] < 4), 1);
	assert_int_equal(LOWER_BOUND(i, ARRAY_SIZE(v), v[i] <= 4), 4);
	assert_int_equal(LOWER_BOUND(i, ARRAY_SIZE(v), v[i] <= 9), ARRAY_SIZE(v));
}

/* Every length up to 40, with elements that repeat, and every value between and around them. */
static void test_against_one_after_the_other(void **state)
{
	int v[40];

	for (size_t n = 0; n <= ARRAY_SIZE(v); n++) {
		for (size_t k = 0; k < n; k++)
			v[k] = (int)(k / 3 * 2);
		for (int x = -1; x < 30; x++) {
			size_t below = 0, within = 0;

			while (below < n && v[below] < x)
				below++;
			while (within < n && v[within] <= x)
				within++;
			assert_int_equal(LOWER_BOUND(i, n, v[i] < x), below);
			assert_int_equal(LOWER_BOUND(k, n, v[k] <= x), within);
		}
	}
}

/* No element is looked at twice, and few are: also where indices go beyond 32 bits. */
static void test_looks_at_few(void **state)
{
	size_t n = (size_t)1 << 40, looks = 0;

	assert_int_equal(LOWER_BOUND(i, n, (looks++, i < n - 3)), n - 3);
	assert_in_range(looks, 40, 41);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_to_search),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_against_one_after_the_other),
		cmocka_unit_test(test_looks_at_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
