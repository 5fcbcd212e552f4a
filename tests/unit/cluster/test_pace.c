/* SPDX-License-Identifier: Apache-2.0 */
/* test_pace.c - windows and waits follow the length of a job's steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/detect/fleet_private.h"
#include "cluster/simulate/play.h"

static void test_steps_that_are_known(void **state)
{
	struct suspect_job j = {.step_ns = 90 * NS_PER_S, .is_steady = true};

	pace_note(&j,
		&(struct blame){.steps = 3, .step_ns = 20 * NS_PER_S, .span_ns = 60 * NS_PER_S}, 0);
	assert_int_equal(j.step_ns, 20 * NS_PER_S);
	assert_int_equal(j.steps, 3);
}

/* A job of a minute in which no three steps were seen has steps of twenty seconds or more. */
static void test_steps_that_are_long(void **state)
{
	struct suspect_job j = {0};

	pace_note(&j, &(struct blame){.steps = 2, .calls = 500, .span_ns = 60 * NS_PER_S}, 0);
	assert_int_equal(j.step_ns, 20 * NS_PER_S);
	pace_note(&j, &(struct blame){.steps = 0, .calls = 500, .span_ns = 30 * NS_PER_S}, 0);
	assert_int_equal(j.step_ns, 20 * NS_PER_S);
}

/* Ten steps that are about as long: then it is known. */
static void test_known_after_a_while(void **state)
{
	struct blame b = {.steps = 9, .step_ns = NS_PER_S};
	struct suspect_job j = {.is_steady = true};

	pace_note(&j, &b, 100 * (int64_t)NS_PER_S);
	assert_false(pace_is_known(&j, 109 * (int64_t)NS_PER_S));
	assert_true(pace_is_known(&j, 110 * (int64_t)NS_PER_S));
	b.step_ns = 5 * NS_PER_S / 4;
	pace_note(&j, &b, 110 * (int64_t)NS_PER_S);
	assert_false(pace_is_known(&j, 112 * (int64_t)NS_PER_S));
	assert_true(pace_is_known(&j, 113 * (int64_t)NS_PER_S));
	b.step_ns = 3 * NS_PER_S; /* what looked like steps were parts of them */
	pace_note(&j, &b, 120 * (int64_t)NS_PER_S);
	assert_false(pace_is_known(&j, 149 * (int64_t)NS_PER_S));
	assert_true(pace_is_known(&j, 150 * (int64_t)NS_PER_S));
}

/* What looks like steps in a job's first ones are parts of them: these are as long as if there were none. */
static void test_parts_of_steps(void **state)
{
	struct blame b = {.steps = 60, .calls = 500, .step_ns = NS_PER_S, .span_ns = 60 * NS_PER_S};
	struct suspect_job j = {0};

	pace_look(&j, &b, 60 * (int64_t)NS_PER_S);
	pace_note(&j, &b, 60 * (int64_t)NS_PER_S);
	assert_false(pace_is_steady(&j, 60 * (int64_t)NS_PER_S));
	assert_int_equal(j.step_ns, 20 * NS_PER_S);
	assert_int_equal(j.span_ns, 60 * NS_PER_S);
	b.is_steady = true; /* the control */
	pace_look(&j, &b, 61 * (int64_t)NS_PER_S);
	pace_note(&j, &b, 61 * (int64_t)NS_PER_S);
	assert_true(pace_is_steady(&j, 61 * (int64_t)NS_PER_S));
	assert_int_equal(j.step_ns, NS_PER_S);
	assert_int_equal(j.span_ns, 0);
}

/* It may be taken back, but not after 20 steps and 5 s; and nobody waits for longer than five minutes. */
static void test_steady_for_good(void **state)
{
	struct blame b = {.steps = 20, .is_steady = true};
	struct suspect_job j = {.born_ns = 0}, never = {.born_ns = 0};

	pace_look(&j, &b, 1 * (int64_t)NS_PER_S);
	b.is_steady = false; /* a kind of call comes for the first time */
	pace_look(&j, &b, 5 * (int64_t)NS_PER_S);
	assert_false(pace_is_steady(&j, 5 * (int64_t)NS_PER_S));
	b.is_steady = true;
	pace_look(&j, &b, 10 * (int64_t)NS_PER_S);
	pace_look(&j, &b, 15 * (int64_t)NS_PER_S);
	b.is_steady = false;
	pace_look(&j, &b, 20 * (int64_t)NS_PER_S);
	assert_true(pace_is_steady(&j, 20 * (int64_t)NS_PER_S));
	pace_look(&never, &b, 20 * (int64_t)NS_PER_S);
	assert_false(pace_is_steady(&never, 299 * (int64_t)NS_PER_S));
	assert_true(pace_is_steady(&never, 300 * (int64_t)NS_PER_S));
}

/* So many calls and no steps: it has none, as a service for requests. */
static void test_no_steps(void **state)
{
	struct suspect_job j = {0};

	pace_note(&j, &(struct blame){.steps = 0, .calls = 200000, .span_ns = 60 * NS_PER_S}, 0);
	assert_int_equal(j.step_ns, 0);
}

static void test_the_slowest_job_counts(void **state)
{
	struct fleet f = {.now_ns = 1000 * (int64_t)NS_PER_S};
	struct cluster c = {.jobs = {{.comm = 1, .step_ns = NS_PER_S, .steps = 50},
				    {.comm = 2, .step_ns = 5 * NS_PER_S, .steps = 50},
				    {.comm = 3, .step_ns = 9 * NS_PER_S, .steps = 50}}};

	assert_int_equal(calls_new(&calls_defaults, &c.calls), 0);
	assert_int_equal(calls_lasting(c.calls, 7, 2), 7); /* nothing is known */
	c.jobs[0].seen_ns = c.jobs[1].seen_ns = f.now_ns;
	c.jobs[2].seen_ns = f.now_ns - 200 * (int64_t)NS_PER_S; /* it has ended */
	pace_set(&f, &c);
	assert_int_equal(calls_lasting(c.calls, 7, 2), 10 * NS_PER_S);
	assert_int_equal(calls_lasting(c.calls, 11 * (int64_t)NS_PER_S, 2), 11 * NS_PER_S);
	calls_free(c.calls);
}

static void test_looked_for_more_often_while_young(void **state)
{
	struct fleet f = {.now_ns = 1000 * (int64_t)NS_PER_S};
	struct cluster c = {.jobs = {{.comm = 1, .step_ns = NS_PER_S, .steps = 19}}};
	int64_t young;

	assert_int_equal(calls_new(&calls_defaults, &c.calls), 0);
	pace_set(&f, &c); /* no job yet: the first may have begun a moment later */
	young = c.pace_due_ns;
	c.jobs[0].seen_ns = f.now_ns;
	pace_set(&f, &c);
	assert_int_equal(c.pace_due_ns, young);
	c.jobs[0].steps = 20;
	pace_set(&f, &c);
	assert_true(young > f.now_ns);
	assert_true(c.pace_due_ns > young);
	calls_free(c.calls);
}

/* Clusters whose steps take 4 to 24 s: each fault is named, and nobody else. */
static void test_long_steps(void **state)
{
	static const struct {
		uint64_t seed;
		enum job_fault fault;
	} played[] = {{90210000000, JOB_NONE}, {90210000001, JOB_SLOW}, {90210000002, JOB_LATE},
		{90210000014, JOB_HANG}, {550021000003, JOB_DRIFT}, {550021000018, JOB_LATE}};

	for (size_t i = 0; i < ARRAY_SIZE(played); i++) {
		struct verdict v;

		assert_int_equal(verdict_of_random(played[i].seed, played[i].fault,
					 &(struct verdict_how){.stretch = 40}, &v),
			0);
		if (!v.right || v.false_alarms)
			print_error("%s (%s; %s): %s\n", job_fault_id(v.fault), v.truth, v.shape,
				v.said);
		assert_true(v.right);
		assert_int_equal(v.false_alarms, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_that_are_known),
		cmocka_unit_test(test_steps_that_are_long),
		cmocka_unit_test(test_known_after_a_while),
		cmocka_unit_test(test_parts_of_steps),
		cmocka_unit_test(test_steady_for_good),
		cmocka_unit_test(test_no_steps),
		cmocka_unit_test(test_the_slowest_job_counts),
		cmocka_unit_test(test_looked_for_more_often_while_young),
		cmocka_unit_test(test_long_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
