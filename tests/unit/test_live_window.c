/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/correlate/live/live_window.h"
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
	assert_true(wants(SOURCE_CUDA, CUDA_STREAM_SYNC, 1, 0, 0));
	assert_true(wants(SOURCE_CUDA, CUDA_FREE, 1, 0, 0));
	assert_false(wants(SOURCE_DRIVER, DRIVER_FREE, 1, 0, WIRE_NESTED));
	assert_true(wants(SOURCE_HOST, HOST_SCHED_SWITCH, 20000, 0, 0));
	assert_false(wants(SOURCE_HOST, HOST_SCHED_SWITCH, 19999, 0, 0));
	assert_true(wants(SOURCE_HOST, HOST_OOM_KILL, 0, 0, 0));
	assert_true(wants(SOURCE_NCCL, NCCL_ALL_REDUCE, 1, 0, 0));
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

/* What is held is enough for the engine: the same verdict as from all of it. */
static void test_same_verdict(void **state)
{
	_cleanup_free_ struct incident *whole = NULL, *live = NULL;
	struct scene sc = {0};
	struct recording rec;
	struct live_window r = {0};
	size_t n, m;

	scene_calm(&sc, CUDA_LAUNCH, 0, 4000, 10000, 8);
	scene_hog(&sc);
	scene_aggregate(&sc);
	rec = scene_recording(&sc);
	assert_int_equal(correlate_run(&rec, &whole, &n), 0);
	for (size_t i = 0; i < sc.event_count; i++)
		if (live_window_wants(&sc.events[i]))
			assert_int_equal(live_window_add_event(&r, &sc.events[i]), 0);
	for (size_t i = 0; i < sc.aggregate_count; i++)
		assert_int_equal(live_window_add_aggregate(&r, &sc.aggregates[i]), 0);
	live_window_recording(&r, (wall_time){SCENE_T0_NS + 41 * (int64_t)NS_PER_S}, &rec);
	assert_int_equal(correlate_run(&rec, &live, &m), 0);
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
		cmocka_unit_test(test_same_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
