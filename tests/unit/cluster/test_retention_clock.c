/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macros.h"
#include "cluster/store/retention_clock.h"

#define S    ((int64_t)NS_PER_S)
#define DAY  (24 * 3600 * S)
#define WALL (INT64_C(1790000000) * S)
#define MONO (1000 * NS_PER_S)

static void test_follows_a_clock_that_goes_with_time(void **state _unused_)
{
	struct retention_clock c = {0};

	assert_int_equal(retention_clock_read(&c, WALL, MONO), WALL);
	assert_int_equal(retention_clock_read(&c, WALL + 3 * S, MONO + 3 * NS_PER_S), WALL + 3 * S);
	/* corrections, both ways */
	assert_int_equal(
		retention_clock_read(&c, WALL + 1800 * S, MONO + 4 * NS_PER_S), WALL + 1800 * S);
	assert_int_equal(retention_clock_read(&c, WALL, MONO + 5 * NS_PER_S), WALL);
	assert_int_equal(c.ahead_ns, 0);
}

static void test_a_jump_is_believed_after_a_day(void **state _unused_)
{
	struct retention_clock c = {0};
	int64_t jump = 31 * DAY;

	retention_clock_read(&c, WALL, MONO);
	for (int64_t s = 1; s < 24 * 3600; s += 600) {
		assert_int_equal(retention_clock_read(
					 &c, WALL + jump + s * S, MONO + (uint64_t)s * NS_PER_S),
			WALL + s * S);
		assert_int_equal(c.ahead_ns, jump);
	}
	assert_int_equal(retention_clock_read(&c, WALL + jump + 2 * DAY, MONO + 2 * (uint64_t)DAY),
		WALL + jump + 2 * DAY);
	assert_int_equal(c.ahead_ns, 0);
}

static void test_a_jump_back_is_forgotten(void **state _unused_)
{
	struct retention_clock c = {0};

	retention_clock_read(&c, WALL, MONO);
	retention_clock_read(&c, WALL + 31 * DAY, MONO + NS_PER_S);
	retention_clock_read(&c, WALL + 31 * DAY, MONO + 23 * 3600 * NS_PER_S);
	assert_int_equal(retention_clock_read(&c, WALL + DAY, MONO + (uint64_t)DAY), WALL + DAY);
	assert_int_equal(c.ahead_ns, 0);
	/* the next one waits a day of its own */
	retention_clock_read(&c, WALL + 40 * DAY, MONO + (uint64_t)DAY + NS_PER_S);
	retention_clock_read(&c, WALL + 40 * DAY, MONO + (uint64_t)DAY + 7200 * NS_PER_S);
	assert_true(c.ahead_ns > 30 * DAY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows_a_clock_that_goes_with_time),
		cmocka_unit_test(test_a_jump_is_believed_after_a_day),
		cmocka_unit_test(test_a_jump_back_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
