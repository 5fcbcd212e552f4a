/* SPDX-License-Identifier: Apache-2.0 */
/* test_slow_calls.c - thresholds, baselines and materiality at their edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/calls/slow_calls.h"
#include "scene.h"

#define SCENE _cleanup_(scene_done) struct scene s = {.seed = 5}

static struct detection detect(const struct scene *s)
{
	struct recording rec = scene_recording(s);
	struct detection d;

	assert_int_equal(detect_run(&rec, &d), 0);
	return d;
}

static size_t slow_with(int64_t base_us, int64_t dur_us)
{
	SCENE;

	for (int i = 0; i < 20; i++)
		scene_call(&s, CUDA_MALLOC, i * 100000, base_us);
	scene_call(&s, CUDA_MALLOC, 2500000, dur_us);
	_cleanup_(detect_done) struct detection d = detect(&s);
	return d.slow_count;
}

static void test_slow_needs_ratio_and_excess(void **state)
{
	assert_int_equal(slow_with(10, 200), 0); /* 20 x, but 190 us */
	assert_int_equal(slow_with(10, 211), 1);
	assert_int_equal(slow_with(1000, 2999), 0); /* 2 ms, but 2.999 x */
	assert_int_equal(slow_with(1000, 3001), 1);
	assert_int_equal(slow_with(0, 201), 1);
}

static void test_three_calls_and_one_percent(void **state)
{
	static const struct {
		int slow;
		int64_t dur_us;
		size_t want;
	} rows[] = {
		{2, 500000, 0},                /* plenty, in two calls */
		{3, 500000, 1}, {3, 30000, 0}, /* 90 ms of 10 s */
		{3, 36000, 1},                 /* 105 ms */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		SCENE;

		for (int k = 0; k <= 100; k++)
			scene_call(&s, CUDA_MALLOC, k * 100000, 1000);
		for (int k = 0; k < rows[i].slow; k++)
			scene_call(&s, CUDA_MALLOC, 2010000 + k * 700000, rows[i].dur_us);
		_cleanup_(detect_done) struct detection d = detect(&s);
		assert_int_equal(d.slow_count, rows[i].slow);
		assert_int_equal(d.episode_count, rows[i].want);
	}
}

/* An hour of calm, one bad second: under 1 %, and still somebody's lost second. */
static void test_burst_in_a_long_recording(void **state)
{
	SCENE;

	for (int k = 0; k < 3600; k++)
		scene_call(&s, CUDA_MALLOC, k * 1000000LL, 1000);
	for (int k = 0; k < 20; k++)
		scene_call(&s, CUDA_MALLOC, 1800010000LL + k * 40000, 30000);
	_cleanup_(detect_done) struct detection d = detect(&s);
	assert_int_equal(d.episode_count, 1);
}

static void test_overlapping_rows_of_one_op_are_nonsense(void **state)
{
	SCENE;

	for (int k = 0; k < 50; k++)
		scene_call(&s, CUDA_MALLOC, k * 100000, 100);
	for (int k = 0; k < 10; k++)
		scene_call(&s, CUDA_MALLOC, 5000000 + k, 50000);
	_cleanup_(detect_done) struct detection d = detect(&s);
	assert_int_equal(d.slow_count, 1);
	assert_int_equal(d.ignored, 9);
}

/* A first call that hangs must not hide what other threads suffer meanwhile. */
static void test_a_hang_hides_nothing(void **state)
{
	SCENE;

	scene_add(&s, SOURCE_CUDA, CUDA_MALLOC, VICTIM, VICTIM + 1, 0, 60000000);
	for (int k = 0; k < 500; k++)
		scene_call(&s, CUDA_MALLOC, 10000 + k * 100000, k < 400 ? 1000 : 50000);
	_cleanup_(detect_done) struct detection d = detect(&s);
	assert_int_equal(d.slow_count, 100);
	assert_int_equal(d.episode_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_needs_ratio_and_excess),
		cmocka_unit_test(test_three_calls_and_one_percent),
		cmocka_unit_test(test_burst_in_a_long_recording),
		cmocka_unit_test(test_overlapping_rows_of_one_op_are_nonsense),
		cmocka_unit_test(test_a_hang_hides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
