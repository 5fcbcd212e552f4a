// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "workload.h"

static void test_percentile(void **state)
{
	uint64_t v[100];

	for (int i = 0; i < 100; i++)
		v[i] = (uint64_t)(100 - i); /* 100..1 */
	assert_int_equal(workload_percentile(v, 100, 50), 51);
	assert_int_equal(workload_percentile(v, 100, 99), 100);
	assert_int_equal(workload_percentile(v, 100, 100), 100);
	assert_int_equal(workload_percentile(v, 1, 50), 1);
	assert_int_equal(workload_percentile(v, 0, 50), 0);
}

static void test_burn_uses_the_cpu(void **state)
{
	struct timespec a, b;
	int64_t spent;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	workload_burn(2000000);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	spent = (b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec;
	assert_true(spent >= 2000000);
	assert_true(spent < 20000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentile),
		cmocka_unit_test(test_burn_uses_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
