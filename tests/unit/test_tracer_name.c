/* SPDX-License-Identifier: Apache-2.0 */
/* test_tracer_name.c - which names are the tracer's, and what is said where it held up a job. */
#include "verdict.h"

#include "diagnose/accounts/tracer_name.h"
#include "ledger_fixture.h"

static void names(void **state)
{
	const char full[COMM_LEN] = {
		'i', 'n', 'g', 'e', 'r', 'o', '-', 'e', 'x', 'p', 'l', 'a', 'i', 'n'};

	assert_true(tracer_is("ingero"));
	assert_true(tracer_is("ingero-store"));
	assert_true(tracer_is(full));
	assert_false(tracer_is("ingero-cluster")); /* a service of its own */
	assert_false(tracer_is("ingerox"));
	assert_false(tracer_is(""));
	assert_string_equal(tracer_fold("ingero-symbol"), "ingero");
	assert_string_equal(tracer_fold("python3"), "python3");
}

/* Syncs of 1 ms; of 400 later ones @slow take 20 ms because two threads of one process preempt theirs. */
static void held_up(struct scene *s, int slow, const char *one, const char *other)
{
	scene_calm(s, CUDA_STREAM_SYNC, 0, 400, 50000, 1000);
	for (int i = 0; i < 400; i++) {
		int64_t at = 20000000 + i * 50000;

		scene_call(s, CUDA_STREAM_SYNC, at, i < slow ? 20000 : 1000);
		if (i < slow)
			scene_stay(s, VICTIM, at + 500, 19000, 19000, WIRE_PREEMPTED, HOG,
				i % 2 ? one : other);
	}
}

static void slow_calls(
	int slow, const char *one, const char *other, enum severity severity, const char *says)
{
	SCENE;
	held_up(&s, slow, one, other);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_true(v.count > 0);
	assert_int_equal(v.list[0].severity, severity);
	assert_has(v.list[0].root_cause, says);
}

/* The time is lost all the same, but nothing is wrong with the job: one degree less, and the advice is
 * about tracing. */
static void slow_calls_by_the_tracer(void **state)
{
	slow_calls(400, "hog", "hog", SEVERITY_HIGH, "CPU contention: hog");
	slow_calls(400, "ingero", "ingero-store", SEVERITY_MEDIUM,
		"the cost of tracing: ingero, the tracer itself");
	slow_calls(100, "hog", "hog", SEVERITY_MEDIUM, "CPU contention: hog");
	slow_calls(100, "ingero", "ingero-store", SEVERITY_LOW,
		"the cost of tracing: ingero, the tracer itself");
}

static void slow_steps(
	const char *comm, uint64_t ms, enum severity severity, const char *says, const char *advice)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(17));
		spend(&t, LEDGER_GPU_WAIT, MS(3));
		mark(&t, MARK_WAIT);
		if (i < 50)
			continue;
		rival(s, MAIN, t.at, MS(ms), 900, comm);
		spend(&t, LEDGER_CPU_WAIT, MS(ms));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	struct recording rec = ledger_recording(s);
	VERDICTS v = verdicts_of(&rec);

	assert_true(v.count > 0);
	assert_int_equal(v.list[0].severity, severity);
	assert_has(v.list[0].root_cause, says);
	assert_has(v.list[0].fixes[0], advice);
}

static void slow_steps_by_the_tracer(void **state)
{
	slow_steps("hog", 10, SEVERITY_HIGH, "hog (pid 900) has it", "Stop it");
	slow_steps("ingero-store", 10, SEVERITY_MEDIUM,
		"the cost of tracing: its threads are ready to run and get no CPU: ingero, the tracer itself (pid 900) has it",
		"tracer and workload on different CPUs");
	slow_steps("ingero-store", 4, SEVERITY_LOW, "the cost of tracing", "tracer and workload");
}

/* Slow allocations are what the job has; that the tracer held up waits as well comes after. */
static void the_jobs_own_come_first(void **state)
{
	SCENE;
	held_up(&s, 100, "ingero-store", "ingero");
	for (int i = 0; i < 800; i++)
		scene_call(&s, CUDA_MALLOC, 30000 + i * 50000, i > 700 && i % 5 ? 15000 : 1000);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 2);
	assert_int_equal(v.list[0].op, CUDA_MALLOC);
	assert_int_equal(v.list[1].op, CUDA_STREAM_SYNC);
	assert_true(v.list[1].excess_ns > v.list[0].excess_ns);
	assert_true(tracer_is_blamed(&v.list[1]));
	assert_false(tracer_is_blamed(&v.list[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(slow_calls_by_the_tracer),
		cmocka_unit_test(slow_steps_by_the_tracer),
		cmocka_unit_test(the_jobs_own_come_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
