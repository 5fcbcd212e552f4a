/* SPDX-License-Identifier: Apache-2.0 */
/* test_use.c - hits are counted once, and waiting for the GPU is told from calls that are only slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/capture/use.h"
#include "wire/ids.h"
#include "wire/record.h"

static struct total total(unsigned source, unsigned op, unsigned flags)
{
	return (struct total){.key = {.pid = 7,
				      .source = (uint8_t)source,
				      .op = (uint8_t)op,
				      .flags = (uint8_t)flags}};
}

static void gain(struct total *v, uint64_t calls, uint64_t dur_ns)
{
	struct sketch more = {0};

	v->hits += calls;
	sketch_add(&more, dur_ns, calls);
	assert_int_equal(sparse_reserve(&v->all, &more), 0);
	sparse_add(&v->all, &more);
}

static void launches_beyond_their_own_time_wait(void **state)
{
	assert_int_equal(
		use_launch_waited_ns(1000, 9500000, 4000), 0); /* launch-bound: 9.5 of 4 us */
	assert_int_equal(
		use_launch_waited_ns(1000, 150000000, 4000), 134000000); /* the queue is full */
	assert_int_equal(use_launch_waited_ns(0, 0, 4000), 0);
}

static void a_full_queue_is_a_wait(void **state)
{
	struct total launch = total(SOURCE_CUDA, CUDA_LAUNCH, 0);
	struct use u = {0};

	gain(&launch, 100, 4000);
	use_add(&u, &launch);
	assert_int_equal(u.launches, 100);
	assert_int_equal(u.waited_ns, 0);
	gain(&launch, 50, 216000); /* 16 us are a launch's own */
	use_add(&u, &launch);
	assert_int_equal(u.launches, 150);
	assert_int_equal(u.waited_ns, 50 * 200000);
	assert_int_equal(u.waits, 0);
	use_add(&u, &launch); /* nothing new */
	assert_int_equal(u.launches, 150);
	assert_int_equal(u.waited_ns, 50 * 200000);
	sparse_done(&launch.all);
}

static void nested_calls_are_no_second_wait(void **state)
{
	struct total outer = total(SOURCE_CUDA, CUDA_STREAM_SYNC, 0);
	struct total inner = total(SOURCE_DRIVER, DRIVER_STREAM_SYNC, WIRE_NESTED);
	struct total launch = total(SOURCE_DRIVER, DRIVER_LAUNCH, WIRE_NESTED);
	struct use u = {0};

	gain(&outer, 3, 5000000);
	gain(&inner, 3, 4900000);
	gain(&launch, 10, 1000);
	gain(&launch, 1, 900000);
	use_add(&u, &outer);
	use_add(&u, &inner);
	use_add(&u, &launch);
	assert_int_equal(u.waits, 3);
	assert_int_equal(u.waited_ns, 15000000);
	assert_int_equal(u.others, 6);
	assert_int_equal(u.launches, 6); /* 11, each half a hit */
	sparse_done(&outer.all);
	sparse_done(&inner.all);
	sparse_done(&launch.all);
}

static void slow_calls_that_wait_for_something_else_do_not_count(void **state)
{
	struct total alloc = total(SOURCE_CUDA, CUDA_MALLOC, 0);
	struct use u = {0};

	gain(&alloc, 4, 90000000);
	use_add(&u, &alloc);
	assert_int_equal(u.others, 4);
	assert_int_equal(u.waits, 0);
	assert_int_equal(u.waited_ns, 0);
	sparse_done(&alloc.all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_beyond_their_own_time_wait),
		cmocka_unit_test(a_full_queue_is_a_wait),
		cmocka_unit_test(nested_calls_are_no_second_wait),
		cmocka_unit_test(slow_calls_that_wait_for_something_else_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
