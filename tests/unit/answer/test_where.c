/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "answer/incidents.h"
#include "stack_fixture.h"

static void stacks_of_one_place_count_together(void **state)
{
	struct incident inc = {.excess_ns = 1000,
		.stacks = {{UINT64_MAX - 4, 400, 1}, {10, 350, 9}, {20, 250, 2}, {77, 10, 1}},
		.stack_count = 4};
	struct where w = {0};

	assert_true(where_find(&inc, &three_stacks, &w));
	assert_ptr_equal(w.frame, &stack_a_frames[4]);
	assert_int_equal(w.ns, 600);
	assert_true(w.share > 0.599 && w.share < 0.601);
	inc.excess_ns = 450; /* of waits that are 800 in all */
	inc.stack_ns = 800;
	assert_true(where_find(&inc, &three_stacks, &w));
	assert_true(w.share > 0.749 && w.share < 0.751);
	inc.stack_count = 1;
	assert_true(where_find(&inc, &three_stacks, &w));
	assert_ptr_equal(w.frame, &stack_c_frames[0]);
}

static void nothing_known_is_nothing_said(void **state)
{
	struct incident inc = {.excess_ns = 1000, .stacks = {{77, 10, 1}}, .stack_count = 1};
	struct where w = {.ns = 5};

	assert_false(where_find(&inc, &three_stacks, &w));
	inc.stack_count = 0;
	assert_false(where_find(&inc, &three_stacks, &w));
	assert_int_equal(w.ns, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_of_one_place_count_together),
		cmocka_unit_test(nothing_known_is_nothing_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
