/* SPDX-License-Identifier: Apache-2.0 */
/* test_call_rhythm.c - the length of a step by the order of calls, evaluations in between, and what has no order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macros.h"
#include "blame/call_rhythm.h"

#define MS INT64_C(1000000)

/* @pattern again and again, a call each 5 ms, steps 40 ms apart; every @rare-th step has one call more. */
static uint64_t step_of(const char *pattern, size_t steps, size_t rare)
{
	static struct blame_call calls[4096];
	struct blame_worker workers[2] = {0};
	size_t n = 0;
	int64_t at = 0;
	uint64_t step;

	for (size_t s = 0; s < steps; s++) {
		for (const char *p = pattern; *p; p++, at += 5 * MS)
			calls[n++] = (struct blame_call){.worker = 0,
				.c = {.comm = 7, .op = (uint16_t)*p, .enter_ns = at, .peer = -1}};
		if (rare && s % rare == 0)
			calls[n++] = (struct blame_call){.worker = 0,
				.c = {.comm = 9, .op = 'e', .enter_ns = at, .peer = -1}};
		calls[n++] = (struct blame_call){
			.worker = 1, .c = {.comm = 7, .op = 'x', .enter_ns = at}}; /* another's */
		at += 40 * MS;
	}
	assert_int_equal(call_rhythm_step(calls, n, 0, &step), 0);
	assert_int_equal(call_rhythm_set(workers, 2, calls, n),
		0); /* the other's, heard of last, tell nothing */
	assert_true(workers[0].step_ns == step && workers[1].step_ns == step);
	return step / MS;
}

static void test_order(void **state _unused_)
{
	assert_int_equal(step_of("ggggggsgsgsgss", 30, 0), 14 * 5 + 40);
	assert_int_equal(step_of("abc", 30, 0), 55);
	assert_int_equal(
		step_of("ggggggsgsgsgss", 60, 25), 14 * 5 + 40); /* an evaluation is no step */
}

static void test_no_order(void **state _unused_)
{
	assert_int_equal(step_of("aaaaa", 30, 0), 0); /* all alike */
	assert_int_equal(step_of("abc", 3, 0), 0);    /* too few */
	assert_int_equal(step_of("", 3, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_no_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
