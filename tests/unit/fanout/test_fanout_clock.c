/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fanout/fanout.h"
#include "base/clock.h"

#define MS ((int64_t)NS_PER_MS)
#define T0 (1794700000LL * (int64_t)NS_PER_S)

/* A node whose clock is @offset ahead, asked over a way of @there and @back. */
static struct fanout_clock_sample sample(int64_t offset, int64_t there, int64_t back)
{
	return (struct fanout_clock_sample){
		.remote_ns = T0 + there + offset, .sent_ns = T0, .got_ns = T0 + there + back};
}

static void the_error_bar_holds(void **state)
{
	static const int64_t offsets[] = {0, 50 * MS, -3600000 * MS};
	static const int64_t ways[][2] = {{MS, MS}, {9 * MS, MS}, {0, 10 * MS}, {7, 0}, {0, 0}};

	for (int o = 0; o < 3; o++)
		for (int w = 0; w < 5; w++) {
			struct fanout_clock_sample s = sample(offsets[o], ways[w][0], ways[w][1]);
			struct fanout_clock c = fanout_clock_median(&s, 1);
			int64_t wrong = c.offset_ns - offsets[o];

			assert_true(c.known);
			assert_true(wrong <= (int64_t)c.error_ns && -wrong <= (int64_t)c.error_ns);
			assert_true((int64_t)c.error_ns <= (ways[w][0] + ways[w][1] + 1) / 2);
		}
}

static void the_median_sample_is_used(void **state)
{
	struct fanout_clock_sample s[3] = {sample(50 * MS, 90 * MS, 0), /* says 95 ms ahead */
		sample(50 * MS, MS, MS), sample(50 * MS, 0, 30 * MS)};  /* says 35 ms */
	struct fanout_clock c = fanout_clock_median(s, 3);

	assert_int_equal(c.offset_ns, 50 * MS);
	assert_int_equal(c.error_ns, MS); /* of that sample, not of all */
}

static void of_two_the_shorter_way(void **state)
{
	struct fanout_clock_sample s[2] = {sample(0, 8 * MS, 0), sample(0, MS, 0)};

	assert_int_equal(fanout_clock_median(s, 2).error_ns, MS / 2);
}

static void nonsense_does_not_count(void **state)
{
	struct fanout_clock_sample s[4] = {
		{INT64_MAX, T0, T0}, {T0, T0 + 5, T0}, {-1, T0, T0}, sample(0, MS, MS)};

	assert_false(fanout_clock_median(s, 3).known);
	assert_false(fanout_clock_median(s, 0).known);
	assert_false(fanout_clock_median(s, 4).known); /* the fourth is not looked at */
	assert_true(fanout_clock_median(s + 1, 3).known);
}

static struct fanout_clock known(int64_t offset, uint64_t error)
{
	return (struct fanout_clock){.known = true, .offset_ns = offset, .error_ns = error};
}

static void one_wrong_clock_is_one_entry(void **state)
{
	struct fanout_clock c[5] = {
		known(MS, 100), known(50 * MS, 200), known(0, 100), {0}, known(-MS, 100)};
	struct fanout_skew s[6];

	assert_int_equal(fanout_clock_skews(c, 5, 10 * NS_PER_MS, s, 6), 1);
	assert_int_equal(s[0].node, 1);
	assert_int_equal(s[0].other, 2); /* the lower of the two in the middle */
	assert_int_equal(s[0].by_ns, 50 * MS);
	assert_int_equal(s[0].error_ns, 300);
}

static void error_bars_are_taken_off(void **state)
{
	struct fanout_clock c[2] = {known(0, MS), known(12 * MS, MS)};
	struct fanout_skew s[3];

	assert_int_equal(
		fanout_clock_skews(c, 2, 10 * NS_PER_MS, s, 3), 0); /* 12 - 2 is not over */
	assert_int_equal(fanout_clock_skews(c, 2, 10 * NS_PER_MS - 1, s, 3), 1);
	c[1].offset_ns = -12 * MS - 1;
	assert_int_equal(fanout_clock_skews(c, 2, 10 * NS_PER_MS, s, 3), 2);
	/* of two the one that is behind is the lower middle: the other is ahead of it, and it is
	 * behind this machine */
	assert_int_equal(s[0].by_ns, 12 * MS + 1);
	assert_int_equal(s[0].node, 0);
	assert_int_equal(s[1].by_ns, -12 * MS - 1);
	assert_int_equal(s[1].other, SIZE_MAX);
}

static void this_machine_is_compared_too(void **state)
{
	struct fanout_clock c[3] = {known(-70 * MS, 10), known(-70 * MS, 10), known(-71 * MS, 10)};
	struct fanout_skew s[1];

	assert_int_equal(fanout_clock_skews(c, 3, 10 * NS_PER_MS, s, 1), 1);
	assert_int_equal(s[0].other, SIZE_MAX);
	assert_int_equal(s[0].by_ns, -70 * MS);
}

static void the_largest_come_first_within_room(void **state)
{
	struct fanout_clock c[5] = {
		known(0, 1), known(20 * MS, 1), known(0, 1), known(90 * MS, 1), known(0, 1)};
	struct fanout_skew s[1];

	assert_int_equal(fanout_clock_skews(c, 5, 10 * NS_PER_MS, s, 1), 2);
	assert_int_equal(s[0].node, 3);
	assert_int_equal(fanout_clock_skews(c, 0, 0, s, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_error_bar_holds),
		cmocka_unit_test(the_median_sample_is_used),
		cmocka_unit_test(of_two_the_shorter_way),
		cmocka_unit_test(nonsense_does_not_count),
		cmocka_unit_test(one_wrong_clock_is_one_entry),
		cmocka_unit_test(error_bars_are_taken_off),
		cmocka_unit_test(this_machine_is_compared_too),
		cmocka_unit_test(the_largest_come_first_within_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
