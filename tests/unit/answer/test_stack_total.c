/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/macros.h"
#include "answer/stacks.h"

static void time_and_calls_by_weight(void **state)
{
	static const struct event events[] = {
		{.source = SOURCE_CUDA, .op = 3, .dur_ns = 10, .weight = 256, .stack_hash = 5},
		{.source = SOURCE_CUDA, .op = 3, .dur_ns = 30, .weight = 1, .stack_hash = 5},
		{.source = SOURCE_CUDA, .op = 7, .dur_ns = 9000, .weight = 1, .stack_hash = 5},
		{.source = SOURCE_NCCL, .op = 3, .dur_ns = 7, .weight = 0, .stack_hash = 0},
		{.source = SOURCE_DRIVER,
			.op = 1,
			.flags = WIRE_NESTED,
			.dur_ns = 90000,
			.weight = 1,
			.stack_hash = 6},
		{.source = SOURCE_HOST, .op = 1, .dur_ns = 90000, .weight = 1, .stack_hash = 6},
	};
	_cleanup_free_ struct stack_total *t = NULL, *nested = NULL;
	size_t n = 0;

	assert_int_equal(stack_total_run(events, ARRAY_SIZE(events), NULL, &t, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(t[0].ns, 9000);
	assert_int_equal(t[0].op, 7);
	assert_int_equal(t[1].ns, 2590);
	assert_int_equal(t[1].calls, 257);
	assert_int_equal(t[2].hash, 0);
	assert_int_equal(t[2].calls, 1); /* a row stands for itself at least */
	/* asked for by name, driver calls inside runtime calls are there */
	assert_int_equal(stack_total_run(events, ARRAY_SIZE(events),
				 wire_op_by_name("cuLaunchKernel"), &nested, &n),
		0);
	assert_int_equal(n, 1);
	assert_int_equal(nested[0].ns, 90000);
}

static void many_rows_of_few_stacks(void **state)
{
	enum { ROWS = 100003, STACKS = 5003 };
	struct event *events = calloc(ROWS, sizeof(*events));
	_cleanup_free_ struct stack_total *t = NULL;
	uint64_t calls = 0, ns = 0;
	size_t n = 0;

	assert_non_null(events);
	for (size_t i = 0; i < ROWS; i++)
		events[i] = (struct event){.source = SOURCE_CUDA,
			.op = 3,
			.weight = 1,
			.dur_ns = i,
			.stack_hash = 1 + i % STACKS};
	assert_int_equal(stack_total_run(events, ROWS, NULL, &t, &n), 0);
	assert_int_equal(n, STACKS);
	for (size_t i = 0; i < n; i++) {
		calls += t[i].calls;
		ns += t[i].ns;
		assert_true(i == 0 || t[i - 1].ns >= t[i].ns);
	}
	assert_int_equal(calls, ROWS);
	assert_int_equal(ns, (uint64_t)ROWS * (ROWS - 1) / 2);
	free(events);
}

static void sums_do_not_wrap(void **state)
{
	struct event events[2];
	_cleanup_free_ struct stack_total *t = NULL;
	size_t n = 0;

	for (int i = 0; i < 2; i++)
		events[i] = (struct event){.source = SOURCE_CUDA,
			.dur_ns = UINT64_MAX / 2,
			.weight = UINT32_MAX,
			.stack_hash = 1};
	assert_int_equal(stack_total_run(events, 2, NULL, &t, &n), 0);
	assert_int_equal(n, 1);
	assert_true(t[0].ns == UINT64_MAX);
	free(t);
	assert_int_equal(stack_total_run(NULL, 0, NULL, &t, &n), 0);
	assert_int_equal(n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_and_calls_by_weight),
		cmocka_unit_test(many_rows_of_few_stacks),
		cmocka_unit_test(sums_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
