/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_errors.c - which errors are told, as what, and how often. */
#include "verdict.h"

static struct event *refuse(struct scene *s, uint16_t op, int64_t at_us, int code)
{
	struct event *e = scene_call(s, op, at_us, 10);

	e->ret = code;
	e->stack_hash = (uint64_t)at_us + 1;
	return e;
}

static void test_sticky_is_told_once(void **state)
{
	SCENE;
	scene_calm(&s, CUDA_LAUNCH, 0, 50, 1000, 10);
	for (int i = 0; i < 40; i++)
		refuse(&s, i ? CUDA_LAUNCH : CUDA_STREAM_SYNC, 60000 + i * 100, 700);
	refuse(&s, CUDA_FREE, 70000, 709); /* what follows is its consequence */
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_DEVICE_ASSERT);

	assert_non_null(i);
	assert_int_equal(i->severity, SEVERITY_MEDIUM);
	assert_int_equal(i->count, 40);
	assert_has(
		i->summary, "cudaStreamSync of python3 returned CUDA error 700 (illegal address)");
	assert_has(i->summary, "39 later calls");
	assert_int_equal(i->stack_total, 1); /* where it is told again is not where it came from */
	assert_int_equal(i->evidence[0], 51);
	assert_true(i->confidence < 0.8);
}

static void test_answers_are_no_errors(void **state)
{
	static const int answers[] = {600, 704, 712, 910, 4};
	SCENE;

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		refuse(&s, CUDA_EVENT_SYNC, (int64_t)i * 100, answers[i]);
	refuse(&s, CUDA_MALLOC, 1000, 1)->flags = WIRE_NESTED;
	scene_add(&s, SOURCE_NCCL, NCCL_ALL_REDUCE, VICTIM, VICTIM, 2000, 10)->ret = 7;
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 0);
}

static void expect(int code, enum problem problem, enum severity severity)
{
	SCENE;
	refuse(&s, CUDA_LAUNCH, 0, code);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 1);
	assert_int_equal(v.list[0].problem, problem);
	assert_int_equal(v.list[0].severity, severity);
	assert_string_equal(v.list[0].unit, "failed calls");
}

static void test_classes(void **state)
{
	expect(710, PROBLEM_DEVICE_ASSERT, SEVERITY_MEDIUM);
	expect(1, PROBLEM_DEVICE_ASSERT, SEVERITY_LOW);
	expect(701, PROBLEM_KERNEL_COMPILER, SEVERITY_LOW);
	expect(9, PROBLEM_KERNEL_COMPILER, SEVERITY_LOW);
	expect(98, PROBLEM_KERNEL_COMPILER, SEVERITY_LOW);
	expect(35, PROBLEM_VERSION_MISMATCH, SEVERITY_MEDIUM);
	expect(222, PROBLEM_VERSION_MISMATCH, SEVERITY_MEDIUM);
	expect(804, PROBLEM_VERSION_MISMATCH, SEVERITY_MEDIUM);
	expect(31337, PROBLEM_DEVICE_ASSERT, SEVERITY_LOW);
}

static void test_nccl(void **state)
{
	SCENE;
	scene_add(&s, SOURCE_NCCL, NCCL_ALL_REDUCE, VICTIM, VICTIM, 0, 10)->ret = 6;
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_has(verdict(&v, PROBLEM_DEVICE_ASSERT)->summary, "NCCL error 6 (remote error)");
}

static void test_host_memory_is_not_the_gpus(void **state)
{
	SCENE;
	refuse(&s, CUDA_HOST_ALLOC, 0, 2);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(verdict(&v, PROBLEM_GPU_MEMORY));
	assert_int_equal(verdict(&v, PROBLEM_DEVICE_ASSERT)->severity, SEVERITY_LOW);
}

static void test_hostile(void **state)
{
	SCENE;
	for (int i = 0; i < 2000; i++) /* more processes than are told apart */
		scene_add(&s, SOURCE_CUDA, CUDA_LAUNCH, (uint32_t)i + 1, 1, i, 1)->ret = 700;
	scene_hostile(&s, SOURCE_CUDA, CUDA_LAUNCH);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, CORRELATE_INCIDENTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sticky_is_told_once),
		cmocka_unit_test(test_answers_are_no_errors),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_nccl),
		cmocka_unit_test(test_host_memory_is_not_the_gpus),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
