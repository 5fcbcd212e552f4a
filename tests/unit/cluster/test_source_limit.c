/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/answer/echo_private.h"

#define START (100 * NS_PER_S)

static int count(struct source_limit *l, const char *peer, int times, uint64_t now_ns)
{
	int n = 0;

	for (int i = 0; i < times; i++)
		n += source_limit_take(l, peer, now_ns);
	return n;
}

static void test_burst_then_rate(void **state)
{
	struct source_limit *l = NULL;

	assert_int_equal(source_limit_new(&l), 0);
	assert_int_equal(count(l, "10.0.0.1", 500, START), SOURCE_LIMIT_BURST);
	assert_int_equal(count(l, "10.0.0.2", 500, START), SOURCE_LIMIT_BURST); /* its own */
	assert_in_range(count(l, "10.0.0.1", 500, START + NS_PER_S), SOURCE_LIMIT_RATE - 1,
		SOURCE_LIMIT_RATE);
	assert_int_equal(count(l, "10.0.0.1", 500, START + 60 * NS_PER_S), SOURCE_LIMIT_BURST);
	source_limit_free(l);
}

/* However many addresses ask, those that ask again are remembered. */
static void test_many_sources(void **state)
{
	struct source_limit *l = NULL;
	char peer[32];

	assert_int_equal(source_limit_new(&l), 0);
	assert_int_equal(count(l, "10.0.0.1", 500, START), SOURCE_LIMIT_BURST);
	for (int i = 0; i < 3 * SOURCE_LIMIT_SOURCES; i++) {
		snprintf(peer, sizeof(peer), "10.1.%d.%d", i / 256, i % 256);
		assert_true(source_limit_take(l, peer, START));
		if (i % 1000 == 0)
			assert_false(source_limit_take(l, "10.0.0.1", START));
	}
	for (int i = 0; i < SOURCE_LIMIT_SOURCES; i++) {
		snprintf(peer, sizeof(peer), "10.2.%d.%d", i / 256, i % 256);
		assert_true(source_limit_take(l, peer, START));
	}
	assert_true(source_limit_take(l, "10.0.0.1", START)); /* who asked longest ago is not */
	source_limit_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_then_rate),
		cmocka_unit_test(test_many_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
