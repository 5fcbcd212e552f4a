/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <limits.h>

#include "command/program.h"

static void distance_counts_slips(void **state)
{
	assert_int_equal(suggest_distance("trace", "trace"), 0);
	assert_int_equal(suggest_distance("tarce", "trace"), 1); /* a swap is one slip */
	assert_int_equal(suggest_distance("trac", "trace"), 1);
	assert_int_equal(suggest_distance("traces", "trace"), 1);
	assert_int_equal(suggest_distance("", "abc"), 3);
	assert_int_equal(suggest_distance("kitten", "sitting"), 3);
	assert_int_equal(
		suggest_distance(
			"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff12345",
			"trace"),
		UINT_MAX);
}

static void near_means_a_slip(void **state)
{
	unsigned d;

	assert_true(suggest_is_near("tarce", "trace", &d));
	assert_int_equal(d, 1);
	assert_true(suggest_is_near("exlpian", "explain", &d));
	assert_int_equal(d, 2);
	assert_false(suggest_is_near("foo", "trace", &d));
	assert_false(suggest_is_near("x", "p", &d)); /* not one letter kept */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distance_counts_slips),
		cmocka_unit_test(near_means_a_slip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
