/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "answer/ops.h"

static struct op_stat one(const struct event *events, size_t n)
{
	_cleanup_free_ struct op_stat *stats = NULL;
	size_t count = 0;

	assert_int_equal(op_stat_run(events, n, &stats, &count), 0);
	assert_int_equal(count, 1);
	return stats[0];
}

static void test_nearest_rank(void **state)
{
	struct event events[200] = {0};
	struct op_stat s;

	for (size_t i = 0; i < 200; i++) /* 1 to 200, from the middle outwards */
		events[i] = (struct event){.source = SOURCE_CUDA,
			.op = CUDA_MALLOC,
			.weight = 1,
			.dur_ns = i % 2 ? 100 - i / 2 : 101 + i / 2};
	s = one(events, 200);
	assert_int_equal(s.p50_ns, 100); /* rank 100 */
	assert_int_equal(s.p95_ns, 190);
	assert_int_equal(s.p99_ns, 198);
	assert_int_equal(s.min_ns, 1);
	assert_int_equal(s.max_ns, 200);
	assert_int_equal(s.sum_ns, 200 * 201 / 2);
	assert_int_equal(s.spikes, 0);
	s = one(events, 1);
	assert_true(s.p50_ns == 101 && s.p99_ns == 101 && s.min_ns == 101);
	/* ceil(0.5 * 3) = 2, ceil(0.95 * 3) = 3; an index rounded down would say otherwise */
	events[0].dur_ns = 7;
	events[1].dur_ns = 8;
	events[2].dur_ns = 90;
	s = one(events, 3);
	assert_true(s.p50_ns == 8 && s.p95_ns == 90);
	assert_int_equal(s.spikes, 1);
}

static void test_a_row_counts_by_its_weight(void **state)
{
	static const struct event events[] = {
		{.source = SOURCE_CUDA, .op = CUDA_MALLOC, .dur_ns = 10, .weight = 256},
		{.source = SOURCE_CUDA, .op = CUDA_MALLOC, .dur_ns = 1000, .weight = 1},
		{.source = SOURCE_CUDA, .op = CUDA_MALLOC, .dur_ns = 2000, .weight = 0},
	};
	struct op_stat s = one(events, ARRAY_SIZE(events));

	assert_int_equal(s.rows, 3);
	assert_int_equal(s.calls, 258); /* no weight is one call */
	assert_int_equal(s.p50_ns, 10);
	assert_int_equal(s.p99_ns, 10); /* rank 256 of 258 */
	assert_int_equal(s.max_ns, 2000);
	assert_int_equal(s.sum_ns, 2560 + 3000);
	assert_int_equal(s.spikes, 2);
}

static void test_order_and_extremes(void **state)
{
	static const struct event events[] = {
		{.source = SOURCE_CUDA, .op = CUDA_MALLOC, .dur_ns = 5, .weight = 1},
		{.source = SOURCE_HOST, .op = HOST_SCHED_WAKEUP, .weight = 1},
		{.source = SOURCE_DRIVER, .op = 1, .dur_ns = UINT64_MAX, .weight = UINT32_MAX},
		{.source = SOURCE_DRIVER, .op = 1, .dur_ns = UINT64_MAX, .weight = UINT32_MAX},
		{.source = SOURCE_CUDA, .op = CUDA_FREE, .dur_ns = 50, .weight = 1},
	};
	_cleanup_free_ struct op_stat *stats = NULL;
	size_t count;

	assert_int_equal(op_stat_run(events, ARRAY_SIZE(events), &stats, &count), 0);
	assert_int_equal(count, 4);
	assert_int_equal(stats[0].source, SOURCE_DRIVER); /* most time first, which stops growing */
	assert_true(stats[0].sum_ns == UINT64_MAX && stats[0].p50_ns == UINT64_MAX);
	assert_int_equal(stats[0].spikes, 0);
	assert_int_equal(stats[1].op, CUDA_FREE);
	assert_int_equal(stats[2].op, CUDA_MALLOC);
	assert_int_equal(stats[3].p99_ns + stats[3].spikes, 0);
	free(TAKE(stats));
	assert_int_equal(op_stat_run(NULL, 0, &stats, &count), 0);
	assert_int_equal(count, 0);
}

static void test_calls_inside_others_are_rows_of_their_own(void **state)
{
	static const struct event rows[] = {
		{.source = SOURCE_DRIVER, .op = DRIVER_LAUNCH, .dur_ns = 5, .weight = 1},
		{.source = SOURCE_DRIVER,
			.op = DRIVER_LAUNCH,
			.dur_ns = 7,
			.weight = 1,
			.flags = WIRE_NESTED},
	};
	_cleanup_free_ struct op_stat *stats = NULL;
	size_t count = 0;

	assert_int_equal(op_stat_run(rows, 2, &stats, &count), 0);
	assert_int_equal(count, 2);
	assert_true(stats[0].nested && stats[0].sum_ns == 7);
	assert_true(!stats[1].nested && stats[1].sum_ns == 5 && stats[1].op == DRIVER_LAUNCH);
}

static void test_sketch(void **state)
{
	struct sketch calls = {0};
	struct op_stat s;

	sketch_add(&calls, 1000, 98);
	sketch_add(&calls, 90000, 1);
	s = op_stat_of_sketch(SOURCE_CUDA, CUDA_MALLOC, true, 1, &calls);
	assert_true(s.source == SOURCE_CUDA && s.op == CUDA_MALLOC && s.nested);
	assert_int_equal(s.calls, 99);
	assert_int_equal(s.rows, 1);
	assert_int_equal(s.sum_ns, 98 * 1000 + 90000);
	assert_in_range(s.p50_ns, 968, 1032);
	assert_int_equal(s.max_ns, 90000);
	assert_int_equal(s.spikes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest_rank),
		cmocka_unit_test(test_a_row_counts_by_its_weight),
		cmocka_unit_test(test_calls_inside_others_are_rows_of_their_own),
		cmocka_unit_test(test_sketch),
		cmocka_unit_test(test_order_and_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
