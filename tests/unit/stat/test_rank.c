/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank.c - places of values in their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "stat/robust.h"

static void test_places(void **state)
{
	static const uint64_t values[] = {30, 10, 20, 20, UINT64_MAX, 20};
	static const double places[] = {5, 1, 3, 3, 6, 3};
	double got[ARRAY_SIZE(values)];

	assert_int_equal(rank_values(values, ARRAY_SIZE(values), got), 0);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_float_equal(got[i], places[i], 0);
}

static void test_all_are_equal(void **state)
{
	static const uint64_t values[] = {7, 7, 7, 7};
	double got[ARRAY_SIZE(values)];

	assert_int_equal(rank_values(values, ARRAY_SIZE(values), got), 0);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_float_equal(got[i], 2.5, 0);
	assert_int_equal(rank_values(values, 0, got), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_all_are_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
