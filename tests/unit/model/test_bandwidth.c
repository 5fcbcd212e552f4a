/* SPDX-License-Identifier: Apache-2.0 */
/* test_bandwidth.c - sizes, factors and classes as nccl-tests has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/collective.h"
#include "wire/ids.h"

#define NEAR(a, b) assert_true((a) - (b) < 1e-9 && (b) - (a) < 1e-9)

static void test_sizes_are_of_all_ranks(void **state)
{
	NEAR(bandwidth_size(NCCL_ALL_REDUCE, 1000, 8), 1000);
	NEAR(bandwidth_size(NCCL_BROADCAST, 1000, 8), 1000);
	NEAR(bandwidth_size(NCCL_SEND, 1000, 8), 1000);
	NEAR(bandwidth_size(NCCL_ALL_GATHER, 1000, 8), 8000);
	NEAR(bandwidth_size(NCCL_REDUCE_SCATTER, 1000, 8), 8000);
	NEAR(bandwidth_size(NCCL_ALL_TO_ALL, 1000, 8), 8000);
	NEAR(bandwidth_size(NCCL_ALL_GATHER, 1000, -1), 1000); /* ranks not known */
}

static void test_factors(void **state)
{
	NEAR(bandwidth_factor(NCCL_ALL_REDUCE, 8), 2.0 * 7 / 8);
	NEAR(bandwidth_factor(NCCL_ALL_REDUCE, 2), 1);
	NEAR(bandwidth_factor(NCCL_ALL_GATHER, 4), 3.0 / 4);
	NEAR(bandwidth_factor(NCCL_REDUCE_SCATTER, 4), 3.0 / 4);
	NEAR(bandwidth_factor(NCCL_ALL_TO_ALL, 4), 3.0 / 4);
	NEAR(bandwidth_factor(NCCL_BCAST, 4), 1);
	NEAR(bandwidth_factor(NCCL_REDUCE, 4), 1);
	NEAR(bandwidth_factor(NCCL_RECV, -1), 1);
	NEAR(bandwidth_factor(NCCL_ALL_REDUCE, 1), 0);  /* nothing goes over a bus */
	NEAR(bandwidth_factor(NCCL_ALL_REDUCE, -1), 0); /* not known */
	NEAR(bandwidth_factor(NCCL_GROUP_END, 8), 0);
}

static void test_classes(void **state)
{
	assert_int_equal(bandwidth_class(0), 0);
	assert_int_equal(bandwidth_class(65535), 0);
	assert_int_equal(bandwidth_class(65536), 1);
	assert_int_equal(bandwidth_class(1 << 20), 2);
	assert_int_equal(bandwidth_class(16 << 20), 3);
	assert_int_equal(bandwidth_class(1e12), 4);
	assert_string_equal(bandwidth_class_name(2), "1 - 16 MiB");
	assert_string_equal(bandwidth_class_name(99), "256 MiB and more");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_are_of_all_ranks),
		cmocka_unit_test(test_factors),
		cmocka_unit_test(test_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
