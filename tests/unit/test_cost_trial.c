/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost_trial.c - a made-up job is played through whole trials: what is measured is what its
 * probes cost. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/trace/cost_trial.h"
#include "base/macros.h"

#define PID     7
#define TICK_NS ((int64_t)(5 * NS_PER_MS))

/* A step is work on the CPU, longer by `cost` with probes, and then sleep. */
struct job {
	double work_ns, sleep_ns, cost;
	double cpu_ns, in_step_ns; /* done; of the present step */
	wall_time now;
	bool on;
	uint64_t on_ticks, off_ticks;
};

static void job_tick(struct job *j, struct cost_trial *t)
{
	double left = (double)TICK_NS;

	while (left > 0) {
		double work = j->work_ns * (j->on ? 1 + j->cost : 1), step = work + j->sleep_ns;
		double part = MIN(left, step - j->in_step_ns);
		double worked = MIN(j->in_step_ns, work);

		j->in_step_ns += part;
		j->cpu_ns += MIN(j->in_step_ns, work) - worked;
		left -= part;
		if (j->in_step_ns < step)
			break;
		j->in_step_ns = 0;
		cost_trial_mark(t, PID, (wall_time){j->now.ns + TICK_NS - (int64_t)left});
	}
	j->now.ns += TICK_NS;
	*(j->on ? &j->on_ticks : &j->off_ticks) += 1;
}

/* Plays one trial to its end, switching late as the tracer does. Returns its ticks. */
static int play(struct cost_trial *t, struct job *j)
{
	int ticks = 0;

	cost_trial_begin(t);
	while (cost_trial_is_under_way(t)) {
		job_tick(j, t);
		cost_trial_step(t, j->now, j->on, (uint64_t)j->cpu_ns);
		j->on = t->wants_on;
		assert_true(ticks++ < 100000);
	}
	return ticks;
}

static void measures_what_the_probes_cost(void **state)
{
	static const double costs[] = {0, 0.03, 0.10, 0.70};

	for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
		struct job j = {.work_ns = 13e6, .sleep_ns = 4e6, .cost = costs[i], .now.ns = 1000};
		struct cost_trial t;
		struct paired p;

		cost_trial_init(&t, 3);
		cost_trial_watch(&t, PID);
		assert_false(cost_trial_result(&t, &p));
		play(&t, &j);
		assert_int_equal(t.pair_count, 16);
		assert_true(cost_trial_result(&t, &p));
		assert_true(p.low - 0.02 <= costs[i] && costs[i] <= p.high + 0.02);
		assert_true(fabs(p.middle - costs[i]) < 0.02);
		/* Both sides have their share, and the later trials are short. */
		assert_true(j.on_ticks > j.off_ticks / 2 && j.off_ticks > j.on_ticks / 2);
		play(&t, &j);
		assert_int_equal(t.pair_count, 20);
	}
}

/* It sleeps so long in each step that its rate hardly changes: its CPU time does. */
static void sleep_does_not_hide_the_cost(void **state)
{
	struct job j = {.work_ns = 5e6, .sleep_ns = 15e6, .cost = 0.2, .now.ns = 1000};
	struct cost_trial t;
	struct paired p;

	cost_trial_init(&t, 8);
	cost_trial_watch(&t, PID);
	play(&t, &j);
	assert_true(cost_trial_result(&t, &p));
	assert_true(fabs(p.middle - 0.2) < 0.05);
}

static void a_job_that_hardly_waits_is_left_alone_soon(void **state)
{
	struct job j = {.work_ns = 3e9, .now.ns = 1000};
	struct cost_trial t;
	struct paired p;

	cost_trial_init(&t, 1);
	cost_trial_watch(&t, PID);
	assert_true(play(&t, &j) * TICK_NS < 10 * (int64_t)NS_PER_S);
	assert_false(cost_trial_result(&t, &p));
}

static void another_process_begins_anew(void **state)
{
	struct job j = {.work_ns = 5e6, .sleep_ns = 5e6, .now.ns = 1000};
	struct cost_trial t;
	struct paired p;

	cost_trial_init(&t, 1);
	assert_int_equal(cost_trial_watch(&t, PID), 0);
	play(&t, &j);
	assert_true(cost_trial_result(&t, &p));
	assert_true(cost_trial_watch(&t, PID) > 100);
	assert_true(cost_trial_result(&t, &p));
	cost_trial_begin(&t);
	assert_int_equal(cost_trial_watch(&t, PID + 1), 0);
	assert_false(cost_trial_is_under_way(&t));
	assert_false(cost_trial_result(&t, &p));
}

static void dear_trials_are_rare(void **state)
{
	struct cost_trial t;
	wall_time now = {5};

	cost_trial_init(&t, 1);
	t.on_ns = 4 * NS_PER_S;
	cost_trial_rest(&t, now, 0.001, 0.001);
	assert_int_equal(t.due.ns, 5 + 60 * (int64_t)NS_PER_S);
	cost_trial_rest(&t, now, 0.2, 0.001);
	assert_int_equal(t.due.ns, 5 + 800 * (int64_t)NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures_what_the_probes_cost),
		cmocka_unit_test(sleep_does_not_hide_the_cost),
		cmocka_unit_test(a_job_that_hardly_waits_is_left_alone_soon),
		cmocka_unit_test(another_process_begins_anew),
		cmocka_unit_test(dear_trials_are_rare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
