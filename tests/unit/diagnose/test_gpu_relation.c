/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_relation.c - whether two processes use the same GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "diagnose/rows/gpu_relation.h"

enum { JOB = 100, OTHER = 200 };

struct scene {
	struct event events[4];
	struct process_home homes[2];
	struct gpu_sample gpus[2];
	struct recording rec;
};

/* Each with calls of one device; both have begun while they were recorded. */
static struct scene scene(int32_t of_job, int32_t of_other)
{
	struct scene s = {.homes = {{.pid = JOB, .rank = -1}, {.pid = OTHER, .rank = -1}}};

	for (int i = 0; i < 2; i++) {
		s.events[i] = (struct event){.source = SOURCE_HOST,
			.op = i ? HOST_PROCESS_FORK : HOST_PROCESS_EXEC,
			.pid = i ? 1 : JOB,
			.peer_pid = i ? OTHER : 0};
		s.events[2 + i] = (struct event){.source = SOURCE_CUDA,
			.op = CUDA_LAUNCH,
			.pid = i ? OTHER : JOB,
			.device = i ? of_other : of_job};
	}
	return s;
}

static enum gpu_relation relation(struct scene *s)
{
	s->rec.events = s->events;
	s->rec.event_count = 4;
	s->rec.homes = s->homes;
	s->rec.home_count = 2;
	s->rec.gpus = s->gpus;
	return gpu_relation_of(&s->rec, JOB, OTHER);
}

static void show(struct scene *s, const char *to_job, const char *to_other)
{
	snprintf(s->homes[0].visible_gpus, sizeof(s->homes[0].visible_gpus), "%s", to_job);
	snprintf(s->homes[1].visible_gpus, sizeof(s->homes[1].visible_gpus), "%s", to_other);
}

static void test_by_number(void **state)
{
	struct scene same = scene(0, 0), other = scene(0, 1);

	assert_int_equal(relation(&same), GPU_RELATION_NUMBER);
	assert_int_equal(relation(&other), GPU_RELATION_OTHER);
	other.events[0].pid =
		1; /* the job was met while it ran: it may have asked for another one */
	assert_int_equal(relation(&other), GPU_RELATION_UNKNOWN);
	other.events[2].device = 2;
	assert_int_equal(relation(&other), GPU_RELATION_OTHER);
	other.homes[1].pid = 1;
	assert_int_equal(relation(&other), GPU_RELATION_UNKNOWN);
}

static void test_by_the_list_of_the_environment(void **state)
{
	static const struct {
		const char *job, *other;
		int32_t device;
		enum gpu_relation expected;
	} cases[] = {
		{"0", "1", 0, GPU_RELATION_OTHER}, {"1", "1", 0, GPU_RELATION_NUMBER},
		{"", "0", 0, GPU_RELATION_NUMBER}, {"", "3", 0, GPU_RELATION_OTHER},
		{"2,3", "3,2", 0, GPU_RELATION_OTHER},
		{"2,3", "1,2", 1, GPU_RELATION_OTHER}, /* 3 and 2 */
		{"2,3", "0,3", 1, GPU_RELATION_NUMBER},
		{"GPU-8932f937-d72c", "GPU-8932f937-d72c", 0, GPU_RELATION_SAME},
		{"GPU-8932f937-d72c", "GPU-8932", 0, GPU_RELATION_SAME},
		{"GPU-8932f937-d72c", "GPU-77", 0, GPU_RELATION_OTHER},
		{"GPU-8932f937-d72c", "1", 0, GPU_RELATION_UNKNOWN},
		{"0", "1", 1, GPU_RELATION_UNKNOWN}, /* the list has no such */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scene s = scene(cases[i].device, cases[i].device);

		show(&s, cases[i].job, cases[i].other);
		assert_int_equal(relation(&s), cases[i].expected);
	}
}

static void test_numbers_of_containers(void **state)
{
	struct scene s = scene(0, 1);

	snprintf(s.homes[0].container_id, sizeof(s.homes[0].container_id), "a");
	assert_int_equal(relation(&s), GPU_RELATION_UNKNOWN);
	show(&s, "GPU-1", "GPU-2,GPU-1");
	assert_int_equal(relation(&s), GPU_RELATION_SAME);
	s = scene(0, 0);
	snprintf(s.homes[0].cgroup_path, sizeof(s.homes[0].cgroup_path), "/slurm/uid_0/job_1");
	snprintf(s.homes[1].cgroup_path, sizeof(s.homes[1].cgroup_path), "/slurm/uid_0/job_2");
	assert_int_equal(relation(&s), GPU_RELATION_UNKNOWN);
}

static void test_by_readings(void **state)
{
	struct scene s = scene(0, 0);

	for (int i = 0; i < 2; i++) {
		gpu_sample_init(&s.gpus[i]);
		s.gpus[i].index = i;
		s.gpus[i].processes = 1;
		s.gpus[i].process_1 = i ? OTHER : JOB;
	}
	s.rec.gpu_count = 2;
	assert_int_equal(relation(&s), GPU_RELATION_OTHER);
	s.gpus[1].process_1 = 999;
	assert_int_equal(relation(&s), GPU_RELATION_NUMBER);
	s.gpus[0].process_2 = OTHER;
	assert_int_equal(relation(&s), GPU_RELATION_SAME);
	s.rec.gpu_count = 1; /* the machine has one */
	s.gpus[0].process_2 = -1;
	assert_int_equal(relation(&s), GPU_RELATION_SAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_number),
		cmocka_unit_test(test_by_the_list_of_the_environment),
		cmocka_unit_test(test_numbers_of_containers),
		cmocka_unit_test(test_by_readings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
