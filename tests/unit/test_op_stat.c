/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "agent/answer/op_stat.h"

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

/* Rows are the slow calls; aggregates know them all. What only rows know stays. */
static void test_all_calls(void **state)
{
	static const struct event rows[] = {
		{.source = SOURCE_CUDA, .op = CUDA_MALLOC, .dur_ns = 90000, .weight = 1},
		{.source = SOURCE_HOST, .op = HOST_PROCESS_EXIT, .weight = 1},
	};
	struct aggregate calls[2] = {{.source = SOURCE_CUDA, .op = CUDA_MALLOC, .stored = 1},
		{.source = SOURCE_CUDA, .op = CUDA_MALLOC, .flags = WIRE_NESTED}};
	_cleanup_free_ struct op_stat *stats = NULL;
	size_t count = 0;

	sketch_add(&calls[0].sketch, 1000, 98);
	sketch_add(&calls[0].sketch, 90000, 1);
	sketch_add(&calls[1].sketch, 1000, 1);
	assert_int_equal(op_stat_all(rows, 2, calls, 2, &stats, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(stats[0].calls, 100);
	assert_int_equal(stats[0].rows, 1);
	assert_int_equal(stats[0].sum_ns, 99 * 1000 + 90000);
	assert_in_range(stats[0].p50_ns, 968, 1032);
	assert_int_equal(stats[0].max_ns, 90000);
	assert_int_equal(stats[0].spikes, 1);
	assert_int_equal(stats[1].source, SOURCE_HOST);
	assert_int_equal(stats[1].calls, 1);
	free(TAKE(stats));
	assert_int_equal(
		op_stat_all(rows, 2, NULL, 0, &stats, &count), 0); /* control: rows alone */
	assert_int_equal(stats[0].calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest_rank),
		cmocka_unit_test(test_a_row_counts_by_its_weight),
		cmocka_unit_test(test_all_calls),
		cmocka_unit_test(test_order_and_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
