/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "record/probe/part.h"

static void names(void **state)
{
	assert_string_equal(probe_method_name(PROBE_SESSION), "session");
	assert_string_equal(probe_method_name(PROBE_MULTI), "multi");
	assert_string_equal(probe_method_name(PROBE_PERF), "perf");
}

/* The tracer falls back by counting up: the order is a promise. */
static void the_best_comes_first(void **state)
{
	assert_int_equal(PROBE_SESSION, 0);
	assert_int_equal(PROBE_MULTI, PROBE_SESSION + 1);
	assert_int_equal(PROBE_PERF, PROBE_MULTI + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(the_best_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
