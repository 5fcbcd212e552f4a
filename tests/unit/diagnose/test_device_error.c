/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_error.c - numbers of errors and what they mean. */
#include "verdict.h"

#include "diagnose/findings/device_error.h"

static void test_cuda(void **state)
{
	assert_int_equal(error_find(SOURCE_CUDA, 700)->class, ERROR_DEVICE);
	assert_true(error_find(SOURCE_DRIVER, 700)->sticky);
	assert_int_equal(error_find(SOURCE_CUDA, 2)->class, ERROR_MEMORY);
	assert_int_equal(error_find(SOURCE_CUDA, 600)->class, ERROR_EXPECTED);
	assert_int_equal(error_find(SOURCE_CUDA, 704)->class, ERROR_EXPECTED);
	assert_int_equal(error_find(SOURCE_CUDA, 701)->class, ERROR_LAUNCH);
	assert_int_equal(error_find(SOURCE_CUDA, 803)->class, ERROR_VERSION);
	assert_int_equal(error_find(SOURCE_GRAPH, 901)->class, ERROR_CAPTURE);
}

static void test_nccl_counts_on_its_own(void **state)
{
	assert_int_equal(error_find(SOURCE_NCCL, 2)->class, ERROR_DEVICE);
	assert_int_equal(error_find(SOURCE_NCCL, 7)->class, ERROR_EXPECTED);
	assert_string_equal(error_find(SOURCE_NCCL, 6)->name, "remote error");
}

static void test_unknown(void **state)
{
	assert_string_equal(error_find(SOURCE_CUDA, 123456)->name, "error");
	assert_string_equal(error_find(SOURCE_NCCL, 700)->name, "error");
	assert_null(xid_find(0));
	assert_null(xid_find(INT64_MAX));
}

static void test_xids(void **state)
{
	static const int known[] = {13, 31, 43, 45, 48, 63, 64, 74, 79, 92, 94, 95, 119};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const struct xid_row *row = xid_find(known[i]);

		assert_non_null(row);
		assert_true(row->severity <= problem_row(row->problem)->worst);
	}
	assert_int_equal(xid_find(31)->problem, PROBLEM_DEVICE_ASSERT);
	assert_int_equal(xid_find(95)->problem, PROBLEM_CORRUPTION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuda),
		cmocka_unit_test(test_nccl_counts_on_its_own),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_xids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
