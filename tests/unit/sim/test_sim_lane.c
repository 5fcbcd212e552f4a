// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lane.h"

static void test_one_slot_queues(void **state)
{
	struct lane l;

	lane_init(&l, 1);
	assert_int_equal(lane_take(&l, 100, 50), 100);
	assert_int_equal(lane_take(&l, 100, 50), 150);
	assert_int_equal(lane_take(&l, 500, 50), 500);
}

static void test_slots_run_together_up_to_their_number(void **state)
{
	struct lane l;

	lane_init(&l, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(lane_take(&l, 100, 50), 100);
	assert_int_equal(lane_take(&l, 100, 50), 150);
}

static void test_latest_free_slot_is_taken(void **state)
{
	struct lane l;

	lane_init(&l, 2);
	assert_int_equal(lane_take(&l, 0, 10), 0);   /* one slot free at 10, the other at 0 */
	assert_int_equal(lane_take(&l, 50, 10), 50); /* takes the one free at 10 */
	assert_int_equal(lane_take(&l, 5, 10), 5);   /* so that the idle one can start at 5 */
}

static void test_too_many_slots_are_cut(void **state)
{
	struct lane l;

	lane_init(&l, 100000);
	assert_int_equal(l.slots, LANE_MAX_SLOTS);
}

static void test_transfer_time(void **state)
{
	assert_int_equal(lane_transfer_ns(0, 20000000000), 0);
	assert_int_equal(lane_transfer_ns(20000000000, 20000000000), 1000000000);
	assert_int_equal(lane_transfer_ns(1, 20000000000), 1); /* rounded up */
	assert_int_equal(lane_transfer_ns(UINT64_MAX / 2, 1000000000), UINT64_MAX / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_slot_queues),
		cmocka_unit_test(test_slots_run_together_up_to_their_number),
		cmocka_unit_test(test_latest_free_slot_is_taken),
		cmocka_unit_test(test_too_many_slots_are_cut),
		cmocka_unit_test(test_transfer_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
