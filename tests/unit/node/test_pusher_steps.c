/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_steps.c - the length of steps from marks, and what of it is a wait for others. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/push/pusher_recording.h"
#include "wire/ledger.h"

#define MS ((int64_t)NS_PER_MS)

static void marks(struct pusher_steps *s, uint32_t tid, uint8_t mark, int64_t every_ms, int count)
{
	for (int i = 0; i < count; i++) {
		const struct recent_mark m = {
			.end_ns = (i + 1) * every_ms * MS, .pid = tid, .tid = tid, .mark = mark};

		assert_int_equal(pusher_steps_mark(s, &m), 0);
	}
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static void test_the_surest_marks_win(void **state)
{
	struct pusher_steps s = {0};
	struct pusher_step got = pusher_steps_median(&s);

	assert_true(got.step_s == -1 && got.own_s == -1);
	marks(&s, 7, MARK_WAIT, 25, 40);
	assert_false(s.is_training);
	assert_true(near(pusher_steps_median(&s).step_s, 0.025));
	marks(&s, 7, MARK_OPTIMIZER, 100, 3); /* too few */
	assert_true(near(pusher_steps_median(&s).step_s, 0.025));
	marks(&s, 7, MARK_OPTIMIZER, 100, 4);
	pusher_steps_done(&s);
	marks(&s, 7, MARK_WAIT, 25, 40);
	marks(&s, 7, MARK_OPTIMIZER, 100, 10);
	marks(&s, 7, MARK_TICK, 1, 10);
	assert_true(s.is_training);
	assert_true(near(pusher_steps_median(&s).step_s, 0.1));
	pusher_steps_done(&s);
}

static void test_own_time_is_without_waits_for_others(void **state)
{
	struct pusher_steps s = {0};
	struct pusher_step got;

	marks(&s, 7, MARK_OPTIMIZER, 100, 11); /* 10 steps */
	for (int i = 0; i < 10; i++) {
		struct pusher_wait w = {.end_ns = (150 + 100 * i) * MS,
			.wait_ns = (uint64_t)(30 * MS + i),
			.pid = 7};

		assert_int_equal(pusher_steps_wait(&s, &w), 0);
		/* Collectives that one synchronisation waited for are one wait. */
		assert_int_equal(pusher_steps_wait(&s, &w), 0);
		w.pid = 8;
		assert_int_equal(pusher_steps_wait(&s, &w), 0);
	}
	assert_int_equal(s.wait_count, 20);
	got = pusher_steps_median(&s);
	assert_true(near(got.step_s, 0.1));
	assert_true(fabs(got.own_s - 0.07) < 1e-6);
	pusher_steps_done(&s);
}

static void test_of_several_ranks_the_median(void **state)
{
	struct pusher_steps s = {0};

	marks(&s, 1, MARK_BACKWARD, 100, 10);
	marks(&s, 2, MARK_BACKWARD, 110, 10);
	marks(&s, 3, MARK_BACKWARD, 500, 10);
	assert_true(near(pusher_steps_median(&s).step_s, 0.11));
	pusher_steps_forget(&s, INT64_MAX);
	assert_true(pusher_steps_median(&s).step_s == -1);
	pusher_steps_done(&s);
}

static void test_there_is_a_ceiling(void **state)
{
	struct pusher_steps s = {0};

	marks(&s, 1, MARK_WAIT, 1, 3 * PUSHER_MARKS_MAX);
	assert_true(s.mark_count <= PUSHER_MARKS_MAX && s.mark_count >= PUSHER_MARKS_MAX / 2);
	assert_true(s.marks[s.mark_count - 1].end_ns == 3 * PUSHER_MARKS_MAX * MS);
	pusher_steps_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_surest_marks_win),
		cmocka_unit_test(test_own_time_is_without_waits_for_others),
		cmocka_unit_test(test_of_several_ranks_the_median),
		cmocka_unit_test(test_there_is_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
