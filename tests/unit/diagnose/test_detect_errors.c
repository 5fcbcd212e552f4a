/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_errors.c - which errors are told, as what, and how often. */
#include "verdict.h"
#include "diagnose/compose/diagnose.h"

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

static enum severity severity_after(int64_t exit_us, uint64_t status, uint16_t flags)
{
	SCENE;
	struct event *e;

	refuse(&s, CUDA_LAUNCH, 0, 701);
	e = scene_add(&s, SOURCE_HOST, HOST_PROCESS_EXIT, VICTIM, VICTIM, exit_us, 0);
	e->arg0 = status;
	e->flags = flags;
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	return verdict(&v, PROBLEM_KERNEL_COMPILER)->severity;
}

/* A launch that fails is tried again in another way, or is the end of the program. */
static void test_a_launch_that_ends_the_process(void **state)
{
	assert_int_equal(severity_after(500000, 1 << 8, 0), SEVERITY_MEDIUM);
	assert_int_equal(severity_after(500000, 0, 0), SEVERITY_LOW);
	assert_int_equal(severity_after(500000, 1 << 8, WIRE_THREAD), SEVERITY_LOW);
	assert_int_equal(severity_after(60000000, 1 << 8, 0), SEVERITY_LOW);
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

	assert_int_equal(v.count, DIAGNOSE_INCIDENTS_MAX);
}

static void test_forked_children_are_one_incident(void **state)
{
	SCENE;
	scene_forks(&s, 40);
	scene_add(&s, SOURCE_NCCL, NCCL_ALL_REDUCE, PARENT + 1, 1, 2000000, 10)->ret = 1;
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 1);
	assert_int_equal(v.list[0].problem, PROBLEM_DEVICE_ASSERT);
	assert_int_equal(v.list[0].count, 320);
	assert_int_equal(v.list[0].pid, PARENT + 1);
	assert_int_equal(v.list[0].pid_total, 40);
	assert_int_equal(v.list[0].pid_count, INCIDENT_PIDS);
	assert_int_equal(v.list[0].pids[0], PARENT + 1);
	assert_int_equal(v.list[0].pids[15], PARENT + 16);
	assert_int_equal(v.list[0].first.ns, SCENE_T0_NS + 1000100000);
	assert_int_equal(v.list[0].last.ns, SCENE_T0_NS + 1039107000);
	assert_has(v.list[0].summary, "CUDA error 3 (initialization error); 319 more calls failed "
				      "the same way, in 40 forked processes");
	assert_has(v.list[0].root_cause, "pid 100 had used CUDA before it forked");
	assert_has(v.list[0].fixes[0], "spawn start method");
	assert_has(v.list[0].evidence_sql, "timestamp BETWEEN");
}

static void test_few_children_are_named_in_the_sql(void **state)
{
	SCENE;
	scene_forks(&s, 2);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 1);
	assert_has(v.list[0].evidence_sql, "pid IN (101, 102) AND ret_code = 3");
}

/* A grandchild, whose parent was forked after use and never called CUDA, or failed itself. */
static void test_grandchildren(void **state)
{
	for (int fails = 0; fails < 2; fails++) {
		SCENE;
		scene_forks(&s, fails);
		scene_fork(&s, PARENT, 150, 1500000);
		if (fails)
			scene_fail(&s, 150, CUDA_MALLOC, 1500100, 3);
		scene_fork(&s, 150, 160, 1600000);
		scene_fail(&s, 160, CUDA_MALLOC, 1600100, 3);
		struct recording rec = scene_recording(&s);
		VERDICTS v = verdicts_of(&rec);

		assert_int_equal(v.count, 1);
		assert_has(v.list[0].root_cause, "pid 100 had used CUDA");
		assert_has(v.list[0].fixes[0], "spawn start method");
	}
}

static const struct incident *only(const struct verdicts *v)
{
	assert_int_equal(v->count, 1);
	assert_null(strstr(v->list[0].root_cause, "after fork"));
	assert_null(strstr(v->list[0].fixes[0], "set_start_method"));
	return &v->list[0];
}

/* Controls: none of these was forked by a process that had used CUDA. */
static void test_other_processes_get_other_advice(void **state)
{
	for (int trial = 0; trial < 5; trial++) {
		SCENE;
		if (trial == 1) { /* the parent's first call came after the fork */
			scene_fork(&s, PARENT, VICTIM, 1000);
			scene_add(&s, SOURCE_CUDA, CUDA_MALLOC, PARENT, PARENT, 2000, 10);
		} else if (trial == 2) { /* another program since */
			scene_add(&s, SOURCE_CUDA, CUDA_MALLOC, PARENT, PARENT, 0, 10);
			scene_fork(&s, PARENT, VICTIM, 1000);
			scene_add(&s, SOURCE_HOST, HOST_PROCESS_EXEC, VICTIM, VICTIM, 2000, 0);
		} else if (trial == 3) { /* CUDA does not work in the parent either */
			scene_fail(&s, PARENT, CUDA_MALLOC, 0, 3);
			scene_fork(&s, PARENT, VICTIM, 1000);
		} else if (trial == 4) { /* a process of that number was forked later */
			scene_add(&s, SOURCE_CUDA, CUDA_MALLOC, PARENT, PARENT, 0, 10);
			scene_fork(&s, PARENT, VICTIM, 9000);
		}
		refuse(&s, CUDA_MALLOC, 5000, 3);
		struct recording rec = scene_recording(&s);
		VERDICTS v = verdicts_of(&rec);

		assert_has(only(&v)->fixes[0], "nvidia-smi");
	}
}

static void test_advice_by_error(void **state)
{
	static const struct {
		int code;
		const char *part;
	} rows[] = {{1, "arguments"}, {101, "CUDA_VISIBLE_DEVICES"}, {46, "compute mode"},
		{35, "driver"}, {700, "CUDA_LAUNCH_BLOCKING"}, {802, "fabric manager"}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		SCENE;
		scene_add(&s, SOURCE_CUDA, CUDA_MALLOC, PARENT, PARENT, 0, 10);
		scene_fork(&s, PARENT, VICTIM, 1000); /* an error that a fork does not explain */
		refuse(&s, CUDA_LAUNCH, 5000, rows[i].code);
		struct recording rec = scene_recording(&s);
		VERDICTS v = verdicts_of(&rec);

		assert_has(only(&v)->fixes[0], rows[i].part);
	}
}

/* Ranks of one launcher that fail alike are one incident; another error of theirs is another. */
static void test_family(void **state)
{
	SCENE;
	for (uint32_t pid = 200; pid < 208; pid++) {
		scene_fork(&s, PARENT, pid, pid);
		scene_add(&s, SOURCE_HOST, HOST_PROCESS_EXEC, pid, pid, 1000 + pid, 0);
		scene_fail(&s, pid, CUDA_MALLOC, 2000 + pid, 35);
	}
	scene_fail(&s, 203, CUDA_LAUNCH, 9000, 1);
	scene_fail(&s, 300, CUDA_MALLOC, 9000, 35); /* a stranger */
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *refused = verdict(&v, PROBLEM_DEVICE_ASSERT);
	uint32_t processes = 0;

	assert_int_equal(v.count, 3);
	assert_int_equal(refused->pid, 203);
	assert_int_equal(refused->pid_total, 0);
	for (size_t i = 0; i < v.count; i++)
		processes += v.list[i].pid_total;
	assert_int_equal(processes, 8);
}

static void test_one_is_one(void **state)
{
	SCENE;
	refuse(&s, CUDA_FREE, 0, 1);
	refuse(&s, CUDA_FREE, 10, 1);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_has(only(&v)->summary, "; 1 more call failed the same way");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sticky_is_told_once),
		cmocka_unit_test(test_answers_are_no_errors),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_nccl),
		cmocka_unit_test(test_a_launch_that_ends_the_process),
		cmocka_unit_test(test_host_memory_is_not_the_gpus),
		cmocka_unit_test(test_forked_children_are_one_incident),
		cmocka_unit_test(test_few_children_are_named_in_the_sql),
		cmocka_unit_test(test_grandchildren),
		cmocka_unit_test(test_other_processes_get_other_advice),
		cmocka_unit_test(test_advice_by_error),
		cmocka_unit_test(test_family),
		cmocka_unit_test(test_one_is_one),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
