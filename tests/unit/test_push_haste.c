/* SPDX-License-Identifier: Apache-2.0 */
/* test_push_haste.c - a rank that is held up for longer than usual is sent in haste; ordinary ones are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "push/push_haste.h"

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
	assert_false(step(&h, &now, 590)); /* it is not news any more */
	for (int i = 0; i < 200; i++)
		assert_false(step(&h, &now, 500));
	assert_true(step(&h, &now, 590)); /* that was long ago */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_up),
		cmocka_unit_test(test_not_unusual),
		cmocka_unit_test(test_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
