/* SPDX-License-Identifier: Apache-2.0 */
/* test_service_clock.c - a wall clock that does not go back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/cli/service.h"

#define S ((int64_t)NS_PER_S)

static void test_follows(void **state)
{
	struct service_clock c = {0};

	assert_int_equal(service_clock_at(&c, 1000 * S, 5 * NS_PER_S), 1000 * S);
	assert_int_equal(service_clock_at(&c, 1001 * S, 6 * NS_PER_S), 1001 * S);
	/* a step forward is followed at once */
	assert_int_equal(service_clock_at(&c, 5000 * S, 7 * NS_PER_S), 5000 * S);
}

static void test_never_back(void **state)
{
	struct service_clock c = {0};
	int64_t before = service_clock_at(&c, 1000 * S, 0), now;

	/* ten seconds back: half speed for twenty seconds, then together */
	for (unsigned i = 1; i <= 30; i++) {
		now = service_clock_at(&c, (990 + i) * S, i * NS_PER_S);
		assert_true(now > before);
		assert_true(now >= (990 + (int64_t)i) * S);
		before = now;
	}
	assert_int_equal(before, 1020 * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows),
		cmocka_unit_test(test_never_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
