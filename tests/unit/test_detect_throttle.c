/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_throttle.c - lowered clocks with and without an effect. */
#include "verdict.h"

#define SECONDS 40

static void readings(struct gpu_sample g[SECONDS], int from, uint64_t bits)
{
	for (int i = 0; i < SECONDS; i++) {
		gpu_sample_init(&g[i]);
		g[i].time.ns = SCENE_T0_NS + i * (int64_t)NS_PER_S;
		g[i].index = 0;
		g[i].throttle_reasons = i >= from ? (int64_t)bits : 0;
		g[i].sm_clock_mhz = i >= from ? 900 : 1980;
	}
}

static struct recording throttled(
	struct scene *s, struct gpu_sample g[SECONDS], int64_t later_us, uint64_t bits, int from)
{
	struct recording rec;

	scene_calm(s, CUDA_STREAM_SYNC, 0, 400, 50000, 1000);
	scene_calm(s, CUDA_STREAM_SYNC, 20000000, 400, 50000, later_us);
	scene_aggregate(s);
	readings(g, from, bits);
	rec = scene_recording(s);
	rec.gpus = g;
	rec.gpu_count = SECONDS;
	return rec;
}

static void test_slower_waits(void **state)
{
	SCENE;
	struct gpu_sample g[SECONDS];
	struct recording rec = throttled(&s, g, 5000, 4, 20);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_THROTTLE);

	assert_non_null(i);
	assert_int_equal(i->severity, SEVERITY_MEDIUM);
	assert_int_equal(i->pid, VICTIM);
	assert_has(i->summary, "sw_power_cap, clock 900 MHz instead of 1980");
	assert_true(i->explained > 0.9 && i->confidence > 0.8);
	assert_in_range(i->excess_ns, 1500 * NS_PER_MS, 1700 * NS_PER_MS);
	assert_null(verdict(&v, PROBLEM_SLOW_CALL)); /* the same lost time, told once */
}

static void test_no_effect_is_a_note(void **state)
{
	SCENE;
	struct gpu_sample g[SECONDS];
	struct recording rec = throttled(&s, g, 1000, 64, 20);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(verdict(&v, PROBLEM_THROTTLE)->severity, SEVERITY_LOW);
	assert_has(verdict(&v, PROBLEM_THROTTLE)->summary,
		"no traced process became slower because of it");
}

static void test_throttled_all_along(void **state)
{
	SCENE;
	struct gpu_sample g[SECONDS];
	struct recording rec = throttled(&s, g, 1000, 2, 0);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(verdict(&v, PROBLEM_THROTTLE)->severity, SEVERITY_LOW);
	assert_has(verdict(&v, PROBLEM_THROTTLE)->summary, "nothing to compare with");
}

/* Slower while the GPU says it is idle: that slows nothing, so it explains nothing. */
static void test_idle_is_not_throttling(void **state)
{
	SCENE;
	struct gpu_sample g[SECONDS];
	struct recording rec = throttled(&s, g, 5000, 1, 20);
	VERDICTS v = verdicts_of(&rec);

	assert_null(verdict(&v, PROBLEM_THROTTLE));
	assert_non_null(verdict(&v, PROBLEM_SLOW_CALL));
}

/* The hog took the CPU at the same time: the waits are its doing. */
static void test_contention_explains_it(void **state)
{
	SCENE;
	struct gpu_sample g[SECONDS];
	struct recording rec;

	scene_hog(&s);
	scene_aggregate(&s);
	readings(g, 20, 4);
	rec = scene_recording(&s);
	rec.gpus = g;
	rec.gpu_count = SECONDS;
	VERDICTS v = verdicts_of(&rec);
	assert_int_equal(verdict(&v, PROBLEM_CPU_CONTENTION)->severity, SEVERITY_HIGH);
	assert_int_equal(verdict(&v, PROBLEM_THROTTLE)->severity, SEVERITY_LOW);
}

/* Another GPU is throttled. */
static void test_another_gpu(void **state)
{
	SCENE;
	struct gpu_sample g[SECONDS];
	struct recording rec = throttled(&s, g, 5000, 4, 20);

	g[0].index = 0;
	for (int i = 1; i < SECONDS; i++)
		g[i].index = 1;
	VERDICTS v = verdicts_of(&rec);
	assert_int_equal(verdict(&v, PROBLEM_THROTTLE)->severity, SEVERITY_LOW);
	assert_non_null(verdict(&v, PROBLEM_SLOW_CALL));
}

static void test_hostile(void **state)
{
	SCENE;
	struct gpu_sample g[SECONDS];
	struct recording rec = throttled(&s, g, 1000, UINT64_MAX >> 1, 0);

	for (int i = 0; i < SECONDS; i++)
		g[i].time.ns = i % 2 ? INT64_MAX : INT64_MIN;
	VERDICTS v = verdicts_of(&rec);
	assert_null(verdict(&v, PROBLEM_THROTTLE));
	rec.gpus = g;
	g[0].time.ns = SCENE_T0_NS;
	rec.gpu_count = 1;
	VERDICTS one = verdicts_of(&rec);
	assert_int_equal(verdict(&one, PROBLEM_THROTTLE)->severity, SEVERITY_LOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slower_waits),
		cmocka_unit_test(test_no_effect_is_a_note),
		cmocka_unit_test(test_throttled_all_along),
		cmocka_unit_test(test_idle_is_not_throttling),
		cmocka_unit_test(test_contention_explains_it),
		cmocka_unit_test(test_another_gpu),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
