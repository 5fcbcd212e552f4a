/* SPDX-License-Identifier: Apache-2.0 */
/* test_slow_limits.c - three times the median of the fastest process, once there are enough calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/trace/governor.h"
#include "model/event.h"

static void add(
	struct slow_limits *l, unsigned source, unsigned op, uint64_t dur_ns, uint64_t calls)
{
	struct sketch s = {0};

	sketch_add(&s, dur_ns, calls);
	slow_limits_add(l, source, op, &s);
}

static void the_fastest_process_counts(void **state)
{
	struct slow_limits l = {0};
	uint64_t first;

	add(&l, SOURCE_CUDA, CUDA_STREAM_SYNC, 1000000, 100);
	first = l.ns[SOURCE_CUDA][CUDA_STREAM_SYNC];
	assert_in_range(first, 2700000, 3300000); /* as exact as a sketch is */
	add(&l, SOURCE_CUDA, CUDA_STREAM_SYNC, 9000000, 500);
	assert_int_equal(l.ns[SOURCE_CUDA][CUDA_STREAM_SYNC], first);
	add(&l, SOURCE_CUDA, CUDA_STREAM_SYNC, 100000, 500);
	assert_in_range(l.ns[SOURCE_CUDA][CUDA_STREAM_SYNC], 270000, 330000);
	assert_int_equal(l.ns[SOURCE_DRIVER][CUDA_STREAM_SYNC], 0);
}

static void few_calls_have_no_limit_and_tiny_ones_a_floor(void **state)
{
	struct slow_limits l = {0};

	add(&l, SOURCE_CUDA, CUDA_LAUNCH, 1000000, 99);
	assert_int_equal(l.ns[SOURCE_CUDA][CUDA_LAUNCH], 0);
	add(&l, SOURCE_DRIVER, DRIVER_LAUNCH, 100, 100);
	assert_int_equal(l.ns[SOURCE_DRIVER][DRIVER_LAUNCH], 50000);
}

static void only_gpu_calls_have_limits(void **state)
{
	struct slow_limits l = {0}, none = {0};

	add(&l, SOURCE_IO, IO_WRITE, 1000000, 500);
	add(&l, SOURCE_HOST, HOST_SCHED_SWITCH, 1000000, 500);
	add(&l, SOURCE_CUDA, WIRE_OP_MAX, 1000000, 500);
	assert_memory_equal(&l, &none, sizeof(l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fastest_process_counts),
		cmocka_unit_test(few_calls_have_no_limit_and_tiny_ones_a_floor),
		cmocka_unit_test(only_gpu_calls_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
