/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_relief.c - a neighbour on the GPU that is blamed and then ended: one story, not two alarms. */
#include "verdict.h"

#include <signal.h>

#define OTHER 5000U

/* The victim's waits are longer while the other one works beside it; then the other one ends. */
static void neighbour(struct scene *s, int64_t with_us, uint64_t status)
{
	for (int i = 0; i < 500; i++) {
		scene_call(s, CUDA_STREAM_SYNC, i * 20000, i < 250 ? 5000 : with_us);
		if (i >= 250 && i < 490)
			scene_add(s, SOURCE_CUDA, CUDA_STREAM_SYNC, OTHER, OTHER, i * 20000 + 10,
				8000);
	}
	scene_add(s, SOURCE_HOST, HOST_PROCESS_EXIT, OTHER, OTHER, 9990000, 0)->arg0 = status;
}

static bool tells_end(const struct incident *inc)
{
	for (int i = 0; i < inc->step_count; i++)
		if (!strcmp(inc->timeline[i].op, "process_exit"))
			return true;
	return false;
}

static void expect(
	int64_t with_us, uint64_t status, enum severity severity, bool is_blamed, bool is_told)
{
	SCENE;
	neighbour(&s, with_us, status);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *end = verdict(&v, PROBLEM_ORCHESTRATION);
	const struct incident *sharing = verdict(&v, PROBLEM_GPU_SHARING);

	assert_non_null(end);
	assert_int_equal(end->severity, severity);
	assert_int_equal(!!sharing, is_blamed);
	if (!sharing)
		return;
	assert_int_equal(sharing->causes[0].culprit_pid, OTHER);
	assert_int_equal(tells_end(sharing), is_told);
	if (is_told)
		assert_has(end->explanation, "slowed down by it");
}

static void killed_neighbour(void **state)
{
	expect(10000, SIGKILL, SEVERITY_LOW, true, true);
	expect(10000, 137 << 8, SEVERITY_LOW, true, true);
}

/* What it did to others is no reason to keep quiet about a crash. */
static void crashed_neighbour(void **state)
{
	expect(10000, SIGSEGV, SEVERITY_MEDIUM, true, false);
	expect(10000, 1 << 8, SEVERITY_MEDIUM, true, false);
}

/* Nobody complained about it. */
static void killed_bystander(void **state)
{
	expect(5000, SIGKILL, SEVERITY_MEDIUM, false, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_neighbour),
		cmocka_unit_test(crashed_neighbour),
		cmocka_unit_test(killed_bystander),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
