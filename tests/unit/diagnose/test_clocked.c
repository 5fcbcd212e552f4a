/* SPDX-License-Identifier: Apache-2.0 */
/* test_clocked.c - a loop that a clock drives is told from one that asks for its next input when it is done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/chains/delay_weight.h"
#include "base/clock.h"

#define BARS 240

/* Units of 3 to 7 ms of work: each begins 50 ms after the last, or it asks for its input, which takes 45 ms. */
static bool clocked(size_t bars, bool by_clock, bool has_work)
{
	static struct account_bar items[BARS];
	struct step_account a = {.bars = items, .bar_count = bars};
	uint32_t seed = 5;

	for (size_t i = 0; i < bars; i++) {
		uint64_t work = 5 * NS_PER_MS, jitter;

		seed = seed * 1664525u + 1013904223u;
		if (has_work)
			work += (seed >> 8) % (4 * NS_PER_MS) - 2 * NS_PER_MS;
		seed = seed * 1664525u + 1013904223u;
		jitter = (seed >> 8) % (100 * NS_PER_US);
		items[i] = (struct account_bar){.steps = 1};
		items[i].ns[ACCOUNT_GPU] = work;
		items[i].ns[ACCOUNT_NETWORK] =
			(by_clock ? 50 * NS_PER_MS - work : 45 * NS_PER_MS) + jitter;
		items[i].dur_ns = work + items[i].ns[ACCOUNT_NETWORK];
	}
	return units_are_clocked(&a);
}

static void test_by_the_clock(void **state)
{
	assert_true(clocked(BARS, true, true));
}

static void test_input_that_is_asked_for(void **state)
{
	assert_false(clocked(BARS, false, true));
}

/* Work that is always the same tells nothing. */
static void test_even_work(void **state)
{
	assert_false(clocked(BARS, true, false));
	assert_false(clocked(BARS, false, false));
}

/* A loop that works without a pause, of whose units now more, now less is taken for waiting: the more is done the longer
 * they take, though lengths vary less. */
static void test_split_that_varies(void **state)
{
	static struct account_bar items[BARS];
	struct step_account a = {.bars = items, .bar_count = BARS};

	for (size_t i = 0; i < BARS; i++) {
		uint64_t wait = (4 + i / 32 % 4) * NS_PER_MS;

		items[i] = (struct account_bar){.steps = 1, .dur_ns = 36 * NS_PER_MS - wait / 2};
		items[i].ns[ACCOUNT_NETWORK] = wait;
		items[i].ns[ACCOUNT_HOST] = items[i].dur_ns - wait;
	}
	assert_false(units_are_clocked(&a));
}

/* Lengths that vary by more than a clock's do are the work's own, whatever is taken for waiting. */
static void test_no_clock_is_that_bad(void **state)
{
	static struct account_bar items[BARS];
	struct step_account a = {.bars = items, .bar_count = BARS};
	uint32_t seed = 5;

	for (size_t i = 0; i < BARS; i++) {
		uint64_t part;

		seed = seed * 1664525u + 1013904223u;
		part = (seed >> 8) % (30 * NS_PER_MS);
		seed = seed * 1664525u + 1013904223u;
		items[i] = (struct account_bar){
			.steps = 1, .dur_ns = 45 * NS_PER_MS + (seed >> 8) % (10 * NS_PER_MS)};
		items[i].ns[ACCOUNT_NETWORK] = part;
		items[i].ns[ACCOUNT_HOST] = items[i].dur_ns - part;
	}
	assert_false(units_are_clocked(&a));
}

static void test_too_few(void **state)
{
	assert_false(clocked(100, true, true));
	assert_false(clocked(0, true, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_the_clock),
		cmocka_unit_test(test_input_that_is_asked_for),
		cmocka_unit_test(test_even_work),
		cmocka_unit_test(test_split_that_varies),
		cmocka_unit_test(test_no_clock_is_that_bad),
		cmocka_unit_test(test_too_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
