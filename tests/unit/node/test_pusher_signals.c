/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_signals.c - what counts as a launch, and what jobs of several kinds look like. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/push/pusher_recording.h"
#include "wire/ids.h"

#define BUCKET ((int64_t)NODEDB_BUCKET_FINE)

static const struct recent_readings nothing = {.cpu_pct = -1,
	.psi_memory_pct = -1,
	.mem_avail_share = -1,
	.gpu_busy_pct = -1,
	.sm_clock_mhz = -1};

static void add(struct pusher_activity *a, int64_t bucket, uint8_t source, uint16_t op, bool nested,
	uint64_t count)
{
	const struct recent_calls c = {.bucket_ns = bucket * BUCKET,
		.source = source,
		.op = op,
		.nested = nested,
		.count = count,
		.sum_ns = 4 * NS_PER_S};

	pusher_activity_add(a, &c);
}

/* A job that launches graphs, or uses the driver, is no idle one; a call of the driver inside one of the
 * runtime is not a second launch. */
static void test_every_launch_once(void **state)
{
	struct pusher_activity a = {.from_ns = 0, .to_ns = 12 * BUCKET};
	double raw[HEALTH_SIGNAL_COUNT];

	add(&a, 1, SOURCE_CUDA, CUDA_LAUNCH, false, 100);
	add(&a, 1, SOURCE_DRIVER, DRIVER_LAUNCH, true, 100);
	add(&a, 1, SOURCE_CUDA, CUDA_LAUNCH_EXC, false, 10);
	add(&a, 1, SOURCE_CUDA, CUDA_LAUNCH_COOP, false, 1);
	assert_true(a.launches == 111);
	add(&a, 2, SOURCE_DRIVER, DRIVER_LAUNCH, false, 1000);
	add(&a, 2, SOURCE_DRIVER, DRIVER_LAUNCH_COOP, false, 10);
	add(&a, 2, SOURCE_DRIVER, DRIVER_GRAPH_LAUNCH, true, 5);
	add(&a, 2, SOURCE_GRAPH, GRAPH_LAUNCH, false, 5);
	add(&a, 2, SOURCE_DRIVER, DRIVER_GRAPH_LAUNCH, false, 3);
	assert_true(a.launches == 111 + 1018);
	add(&a, 3, SOURCE_CUDA, CUDA_STREAM_SYNC, false, 50);
	add(&a, 3, SOURCE_CUDA, CUDA_MEMCPY, false, 50);
	add(&a, 3, SOURCE_NCCL, NCCL_ALL_REDUCE, false, 50);
	assert_true(a.launches == 1129 && a.busy_buckets == 2);
	pusher_signals_make(&a, &nothing, raw);
	assert_true(fabs(raw[HEALTH_THROUGHPUT] - 1129 / 60.0) < 1e-9);
}

static void test_only_the_window(void **state)
{
	struct pusher_activity a = {.from_ns = 5 * BUCKET, .to_ns = 10 * BUCKET};

	add(&a, 4, SOURCE_CUDA, CUDA_LAUNCH, false, 1);
	assert_true(a.launches == 0);
	add(&a, 10, SOURCE_CUDA, CUDA_LAUNCH, false, 1); /* written soon: the window is longer */
	assert_true(a.launches == 1 && a.to_ns == 11 * BUCKET);
	add(&a, 99, SOURCE_CUDA, CUDA_LAUNCH, false, 1); /* a clock that was set */
	assert_true(a.launches == 1 && a.to_ns == 11 * BUCKET);
}

/* Host time in calls is no work of the GPU: neither does a wait at a barrier raise compute, nor a job
 * that works ahead of its GPU fall. */
static void test_compute_is_the_gpus_time(void **state)
{
	struct pusher_activity waits = {.to_ns = 12 * BUCKET}, ahead = {.to_ns = 12 * BUCKET};
	struct recent_readings r = nothing;
	double raw[HEALTH_SIGNAL_COUNT];

	for (int i = 0; i < 12; i++) {
		add(&waits, i, SOURCE_CUDA, CUDA_STREAM_SYNC, false, 1); /* 4 of 5 s */
		add(&ahead, i, SOURCE_CUDA, CUDA_LAUNCH, false, 10000);
	}
	pusher_signals_make(&waits, &nothing, raw);
	assert_true(raw[HEALTH_COMPUTE] == 0);
	pusher_signals_make(&ahead, &nothing, raw);
	assert_true(raw[HEALTH_COMPUTE] == 1);
	r.gpu_busy_pct = 93; /* the GPU's own word wins */
	pusher_signals_make(&ahead, &r, raw);
	assert_true(fabs(raw[HEALTH_COMPUTE] - 0.93) < 1e-9);
}

/* A server that fills its card to serve from is healthy; one that finds no memory is not. */
static void test_memory_is_its_pressure(void **state)
{
	struct pusher_activity a = {.to_ns = 12 * BUCKET};
	struct recent_readings r = nothing;
	double raw[HEALTH_SIGNAL_COUNT];

	r.psi_memory_pct = 0;
	r.mem_avail_share = 0.5;
	pusher_signals_make(&a, &r, raw);
	assert_true(raw[HEALTH_MEMORY] == 1);
	r.failed_allocs = 1;
	pusher_signals_make(&a, &r, raw);
	assert_true(raw[HEALTH_MEMORY] == 0.5);
	r.failed_allocs = 1000;
	pusher_signals_make(&a, &r, raw);
	assert_true(raw[HEALTH_MEMORY] == 0);
	r.failed_allocs = 0;
	r.psi_memory_pct = 30;
	pusher_signals_make(&a, &r, raw);
	assert_true(fabs(raw[HEALTH_MEMORY] - 0.7) < 1e-9);
	r.psi_memory_pct = -1; /* a kernel that does not tell */
	pusher_signals_make(&a, &r, raw);
	assert_true(raw[HEALTH_MEMORY] == 1);
	r.mem_avail_share = 0.01;
	pusher_signals_make(&a, &r, raw);
	assert_true(fabs(raw[HEALTH_MEMORY] - 0.2) < 1e-9);
}

static void test_unknown_is_no_complaint(void **state)
{
	struct pusher_activity a = {.to_ns = 12 * BUCKET};
	struct recent_readings r = nothing;
	double raw[HEALTH_SIGNAL_COUNT];

	pusher_signals_make(&a, &nothing, raw);
	assert_true(raw[HEALTH_MEMORY] == 1 && raw[HEALTH_CPU] == 1);
	r.cpu_pct = 25;
	pusher_signals_make(&a, &r, raw);
	assert_true(raw[HEALTH_CPU] == 0.75);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_launch_once),
		cmocka_unit_test(test_only_the_window),
		cmocka_unit_test(test_compute_is_the_gpus_time),
		cmocka_unit_test(test_memory_is_its_pressure),
		cmocka_unit_test(test_unknown_is_no_complaint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
