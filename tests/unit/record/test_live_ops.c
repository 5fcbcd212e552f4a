/* SPDX-License-Identifier: Apache-2.0 */
/* test_live_ops.c - processes are added up, the costliest op comes first, calls inside calls last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/trace/process_table.h"
#include "model/event.h"

static void add(struct live_ops *t, unsigned op, bool nested, uint64_t dur_ns, uint64_t calls)
{
	struct sketch s = {0};

	sketch_add(&s, dur_ns, calls);
	live_ops_add(t, SOURCE_CUDA, op, nested, &s);
}

static void processes_are_added_up(void **state)
{
	struct live_ops *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	add(t, CUDA_LAUNCH, false, 1000, 7); /* one process */
	add(t, CUDA_LAUNCH, false, 3000, 4); /* another */
	add(t, CUDA_LAUNCH, true, 500, 2);   /* is a row of its own */
	assert_int_equal(t->count, 2);
	assert_int_equal(t->rows[0].count, 11);
	assert_int_equal(t->rows[0].sketch.sum, 7 * 1000 + 4 * 3000);
	assert_int_equal(t->rows[1].count, 2);
	live_ops_clear(t);
	add(t, CUDA_LAUNCH, false, 1000, 1);
	assert_int_equal(t->count, 1);
	assert_int_equal(t->rows[0].count, 1); /* nothing is left of before */
	free(t);
}

static void costliest_first_and_nested_last(void **state)
{
	struct live_ops *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	add(t, CUDA_MALLOC, true, 1000000, 9);
	add(t, CUDA_LAUNCH, false, 1000, 100);
	live_ops_count(t, SOURCE_HOST, HOST_PROCESS_FORK, 5);
	add(t, CUDA_STREAM_SYNC, false, 900000, 1);
	live_ops_sort(t);
	assert_int_equal(t->count, 4);
	assert_int_equal(t->rows[0].op, CUDA_STREAM_SYNC);
	assert_int_equal(t->rows[1].op, CUDA_LAUNCH);
	assert_int_equal(t->rows[2].source, SOURCE_HOST); /* took no time */
	assert_int_equal(t->rows[2].count, 5);
	assert_true(t->rows[3].nested);
	free(t);
}

static void a_full_table_leaves_the_rest_out(void **state)
{
	struct live_ops *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	for (unsigned op = 0; op < LIVE_OPS_MAX + 3; op++)
		add(t, op, false, 10, 1);
	live_ops_count(t, SOURCE_HOST, HOST_PROCESS_FORK, 5);
	assert_int_equal(t->count, LIVE_OPS_MAX);
	add(t, 0, false, 10, 1); /* rows that are there go on */
	assert_int_equal(t->rows[0].count, 2);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_are_added_up),
		cmocka_unit_test(costliest_first_and_nested_last),
		cmocka_unit_test(a_full_table_leaves_the_rest_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
