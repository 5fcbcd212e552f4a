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

/* Steps of 50 ms; then @slow take 69 because two threads of one process have the CPU in turns, as a file without a
 * ledger has it. */
static void without_a_ledger(const char *one, const char *other, enum severity severity)
{
	SCENE;
	int64_t at = 0;

	scene_steps(&s, &at, 200);
	for (int i = 0; i < 400; i++)
		scene_hogged(&s, &at, 1, HOG, i % 2 ? one : other);
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 1);
	assert_int_equal(v.list[0].severity, severity);
	assert_int_equal(tracer_is_blamed(&v.list[0]), tracer_is(one));
	assert_has(v.list[0].summary, tracer_is(one) ? "tracing" : one);
}

/* The time is lost all the same, but nothing is wrong with the job. */
static void derived_steps_by_the_tracer(void **state)
{
	without_a_ledger("hog", "hog", SEVERITY_HIGH);
	without_a_ledger("ingero", "ingero-store", SEVERITY_LOW);
}

static void slow_steps(
	const char *comm, uint64_t ms, enum severity severity, const char *says, const char *advice)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(3));
		spend(&t, LEDGER_GPU_WAIT, MS(17));
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
	assert_has(v.list[0].summary, says);
	assert_has(v.list[0].fixes[0], advice);
}

static void slow_steps_by_the_tracer(void **state)
{
	slow_steps("hog", 10, SEVERITY_HIGH, "hog (pid 900)", "");
	slow_steps("ingero-store", 10, SEVERITY_LOW, "ingero", "overhead-budget");
	slow_steps("ingero-store", 4, SEVERITY_LOW, "ingero", "overhead-budget");
}

/* A disk that the job waits for for a moment comes before what tracing costs it, however much that is. */
static void the_jobs_own_come_first(void **state)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(3));
		spend(&t, LEDGER_GPU_WAIT, MS(17));
		mark(&t, MARK_WAIT);
		if (i < 50)
			continue;
		rival(s, MAIN, t.at, MS(10), 900, "ingero-store");
		spend(&t, LEDGER_CPU_WAIT, MS(10));
		mark(&t, MARK_TICK);
		stay(&t, LEDGER_DISK, MS(5), 0, 0, 0);
	}
	mark(&t, MARK_OPTIMIZER);
	struct recording rec = ledger_recording(s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 2);
	assert_true(v.list[1].excess_ns > v.list[0].excess_ns);
	assert_true(tracer_is_blamed(&v.list[1]));
	assert_false(tracer_is_blamed(&v.list[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(derived_steps_by_the_tracer),
		cmocka_unit_test(slow_steps_by_the_tracer),
		cmocka_unit_test(the_jobs_own_come_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
