/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_sharing.c - two processes on a GPU: slower together, side by side without harm, on different
 * GPUs, and held up by something else. */
#include "ranks_fixture.h"

#define OTHER 5000U

/* 10 s of waits of 5 ms every 20 ms by the victim; in the second half @with_us, beside the other's,
 * which has its own on @device. */
static void beside(struct scene *s, int64_t with_us, int32_t device)
{
	for (int i = 0; i < 500; i++) {
		scene_call(s, CUDA_STREAM_SYNC, i * 20000, i < 250 ? 5000 : with_us);
		if (i >= 250)
			scene_add(s, SOURCE_CUDA, CUDA_STREAM_SYNC, OTHER, OTHER, i * 20000 + 10,
				8000)
				->device = device;
	}
}

#define SCENE _cleanup_(scene_done) struct scene s = {.seed = 1}

static struct gpu_sample processes(int64_t n)
{
	struct gpu_sample g;

	gpu_sample_init(&g);
	g.time.ns = SCENE_T0_NS;
	g.processes = n;
	return g;
}

static void slower_together(void **state)
{
	struct gpu_sample two = processes(2), one = processes(1);
	const struct incident *inc;
	struct recording rec;
	double unsure;
	SCENE;

	beside(&s, 10000, 0);
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	inc = answer_of(&a, PROBLEM_GPU_SHARING);
	assert_non_null(inc);
	assert_int_equal(inc->pid, VICTIM);
	assert_int_equal(inc->severity, SEVERITY_MEDIUM);
	assert_in_range(inc->excess_ns, 1240000000ull, 1260000000ull);
	assert_non_null(
		strstr(inc->summary, "2.0x slower (p50 5.0ms -> 10ms) while other (pid 5000)"));
	assert_int_equal(a.count,
		1); /* the calls that are slow for it are not told of as unexplained, too */
	unsure = inc->confidence;
	rec.gpus = &two;
	rec.gpu_count = 1;
	ANSWER b = answer_to(&rec);
	inc = answer_of(&b, PROBLEM_GPU_SHARING);
	assert_non_null(inc);
	assert_true(inc->confidence > unsure);
	rec.gpus = &one; /* the driver says that each has its own */
	ANSWER c = answer_to(&rec);
	assert_null(answer_of(&c, PROBLEM_GPU_SHARING));
}

static void together_without_harm(void **state)
{
	struct gpu_sample two = processes(2);
	struct recording rec;
	SCENE;

	beside(&s, 5000, 0);
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 0);
	rec.gpus = &two;
	rec.gpu_count = 1;
	ANSWER b = answer_to(&rec);
	assert_int_equal(b.count, 1);
	assert_int_equal(b.list[0].severity, SEVERITY_LOW);
	assert_non_null(strstr(b.list[0].summary, "2 processes use GPU 0"));
}

static void different_devices(void **state)
{
	struct recording rec;
	SCENE;

	beside(&s, 10000, 1);
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	assert_null(answer_of(&a, PROBLEM_GPU_SHARING));
}

static void ranks_of_one_job_have_their_own(void **state)
{
	struct recording rec;
	JOB;

	beside(&j.s, 10000, 0);
	job_call(&j, 0, 1, 0, 1000)->pid = VICTIM;
	job_call(&j, 1, 1, 0, 1000)->pid = OTHER;
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_null(answer_of(&a, PROBLEM_GPU_SHARING));
}

static void the_cpu_is_not_the_gpu(void **state)
{
	struct recording rec;
	SCENE;

	beside(&s, 10000, 0);
	for (int i = 250; i < 500; i++)
		scene_stay(&s, VICTIM, i * 20000 + 100, 4900, 4900, WIRE_PREEMPTED, OTHER, "other");
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	assert_null(answer_of(&a, PROBLEM_GPU_SHARING));
}

/* Only the victim is traced; the driver counts two in the seconds in which it is slower. */
static void who_is_not_traced_is_counted(void **state)
{
	struct gpu_sample g[10];
	const struct incident *inc;
	struct recording rec;
	SCENE;

	for (int i = 0; i < 500; i++)
		scene_call(&s, CUDA_STREAM_SYNC, i * 20000, i < 250 ? 5000 : 10000);
	for (int i = 0; i < 10; i++) {
		g[i] = processes(i < 5 ? 1 : 2);
		g[i].time.ns = SCENE_T0_NS + (i + 1) * INT64_C(1000000000);
		g[i].index = 0;
	}
	rec = scene_recording(&s);
	rec.gpus = g;
	rec.gpu_count = 10;
	ANSWER a = answer_to(&rec);
	inc = answer_of(&a, PROBLEM_GPU_SHARING);
	assert_non_null(inc);
	assert_non_null(strstr(inc->summary, "while an untraced process uses GPU 0"));
	for (int i = 0; i < 10; i++)
		g[i].processes = 2; /* nothing to compare with */
	ANSWER b = answer_to(&rec);
	inc = answer_of(&b, PROBLEM_GPU_SHARING);
	assert_non_null(inc);
	assert_int_equal(inc->severity, SEVERITY_LOW);
}

static void nodes_are_not_mixed(void **state)
{
	struct recording rec;
	SCENE;

	beside(&s, 10000, 0);
	rec = scene_recording(&s);
	rec.node = "gpu-1,gpu-2";
	ANSWER a = answer_to(&rec);
	assert_null(answer_of(&a, PROBLEM_GPU_SHARING));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slower_together),
		cmocka_unit_test(together_without_harm),
		cmocka_unit_test(different_devices),
		cmocka_unit_test(ranks_of_one_job_have_their_own),
		cmocka_unit_test(the_cpu_is_not_the_gpu),
		cmocka_unit_test(who_is_not_traced_is_counted),
		cmocka_unit_test(nodes_are_not_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
