/* SPDX-License-Identifier: Apache-2.0 */
/* test_push_haste.c - a rank that is held up for longer than usual is sent in haste; ordinary ones are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "push/push.h"

#define MS INT64_C(1000000)

/* A step: three calls close together, then @own_ms until the next. True: one was hasty. */
static bool step(struct push_haste *h, int64_t *now, int64_t own_ms)
{
	bool hasty = false;

	*now += own_ms * MS;
	for (int i = 0; i < 3; i++) {
		const struct push_call c = {.leave_ns = *now += MS};

		hasty |= push_haste_take(h, &c);
	}
	return hasty;
}

static void test_held_up(void **state)
{
	struct push_haste h = {0};
	int64_t now = 1000 * MS;

	for (int i = 0; i < 200; i++)
		assert_true(!step(&h, &now, 500 + i % 7));
	assert_true(step(&h, &now, 590));
	assert_true(step(&h, &now, 500)); /* the step is sent to its end, and the one after it */
	assert_true(step(&h, &now, 500));
	assert_false(step(&h, &now, 590)); /* it is not news any more */
	for (int i = 0; i < 200; i++)
		assert_false(step(&h, &now, 500));
	assert_true(step(&h, &now, 590)); /* that was long ago */
}

/* A message that comes late within a step is noticed by its kind, though steps are further apart. */
static void test_kinds(void **state)
{
	struct push_haste h = {0};
	int64_t now = 1000 * MS;

	for (int i = 0; i < 60; i++) {
		const int64_t late = i == 50 ? 60 * MS : 0;
		const struct push_call reduce = {
			.comm = 1, .peer = -1, .op = 1, .leave_ns = now += 300 * MS};
		const struct push_call message = {
			.comm = 2, .peer = 3, .op = 5, .leave_ns = now += 20 * MS + late};

		assert_int_equal(push_haste_take(&h, &reduce), i > 50 && i < 55);
		assert_int_equal(push_haste_take(&h, &message), i >= 50 && i < 55);
	}
}

/* With more kinds than there is room for, nothing is lost but their distinction. */
static void test_many_kinds(void **state)
{
	struct push_haste h = {0};
	int64_t now = 1000 * MS;
	bool hasty = false;

	for (int i = 0; i < 20 * 3 * PUSH_HASTE_KINDS; i++) {
		const struct push_call c = {.comm = 1 + (uint64_t)(i % (3 * PUSH_HASTE_KINDS)),
			.leave_ns = now += 10 * MS};

		assert_false(push_haste_take(&h, &c));
	}
	for (int i = 0; i < 3 * PUSH_HASTE_KINDS && !hasty; i++) {
		const struct push_call c = {.comm = 1 + (uint64_t)i, .leave_ns = now += 40 * MS};

		hasty = push_haste_take(&h, &c);
	}
	assert_true(hasty);
}

/* The first calls of a job are of all lengths; and a little longer is nothing. */
static void test_not_unusual(void **state)
{
	struct push_haste h = {0};
	int64_t now = 1000 * MS;

	assert_false(step(&h, &now, 10));
	assert_false(step(&h, &now, 3000));
	for (int i = 0; i < 10; i++)
		assert_false(step(&h, &now, 100));
	h = (struct push_haste){0};
	for (int i = 0; i < 50; i++)
		assert_false(step(&h, &now, 100 + i / 25));
	assert_false(step(&h, &now, 106));
}

/* Calls that have not ended, and such that ended beside others, tell nothing. */
static void test_inside(void **state)
{
	struct push_haste h = {0};
	const struct push_call inside = {.enter_ns = 5000 * MS};
	int64_t now = 1000 * MS;

	for (int i = 0; i < 50; i++)
		step(&h, &now, 100);
	assert_false(push_haste_take(&h, &inside));
	assert_false(step(&h, &now, 100));
	assert_true(step(&h, &now, 150));
}

/* The first steps of a job, in which code is compiled, are forgotten after some more. */
static void test_after_a_slow_start(void **state)
{
	struct push_haste h = {0};
	int64_t now = 1000 * MS;

	for (int i = 0; i < 5; i++)
		step(&h, &now, 1500);
	for (int i = 0; i < 100; i++)
		assert_false(step(&h, &now, 100));
	assert_true(step(&h, &now, 160));
}

/* A job in which every other step is another: it may be hasty a quarter of the time, not always. */
static void test_never_alike(void **state)
{
	struct push_haste h = {0};
	int64_t now = 1000 * MS, hasty = 0, all = 0;

	for (int i = 0; i < 20000; i++) {
		int64_t own = 20 + (i * 7919 % 4801) % (1 + i % 900), before = now;
		bool is_hasty = step(&h, &now, own);

		all += now - before;
		hasty += is_hasty ? now - before : 0;
	}
	assert_true(hasty > 0);
	assert_true(hasty < all / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_up),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_after_a_slow_start),
		cmocka_unit_test(test_never_alike),
		cmocka_unit_test(test_many_kinds),
		cmocka_unit_test(test_not_unusual),
		cmocka_unit_test(test_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
