/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_start.c - first calls that cost, and processes that were warm before. */
#include "verdict.h"

static void train(struct scene *s, int64_t first_us)
{
	scene_call(s, CUDA_LAUNCH, 1000000, first_us);
	scene_calm(s, CUDA_LAUNCH, 3000000, 200, 10000, 10);
}

static void test_seen_from_the_start(void **state)
{
	SCENE;
	scene_add(&s, SOURCE_HOST, HOST_PROCESS_EXEC, VICTIM, VICTIM, 0, 0);
	train(&s, 812000);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_COLD_START);

	assert_non_null(i);
	assert_int_equal(i->severity, SEVERITY_MEDIUM);
	assert_has(i->summary, "First cudaLaunchKernel of python3 took 812 ms instead of ");
	assert_has(i->summary, ", once");
	assert_true(i->confidence > 0.8);
	assert_int_equal(i->evidence[0], 2);
}

static void test_start_not_seen(void **state)
{
	SCENE;
	train(&s, 812000);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(verdict(&v, PROBLEM_COLD_START)->severity, SEVERITY_LOW);
	assert_has(verdict(&v, PROBLEM_COLD_START)->explanation, "before the recording");
	assert_true(verdict(&v, PROBLEM_COLD_START)->confidence < 0.7);
}

static void expect_none(struct scene *s)
{
	struct recording rec = scene_recording(s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(verdict(&v, PROBLEM_COLD_START));
}

/* Attached in the middle: the first launch that is seen is ordinary, a later one is slow. */
static void test_warm(void **state)
{
	SCENE;
	train(&s, 10);
	scene_call(&s, CUDA_LAUNCH, 2000000, 500000);
	expect_none(&s);
}

/* Another op was used for the first time, long after a warm process came under trace. */
static void test_first_of_an_op_in_a_warm_process(void **state)
{
	SCENE;
	train(&s, 10);
	scene_call(&s, CUDA_MALLOC, 2000000, 30000);
	scene_calm(&s, CUDA_MALLOC, 3000005, 50, 10000, 10);
	expect_none(&s);
	scene_add(&s, SOURCE_HOST, HOST_TARGET_FOUND, VICTIM, VICTIM, 999000, 0);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	assert_int_equal(verdict(&v, PROBLEM_COLD_START)->severity, SEVERITY_LOW);
}

/* How long a wait takes depends on the work before it, not on the start. */
static void test_waits_do_not_count(void **state)
{
	SCENE;
	scene_add(&s, SOURCE_HOST, HOST_PROCESS_EXEC, VICTIM, VICTIM, 0, 0);
	scene_call(&s, CUDA_STREAM_SYNC, 1000000, 900000);
	scene_calm(&s, CUDA_STREAM_SYNC, 3000000, 200, 10000, 10);
	expect_none(&s);
}

static void test_too_few_later_calls(void **state)
{
	SCENE;
	scene_add(&s, SOURCE_HOST, HOST_PROCESS_EXEC, VICTIM, VICTIM, 0, 0);
	scene_call(&s, CUDA_LAUNCH, 1000000, 900000);
	scene_calm(&s, CUDA_LAUNCH, 3000000, 3, 10000, 10);
	expect_none(&s);
}

static void test_hostile(void **state)
{
	SCENE;
	scene_hostile(&s, SOURCE_HOST, HOST_PROCESS_EXEC);
	scene_hostile(&s, SOURCE_CUDA, CUDA_LAUNCH);
	for (uint32_t i = 0; i < 1000; i++)
		scene_add(&s, SOURCE_CUDA, CUDA_LAUNCH, i, i, i, 10);
	expect_none(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seen_from_the_start),
		cmocka_unit_test(test_start_not_seen),
		cmocka_unit_test(test_warm),
		cmocka_unit_test(test_first_of_an_op_in_a_warm_process),
		cmocka_unit_test(test_waits_do_not_count),
		cmocka_unit_test(test_too_few_later_calls),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
