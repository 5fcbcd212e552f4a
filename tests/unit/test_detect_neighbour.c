/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_neighbour.c - slow calls get their name by who is to blame and where that one lives. */
#include "ranks_fixture.h"

#define SCENE _cleanup_(scene_done) struct scene s = {.seed = 1}

static const struct incident *problem_with(
	struct answer *a, struct scene *s, const struct process_home *homes, size_t count)
{
	struct recording rec = scene_recording(s);

	rec.homes = homes;
	rec.home_count = count;
	*a = answer_to(&rec);
	assert_int_equal(a->count, 1);
	return &a->list[0];
}

static void the_cpu_by_whom(void **state)
{
	const struct process_home apart[] = {{.pid = VICTIM, .container_id = "aaa"},
		{.pid = HOG, .container_id = "bbb", .pod = "batch-7"}};
	const struct process_home outside[] = {
		{.pid = VICTIM, .container_id = "aaa"}, {.pid = HOG, .cgroup_path = "/"}};
	const struct process_home together[] = {
		{.pid = VICTIM, .container_id = "aaa"}, {.pid = HOG, .container_id = "aaa"}};
	const struct process_home groups[] = {
		{.pid = VICTIM, .cgroup_path = "/a"}, {.pid = HOG, .cgroup_path = "/b"}};
	const struct process_home root[] = {
		{.pid = VICTIM, .cgroup_path = "/a"}, {.pid = HOG, .cgroup_path = "/"}};
	const struct incident *inc;
	SCENE;

	scene_hog(&s);
	scene_aggregate(&s);
	ANSWER a, b, c, d, e, f;
	inc = problem_with(&a, &s, NULL, 0);
	assert_int_equal(inc->problem, PROBLEM_CPU_CONTENTION);
	inc = problem_with(&b, &s, apart, 2);
	assert_int_equal(inc->problem, PROBLEM_NOISY_NEIGHBOUR);
	assert_non_null(
		strstr(inc->root_cause, "sim-cpu-hog (pid 8821) in pod batch-7 used the CPU"));
	assert_non_null(strstr(inc->fixes[0], "pod batch-7"));
	inc = problem_with(&c, &s, outside, 2);
	assert_int_equal(inc->problem, PROBLEM_NOISY_NEIGHBOUR);
	inc = problem_with(&d, &s, together, 2);
	assert_int_equal(inc->problem, PROBLEM_CPU_CONTENTION);
	inc = problem_with(&e, &s, groups, 2);
	assert_int_equal(inc->problem, PROBLEM_NOISY_NEIGHBOUR);
	inc = problem_with(&f, &s, root, 2);
	assert_int_equal(inc->problem, PROBLEM_CPU_CONTENTION);
}

/* A crowd of which a neighbour has a small part is not its doing. */
static void a_small_part_is_not_enough(void **state)
{
	const struct process_home homes[] = {
		{.pid = VICTIM, .container_id = "aaa"}, {.pid = 7001, .container_id = "bbb"}};
	const struct incident *inc;
	SCENE;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 400, 50000, 1000);
	for (int i = 0; i < 400; i++) {
		int64_t at = 20000000 + i * 50000;
		char name[8];

		scene_call(&s, CUDA_STREAM_SYNC, at, 20000);
		snprintf(name, sizeof(name), "p%d", i % 5);
		scene_stay(&s, VICTIM, at + 500, 19000, 19000, WIRE_PREEMPTED,
			7001 + (uint32_t)(i % 5), name);
	}
	scene_aggregate(&s);
	ANSWER a;
	inc = problem_with(&a, &s, homes, 2);
	assert_int_equal(inc->problem, PROBLEM_CPU_CONTENTION);
}

static void the_unexplained_stays_what_it_is(void **state)
{
	const struct process_home homes[] = {
		{.pid = VICTIM, .container_id = "aaa"}, {.pid = HOG, .container_id = "bbb"}};
	const struct incident *inc;
	SCENE;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 400, 50000, 1000);
	scene_calm(&s, CUDA_STREAM_SYNC, 20000000, 400, 50000, 20000);
	scene_aggregate(&s);
	ANSWER a;
	inc = problem_with(&a, &s, homes, 2);
	assert_int_equal(inc->problem, PROBLEM_SLOW_CALL);
	assert_int_equal(inc->severity, SEVERITY_LOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cpu_by_whom),
		cmocka_unit_test(a_small_part_is_not_enough),
		cmocka_unit_test(the_unexplained_stays_what_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
