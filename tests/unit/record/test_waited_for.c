/* SPDX-License-Identifier: Apache-2.0 */
/* test_waited_for.c - which processes are followed because traced ones wait for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/trace/neighbours.h"
#include "base/clock.h"

static void long_waits_add_up(void **state)
{
	struct waited_for w = {0};

	for (int i = 0; i < 19; i++)
		assert_false(waited_for_add(&w, 7, 10 * NS_PER_MS));
	assert_true(waited_for_add(&w, 7, 10 * NS_PER_MS));
}

static void a_single_stay_is_not_enough(void **state)
{
	struct waited_for w = {0};

	assert_false(waited_for_add(&w, 7, 60 * NS_PER_S));
	assert_false(waited_for_add(&w, 8, 60 * NS_PER_S));
	assert_false(waited_for_add(&w, 7, 1));
	assert_true(waited_for_add(&w, 7, 1));
}

static void passers_by_do_not_push_out_who_matters(void **state)
{
	struct waited_for w = {0};

	assert_false(waited_for_add(&w, 7, 150 * NS_PER_MS));
	for (uint32_t pid = 100; pid < 1000; pid++)
		assert_false(waited_for_add(&w, pid, NS_PER_MS));
	assert_false(waited_for_add(&w, 7, 30 * NS_PER_MS));
	assert_true(waited_for_add(&w, 7, 30 * NS_PER_MS));
}

static void there_is_a_ceiling(void **state)
{
	struct waited_for w = {0};
	unsigned followed = 0;

	for (uint32_t pid = 1; pid <= 100; pid++)
		for (int i = 0; i < 3; i++)
			followed += waited_for_add(&w, pid, NS_PER_S);
	assert_int_equal(followed, WAITED_FOR_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_waits_add_up),
		cmocka_unit_test(a_single_stay_is_not_enough),
		cmocka_unit_test(passers_by_do_not_push_out_who_matters),
		cmocka_unit_test(there_is_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
