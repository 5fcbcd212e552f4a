/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "diagnose/live/live_window.h"
#include "diagnose/compose/diagnose.h"
#include "scene.h"

static struct event call(unsigned source, unsigned op, uint64_t dur_ns, int ret, unsigned flags)
{
	return (struct event){.source = (uint8_t)source,
		.op = (uint16_t)op,
		.dur_ns = dur_ns,
		.ret = ret,
		.flags = (uint16_t)flags};
}

static bool wants(unsigned source, unsigned op, uint64_t dur_ns, int ret, unsigned flags)
{
	struct event e = call(source, op, dur_ns, ret, flags);

	return live_window_wants(&e);
}

static void test_wants(void **state)
{
	assert_false(wants(SOURCE_CUDA, CUDA_LAUNCH, 200000, 0, 0));
	assert_true(wants(SOURCE_CUDA, CUDA_LAUNCH, 200001, 0, 0));
	assert_true(wants(SOURCE_CUDA, CUDA_LAUNCH, 1, 700, 0));
	assert_true(wants(SOURCE_CUDA, CUDA_LAUNCH, 1, 0, WIRE_AFTER_GAP));
	assert_true(wants(SOURCE_HOST, HOST_CPU_SAMPLE, 1, 0, 0));
	assert_true(wants(SOURCE_CUDA, CUDA_STREAM_SYNC, 1, 0, 0));
	assert_true(wants(SOURCE_CUDA, CUDA_FREE, 1, 0, 0));
	assert_false(wants(SOURCE_DRIVER, DRIVER_FREE, 1, 0, WIRE_NESTED));
	assert_true(wants(SOURCE_HOST, HOST_SCHED_SWITCH, 20000, 0, 0));
	assert_false(wants(SOURCE_HOST, HOST_SCHED_SWITCH, 19999, 0, 0));
	assert_true(wants(SOURCE_HOST, HOST_OOM_KILL, 0, 0, 0));
	assert_true(wants(SOURCE_NCCL, NCCL_ALL_REDUCE, 1, 0, 0));
	for (uint8_t s = 0; s < WIRE_SOURCE_MAX; s++)
		assert_int_equal(live_window_wants_aggregate(&(struct aggregate){.source = s}),
			s == SOURCE_CUDA || s == SOURCE_DRIVER || s == SOURCE_GRAPH ||
				s == SOURCE_NCCL);
}

static void test_order_and_window(void **state)
{
	static const int64_t seconds[] = {5, 1, 9, 3, 301, 300, 305};
	struct live_window r = {0};
	struct recording rec;

	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		struct event e = {.start.ns = seconds[i] * (int64_t)NS_PER_S};
		struct host_sample s = {.time = e.start};
		struct aggregate a = {.bucket = e.start};
		struct gpu_sample g = {.time = e.start};

		assert_int_equal(live_window_add_event(&r, &e), 0);
		assert_int_equal(live_window_add_sample(&r, &s), 0);
		assert_int_equal(live_window_add_aggregate(&r, &a), 0);
		assert_int_equal(live_window_add_gpu(&r, &g), 0);
	}
	live_window_recording(&r, (wall_time){304 * (int64_t)NS_PER_S}, &rec);
	assert_int_equal(rec.event_count, 5);
	assert_int_equal(rec.aggregate_count, 5);
	assert_int_equal(rec.sample_count, 5);
	assert_int_equal(rec.gpu_count, 5);
	for (size_t i = 1; i < rec.event_count; i++)
		assert_true(rec.events[i - 1].start.ns < rec.events[i].start.ns);
	assert_int_equal(rec.events[0].start.ns, 5 * (int64_t)NS_PER_S);
	live_window_recording(&r, (wall_time){9000 * (int64_t)NS_PER_S}, &rec);
	assert_int_equal(rec.event_count + rec.aggregate_count, 0);
	live_window_done(&r);
}

static void test_ceiling(void **state)
{
	struct live_window r = {0};
	struct recording rec;

	for (size_t i = 0; i < LIVE_WINDOW_EVENTS_MAX + 5; i++) {
		struct event e = {.start.ns = (int64_t)i + 1};

		assert_int_equal(live_window_add_event(&r, &e), 0);
	}
	live_window_recording(&r, (wall_time){100}, &rec);
	assert_int_equal(rec.event_count, LIVE_WINDOW_EVENTS_MAX - LIVE_WINDOW_EVENTS_MAX / 8 + 5);
	assert_int_equal(r.dropped, LIVE_WINDOW_EVENTS_MAX / 8);
	assert_int_equal(rec.events[rec.event_count - 1].start.ns, LIVE_WINDOW_EVENTS_MAX + 5);
	assert_int_equal(rec.events[0].start.ns, LIVE_WINDOW_EVENTS_MAX / 8 + 1);
	live_window_done(&r);
}

static void test_ledger_and_groups(void **state)
{
	static const int64_t seconds[] = {5, 1, 9, 3, 301, 300, 305};
	struct stack stack = {.hash = 7, .stop = ""};
	struct live_window r = {0};
	struct recording rec;
	size_t bytes;
	struct stack *copy = stack_copy(&stack, &bytes);

	assert_int_equal(live_window_add_stack(&r, copy, bytes), 0);
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		struct ledger_row row = {
			.start.ns = seconds[i] * (int64_t)NS_PER_S, .stack_hash = 7};
		struct container_sample s = {.time = row.start};

		assert_int_equal(live_window_add_ledger(&r, &row), 0);
		assert_int_equal(live_window_add_container(&r, &s), 0);
	}
	live_window_recording(&r, (wall_time){304 * (int64_t)NS_PER_S}, &rec);
	assert_int_equal(rec.ledger_count, 5);
	assert_int_equal(rec.container_count, 5);
	for (size_t i = 1; i < rec.ledger_count; i++)
		assert_true(rec.ledger[i - 1].start.ns < rec.ledger[i].start.ns);
	assert_non_null(stack_find(rec.stacks, 7));
	live_window_done(&r);
}

static void test_the_ledger_has_a_ceiling(void **state)
{
	struct live_window r = {0};
	struct recording rec;

	for (size_t i = 0; i < LIVE_WINDOW_LEDGER_MAX + 5; i++) {
		struct ledger_row row = {.start.ns = (int64_t)i + 1};

		assert_int_equal(live_window_add_ledger(&r, &row), 0);
	}
	live_window_recording(&r, (wall_time){100}, &rec);
	assert_int_equal(rec.ledger_count, LIVE_WINDOW_LEDGER_MAX - LIVE_WINDOW_LEDGER_MAX / 8 + 5);
	assert_int_equal(rec.ledger[rec.ledger_count - 1].start.ns, LIVE_WINDOW_LEDGER_MAX + 5);
	live_window_done(&r);
}

/* Two threads take turns: each keeps its sum, and other events stay. */
static void test_cpu_samples_leave_room(void **state)
{
	struct event sync = {.start.ns = 1, .source = SOURCE_CUDA, .op = CUDA_STREAM_SYNC};
	const size_t samples = 10 * LIVE_WINDOW_CPU_SAMPLES_MAX;
	uint64_t ns[2] = {0}, weight[2] = {0};
	struct live_window r = {0};
	struct recording rec;

	assert_int_equal(live_window_add_event(&r, &sync), 0);
	for (size_t i = 0; i < samples; i++) {
		struct event e = {.start.ns = (int64_t)i + 2,
			.tid = 100 + i % 2,
			.source = SOURCE_HOST,
			.op = HOST_CPU_SAMPLE,
			.dur_ns = 10,
			.weight = 1};

		assert_int_equal(live_window_add_event(&r, &e), 0);
	}
	live_window_recording(&r, (wall_time){100}, &rec);
	assert_true(rec.event_count <= LIVE_WINDOW_CPU_SAMPLES_MAX + 1);
	assert_int_equal(r.dropped, 0);
	assert_int_equal(rec.events[0].source, SOURCE_CUDA);
	for (size_t i = 1; i < rec.event_count; i++) {
		ns[rec.events[i].tid - 100] += rec.events[i].dur_ns;
		weight[rec.events[i].tid - 100] += rec.events[i].weight;
		assert_true(rec.events[i - 1].start.ns < rec.events[i].start.ns);
	}
	for (int k = 0; k < 2; k++) {
		assert_int_equal(ns[k], samples / 2 * 10);
		assert_int_equal(weight[k], samples / 2);
	}
	live_window_done(&r);
}

/* What is held is enough for the engine: the same verdict as from all of it. */
static void test_same_verdict(void **state)
{
	_cleanup_free_ struct incident *whole = NULL, *live = NULL;
	struct scene sc = {0};
	struct recording rec;
	struct live_window r = {0};
	size_t n, m;

	scene_hog(&sc);
	scene_launches(&sc, 5);
	scene_aggregate(&sc);
	rec = scene_recording(&sc);
	assert_int_equal(diagnose_run(&rec, &whole, &n), 0);
	for (size_t i = 0; i < sc.event_count; i++)
		if (live_window_wants(&sc.events[i]))
			assert_int_equal(live_window_add_event(&r, &sc.events[i]), 0);
	for (size_t i = 0; i < sc.aggregate_count; i++)
		assert_int_equal(live_window_add_aggregate(&r, &sc.aggregates[i]), 0);
	live_window_recording(&r, (wall_time){SCENE_T0_NS + 48 * (int64_t)NS_PER_S}, &rec);
	assert_int_equal(diagnose_run(&rec, &live, &m), 0);
	assert_int_equal(n, 1);
	assert_int_equal(m, 1);
	assert_string_equal(whole[0].summary, live[0].summary);
	assert_string_equal(whole[0].id, live[0].id);
	live_window_done(&r);
	scene_done(&sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wants),
		cmocka_unit_test(test_order_and_window),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_ledger_and_groups),
		cmocka_unit_test(test_the_ledger_has_a_ceiling),
		cmocka_unit_test(test_cpu_samples_leave_room),
		cmocka_unit_test(test_same_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
