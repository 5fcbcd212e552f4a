/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_orchestration.c - how processes of a job ended. */
#include "verdict.h"
#include "diagnose/compose/diagnose.h"

#include <signal.h>

static void work(struct scene *s, uint32_t pid, int64_t from_us)
{
	for (int i = 0; i < 20; i++)
		scene_add(s, SOURCE_CUDA, CUDA_LAUNCH, pid, pid, from_us + i * 1000, 10);
}

static struct event *ended(struct scene *s, uint32_t pid, int64_t at_us, uint64_t status)
{
	struct event *e = scene_add(s, SOURCE_HOST, HOST_PROCESS_EXIT, pid, pid, at_us, 0);

	e->arg0 = status;
	return e;
}

static const struct incident *only(const struct verdicts *v)
{
	return verdict(v, PROBLEM_ORCHESTRATION);
}

static void test_clean_exit(void **state)
{
	SCENE;
	work(&s, VICTIM, 0);
	ended(&s, VICTIM, 50000, 0);
	ended(&s, 999, 50000, SIGKILL); /* made no CUDA call */
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 0);
}

static void expect(uint64_t status, enum severity severity, const char *says, const char *advises)
{
	SCENE;
	work(&s, VICTIM, 0);
	ended(&s, VICTIM, 50000, status);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_non_null(only(&v));
	assert_int_equal(only(&v)->severity, severity);
	assert_has(only(&v)->summary, says);
	assert_has(only(&v)->fixes[0], advises);
	assert_int_equal(only(&v)->evidence[0], 21);
}

static void test_ends(void **state)
{
	expect(SIGKILL, SEVERITY_MEDIUM, "killed by SIGKILL (9)", "who sent it");
	expect(SIGSEGV | 0x80, SEVERITY_MEDIUM, "SIGSEGV", "coredumpctl"); /* with a core file */
	expect(SIGTERM, SEVERITY_LOW, "SIGTERM", "who asked it");
	expect(1 << 8, SEVERITY_MEDIUM, "exited with code 1", "last output");
	expect(137 << 8, SEVERITY_MEDIUM, "SIGKILL", "who sent it");
	expect(143 << 8, SEVERITY_LOW, "SIGTERM", "who asked it");
}

/* What it started is killed by a job that then ends well; long before that end it is somebody else's doing. */
static void killed_before(int64_t other_us, enum severity severity)
{
	SCENE;
	work(&s, VICTIM, 0);
	work(&s, VICTIM + 1, 0);
	ended(&s, VICTIM, 50000, SIGKILL);
	ended(&s, VICTIM + 1, other_us, 0);
	for (size_t i = 0; i < s.event_count; i++)
		snprintf(s.events[i].comm, COMM_LEN, "python3");
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_non_null(only(&v));
	assert_int_equal(only(&v)->severity, severity);
}

static void test_killed_as_the_job_ends(void **state)
{
	killed_before(90000, SEVERITY_LOW);
	killed_before(4000000, SEVERITY_MEDIUM);
	killed_before(40000, SEVERITY_MEDIUM);
}

static void test_oom_and_restart(void **state)
{
	SCENE;
	work(&s, VICTIM, 0);
	scene_add(&s, SOURCE_HOST, HOST_OOM_KILL, 77, 77, 49000, 0)->arg1 = VICTIM;
	ended(&s, VICTIM, 50000, SIGKILL);
	work(&s, VICTIM + 1, 30000000);
	for (size_t i = 0; i < s.event_count; i++)
		snprintf(s.events[i].comm, COMM_LEN, "python3");
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(only(&v)->severity, SEVERITY_HIGH);
	assert_has(only(&v)->summary, "OOM killer; restarted as pid 4822");
	assert_int_equal(only(&v)->evidence_count, 2);
}

static void test_oom_elsewhere_is_a_note(void **state)
{
	SCENE;
	work(&s, VICTIM, 0);
	scene_add(&s, SOURCE_HOST, HOST_OOM_KILL, 77, 77, 49000, 0)->arg1 = 555;
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(only(&v)->severity, SEVERITY_LOW);
	assert_has(only(&v)->summary, "pid 555");
}

/* It exited because of an error that is reported already. */
static void test_consequence(void **state)
{
	SCENE;
	work(&s, VICTIM, 0);
	scene_call(&s, CUDA_LAUNCH, 40000, 10)->ret = 700;
	ended(&s, VICTIM, 50000, 1 << 8);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(only(&v));
	assert_non_null(verdict(&v, PROBLEM_DEVICE_ASSERT));
}

static void test_pod(void **state)
{
	SCENE;
	scene_add(&s, SOURCE_HOST, HOST_POD_EVICTION, VICTIM, VICTIM, 0, 0);
	struct recording rec = scene_recording(&s);
	rec.event_count = 1;
	struct incident *list;
	size_t n;

	assert_int_equal(diagnose_run(&rec, &list, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(list->severity, SEVERITY_HIGH);
	assert_has(list->summary, "evicted");
	free(list);
}

static void test_hostile(void **state)
{
	SCENE;
	scene_hostile(&s, SOURCE_HOST, HOST_PROCESS_EXIT);
	scene_hostile(&s, SOURCE_HOST, HOST_OOM_KILL);
	for (uint32_t i = 0; i < 3000; i++) {
		work(&s, i, 0);
		ended(&s, i, 50000, UINT64_MAX);
	}
	struct recording rec = scene_recording(&s);
	struct incident *list;
	size_t n;

	assert_int_equal(diagnose_run(&rec, &list, &n), 0);
	assert_int_equal(n, DIAGNOSE_INCIDENTS_MAX);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean_exit),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_killed_as_the_job_ends),
		cmocka_unit_test(test_oom_and_restart),
		cmocka_unit_test(test_oom_elsewhere_is_a_note),
		cmocka_unit_test(test_consequence),
		cmocka_unit_test(test_pod),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
