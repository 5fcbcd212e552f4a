/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "stat/robust.h"

#define COUNT 257

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* As sorting has it, of few different values and of many, whatever the seed. */
static void test_kth_is_that_of_the_sorted(void **state)
{
	int64_t values[COUNT], sorted[COUNT], copy[COUNT];

	for (uint64_t different = 1; different <= 4 * COUNT; different *= 4) {
		for (uint64_t i = 0; i < COUNT; i++)
			values[i] = (int64_t)(hash_number(i) % different) - (int64_t)different / 2;
		memcpy(sorted, values, sizeof(sorted));
		qsort(sorted, COUNT, sizeof(*sorted), ascending);
		for (size_t k = 0; k < COUNT; k++) {
			memcpy(copy, values, sizeof(copy));
			assert_int_equal(select_kth(copy, COUNT, k, k), sorted[k]);
		}
		qsort(copy, COUNT, sizeof(*copy), ascending); /* none was lost */
		assert_memory_equal(copy, sorted, sizeof(sorted));
	}
}

static void test_one_value(void **state)
{
	int64_t v[] = {INT64_MIN};

	assert_int_equal(select_kth(v, 1, 0, 7), INT64_MIN);
}

static void test_sums_and_products_stay_at_the_highest(void **state)
{
	assert_int_equal(capped_sum(1, 2), 3);
	assert_int_equal(capped_sum(UINT64_MAX - 1, 1), UINT64_MAX);
	assert_int_equal(capped_sum(UINT64_MAX, 2), UINT64_MAX);
	assert_int_equal(capped_product(6, 7), 42);
	assert_int_equal(capped_product(1ULL << 32, 1ULL << 32), UINT64_MAX);
	assert_int_equal(capped_product(UINT64_MAX, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kth_is_that_of_the_sorted),
		cmocka_unit_test(test_one_value),
		cmocka_unit_test(test_sums_and_products_stay_at_the_highest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
