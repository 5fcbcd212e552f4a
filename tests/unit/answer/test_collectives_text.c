/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "answer/collectives.h"

/* 1 GiB in 10 ms among 4 ranks, twice; the better of them at 200 GB/s. */
static void test_bandwidth_by_operation_and_size(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct collectives_answer a = {.calls = 2};
	unsigned size = bandwidth_class(1e9);

	a.ops[NCCL_ALL_REDUCE].calls = 2;
	a.ops[NCCL_ALL_REDUCE].speeds[size] = (struct collective_speed){
		.calls = 2, .size = 2e9, .seconds = 0.02, .factor = 1.5, .best = 200e9};
	collectives_text(&b, &a);
	assert_int_equal(b.err, 0);
	assert_non_null(strstr(buf_str(&b), "COLLECTIVE, GB/s"));
	assert_non_null(strstr(buf_str(&b), "ncclAllReduce"));
	assert_non_null(strstr(buf_str(&b), bandwidth_class_name(size)));
	assert_non_null(strstr(buf_str(&b), "100.00       150.00       200.00\n"));
	assert_non_null(strstr(buf_str(&b), "A lower bound"));
	assert_null(strstr(buf_str(&b), "unknown"));
}

static void test_calls_whose_time_is_not_known(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct collectives_answer a = {.calls = 2};

	a.ops[NCCL_ALL_REDUCE].calls = 2;
	collectives_text(&b, &a);
	assert_non_null(strstr(buf_str(&b), "unknown: when the calls ended was not recorded\n"));
	assert_null(strstr(buf_str(&b), "ncclAllReduce"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bandwidth_by_operation_and_size),
		cmocka_unit_test(test_calls_whose_time_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
