/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/ordinary.h"
#include "base/clock.h"
#include "base/macros.h"

#define PID 4821

/* Two buckets of launches of 10 us (and one of 4 ms, when it was contended), nested ones of 5 us,
 * copies of 2 ms, and waits of 20 ms. */
static struct ordinary learned(void)
{
	static struct aggregate list[6];
	static const struct {
		unsigned source, op, flags;
		uint64_t ns;
	} rows[] = {{SOURCE_CUDA, CUDA_LAUNCH, 0, 10000}, {SOURCE_CUDA, CUDA_LAUNCH, 0, 4000000},
		{SOURCE_DRIVER, DRIVER_LAUNCH, WIRE_NESTED, 5000},
		{SOURCE_CUDA, CUDA_MEMCPY, 0, 2000000},
		{SOURCE_CUDA, CUDA_STREAM_SYNC, 0, 20000000}, {SOURCE_NET, NET_RECV, 0, 1000}};
	struct ordinary o;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		list[i] = (struct aggregate){.pid = PID,
			.bucket.ns = (int64_t)i,
			.source = (uint8_t)rows[i].source,
			.op = (uint16_t)rows[i].op,
			.flags = (uint8_t)rows[i].flags};
		sketch_add(&list[i].sketch, rows[i].ns, 10);
	}
	assert_int_equal(ordinary_init(&o, list, ARRAY_SIZE(list)), 0);
	return o;
}

static bool keeps(struct ordinary *o, int64_t seq, int64_t at, unsigned source, unsigned op,
	int64_t dur_ns, int ret, unsigned flags)
{
	const int64_t row[ORDINARY_COUNT] = {seq, at, PID, source, op, dur_ns, ret, flags};

	return ordinary_keeps(o, row);
}

static void test_verdicts(void **state)
{
	struct ordinary o = learned();

	assert_false(keeps(&o, 1, 100, SOURCE_CUDA, CUDA_LAUNCH, 9000, 0, 0));
	assert_false(keeps(&o, 2, 100, SOURCE_CUDA, CUDA_LAUNCH, 109000, 0, 0));
	assert_true(keeps(&o, 3, 100, SOURCE_CUDA, CUDA_LAUNCH, 120000, 0, 0)); /* long */
	assert_true(keeps(&o, 4, 100, SOURCE_CUDA, CUDA_LAUNCH, 9000, 700, 0)); /* failed */
	assert_false(keeps(&o, 5, 100, SOURCE_CUDA, CUDA_MEMCPY, 2150000, 0, 0));
	assert_true(keeps(&o, 6, 100, SOURCE_CUDA, CUDA_MEMCPY, 2300000, 0, 0));
	assert_true(keeps(&o, 7, 100, SOURCE_CUDA, CUDA_STREAM_SYNC, 20000000, 0, 0)); /* a step */
	assert_true(keeps(&o, 8, 100, SOURCE_CUDA, CUDA_MEMSET, 10, 0, 0)); /* no aggregates */
	assert_false(keeps(&o, 9, 100, SOURCE_DRIVER, DRIVER_LAUNCH, 5000, 0, WIRE_NESTED));
	assert_true(keeps(&o, 10, 100, SOURCE_DRIVER, DRIVER_LAUNCH, 5000, 0, 0));
	assert_true(keeps(&o, 11, 100, SOURCE_NET, NET_RECV, 1000, 0, 0));
	assert_true(keeps(&o, 12, 100, SOURCE_HOST, HOST_SCHED_SWITCH, 1000, 0, 0));
	assert_true(keeps(&o, 13, 100, SOURCE_HOST, HOST_CPU_SAMPLE, 1000, 0, 0));
	assert_true(keeps(&o, 14, 100, SOURCE_CUDA, CUDA_LAUNCH, 9000, 0, WIRE_AFTER_GAP));
	assert_true(keeps(&o, 15, 100, SOURCE_DRIVER, DRIVER_LAUNCH, 5000, 0, WIRE_AFTER_GAP));
	assert_int_equal(ordinary_thinned(&o), 4);
	ordinary_done(&o);
}

static void test_nonsense_is_kept(void **state)
{
	static const int64_t wild[] = {INT64_MIN, INT64_MAX, -1, UINT32_MAX + 1LL};
	struct ordinary o = learned();
	int columns = 0;

	for (size_t k = 0; k < ARRAY_SIZE(wild); k++)
		for (int i = ORDINARY_TIMESTAMP; i < ORDINARY_COUNT; i++) {
			int64_t row[ORDINARY_COUNT] = {
				1, 100, PID, SOURCE_CUDA, CUDA_LAUNCH, 9000, 0, 0};

			assert_false(ordinary_keeps(&o, row));
			row[i] = wild[k];
			if (i == ORDINARY_TIMESTAMP && wild[k] == UINT32_MAX + 1LL)
				continue; /* a time like another */
			assert_true(ordinary_keeps(&o, row));
			columns++;
		}
	assert_int_equal(columns, 27);
	ordinary_done(&o);
}

static void test_range(void **state)
{
	struct ordinary o = learned();

	o.from_ns = 50;
	o.to_ns = 60;
	assert_true(keeps(&o, 1, 49, SOURCE_CUDA, CUDA_LAUNCH, 9000, 0, 0));
	assert_false(keeps(&o, 2, 50, SOURCE_CUDA, CUDA_LAUNCH, 9000, 0, 0));
	assert_false(keeps(&o, 3, 60, SOURCE_CUDA, CUDA_LAUNCH, 9000, 0, 0));
	assert_true(keeps(&o, 4, 61, SOURCE_CUDA, CUDA_LAUNCH, 9000, 0, 0));
	assert_int_equal(ordinary_thinned(&o), 2);
	ordinary_done(&o);
}

/* The first and the last of each op, over both tables, whatever the order of the rows. */
static void test_edges(void **state)
{
	struct ordinary a = learned(), b;
	uint64_t edges[16];

	assert_int_equal(ordinary_clone(&b, &a), 0);
	assert_int_equal(ordinary_edges(&a, edges), 0);
	keeps(&b, 21, 300, SOURCE_CUDA, CUDA_LAUNCH, 10, 0, 0);
	keeps(&b, 22, 200, SOURCE_CUDA, CUDA_LAUNCH, 10, 0, 0);
	keeps(&b, 23, 250, SOURCE_CUDA, CUDA_LAUNCH, 9000, 0, 0); /* ends last */
	keeps(&a, 31, 400, SOURCE_CUDA, CUDA_LAUNCH, 10, 0, 0);
	keeps(&a, 30, 200, SOURCE_CUDA, CUDA_LAUNCH, 10, 0, 0); /* as early, stored later */
	keeps(&a, 40, 100, SOURCE_CUDA, CUDA_MEMCPY, 10, 0, 0); /* both */
	ordinary_merge(&a, &b);
	assert_int_equal(ordinary_thinned(&a), 6);
	assert_int_equal(ordinary_edges(&a, edges), 3);
	assert_int_equal(edges[0], 22);
	assert_int_equal(edges[1], 23);
	assert_int_equal(edges[2], 40);
	ordinary_reset(&a); /* knows the ops as before, and none of the rows */
	assert_int_equal(ordinary_thinned(&a), 0);
	assert_int_equal(ordinary_edges(&a, edges), 0);
	assert_false(keeps(&a, 50, 500, SOURCE_CUDA, CUDA_LAUNCH, 10, 0, 0));
	assert_int_equal(ordinary_edges(&a, edges), 1);
	assert_int_equal(edges[0], 50);
	ordinary_done(&a);
	ordinary_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_nonsense_is_kept),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
