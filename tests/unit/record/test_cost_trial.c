/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost_trial.c - a made-up job is played through windows with and without probes: what is measured is what
 * its probes cost. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/trace/governor.h"
#include "base/macros.h"

#define PID     7
#define TICK_NS ((int64_t)(5 * NS_PER_MS))

/* A step is work on the CPU, longer by `cost` with probes, and then sleep, which is so much shorter if it
 * hides that. */
struct job {
	double work_ns, sleep_ns, cost;
	bool hides;
	int threads;               /* that do the same; 0: one */
	double cpu_ns, in_step_ns; /* done; of the present step */
	wall_time now;
	bool on;
};

static void job_tick(struct job *j, struct cost_trial *t)
{
	double left = (double)TICK_NS;

	while (left > 0) {
		double work = j->work_ns * (j->on ? 1 + j->cost : 1), step = work + j->sleep_ns;
		double part, worked = MIN(j->in_step_ns, work);

		if (j->hides)
			step = j->work_ns + j->sleep_ns;
		part = MIN(left, step - j->in_step_ns);
		j->in_step_ns += part;
		j->cpu_ns += MAX(j->threads, 1) * (MIN(j->in_step_ns, work) - worked);
		left -= part;
		if (j->in_step_ns < step)
			break;
		j->in_step_ns = 0;
		cost_trial_mark(t, PID, (wall_time){j->now.ns + TICK_NS - (int64_t)left});
	}
	j->now.ns += TICK_NS;
}

#define PAIRS 16

/* Plays @pairs pairs: 300 ms without probes, then 100 ms with them. */
static void play(struct cost_trial *t, struct job *j, int pairs)
{
	for (int i = 0; i < 2 * pairs; i++) {
		j->on = i % 2;
		cost_trial_open(t, j->now, j->on, (uint64_t)j->cpu_ns);
		for (int tick = 0; tick < (j->on ? 20 : 60); tick++)
			job_tick(j, t);
		cost_trial_close(t, j->now, (uint64_t)j->cpu_ns);
		job_tick(j, t); /* probes are turned: it belongs to no window */
	}
}

/* With the ends of windows between marks, and a logarithm for a share: not exact. */
static void about(const struct paired *p, double truth)
{
	double room = 0.015 + truth / 10;

	assert_true(p->low - room <= truth && truth <= p->high + room);
	assert_true(fabs(p->middle - truth) < room);
}

static void measures_what_the_probes_cost(void **state)
{
	static const double costs[] = {0, 0.03, 0.10, 0.70};

	for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
		struct job j = {.work_ns = 13e6, .sleep_ns = 4e6, .cost = costs[i], .now.ns = 1000};
		struct cost_trial t = {0};
		struct cost_found f;

		cost_trial_watch(&t, PID);
		assert_false(cost_trial_result(&t, &f));
		play(&t, &j, PAIRS);
		assert_int_equal(t.pair_count, PAIRS);
		assert_true(cost_trial_result(&t, &f));
		about(&f.clock, costs[i] * 13 / 17);
		about(&f.cpu, costs[i] * 13 / 17);
	}
}

/* It sleeps for three quarters of each step: a fifth more CPU time is a twentieth of its time. */
static void cpu_time_is_told_as_a_part_of_the_clocks(void **state)
{
	struct job j = {.work_ns = 5e6, .sleep_ns = 15e6, .cost = 0.2, .now.ns = 1000};
	struct cost_trial t = {0};
	struct cost_found f;

	cost_trial_watch(&t, PID);
	play(&t, &j, PAIRS);
	assert_true(cost_trial_result(&t, &f));
	about(&f.cpu, 0.05);
	about(&f.clock, 0.05);
}

/* The GPU decides how long a step is: what the probes take is taken off the wait for it. */
static void a_gpu_bound_job_pays_cpu_time_and_loses_none(void **state)
{
	struct job j = {
		.work_ns = 6e6, .sleep_ns = 16.3e6, .cost = 0.2, .hides = true, .now.ns = 1000};
	struct cost_trial t = {0};
	struct cost_found f;

	cost_trial_watch(&t, PID);
	play(&t, &j, PAIRS);
	assert_true(cost_trial_result(&t, &f));
	about(&f.cpu, 0.2 * 6 / 22.3);
	assert_true(fabs(f.clock.middle) < 0.005 && f.clock.high < 0.02);
}

/* Eight threads that are always busy: a step that is 10 % longer has 10 % more CPU time, not 80. */
static void many_busy_threads_count_as_one(void **state)
{
	struct job j = {.work_ns = 13e6, .cost = 0.1, .threads = 8, .now.ns = 1000};
	struct cost_trial t = {0};
	struct cost_found f;

	cost_trial_watch(&t, PID);
	play(&t, &j, PAIRS);
	assert_true(cost_trial_result(&t, &f));
	about(&f.cpu, 0.1);
	about(&f.clock, 0.1);
}

static void windows_without_whole_steps_say_nothing(void **state)
{
	struct job j = {.work_ns = 3e9, .now.ns = 1000};
	struct cost_trial t = {0};
	struct cost_found f;

	cost_trial_watch(&t, PID);
	play(&t, &j, PAIRS);
	assert_int_equal(t.pair_count, 0);
	assert_false(cost_trial_result(&t, &f));
}

static void another_process_begins_anew(void **state)
{
	struct job j = {.work_ns = 5e6, .sleep_ns = 5e6, .now.ns = 1000};
	struct cost_trial t = {0};
	struct cost_found f;

	assert_int_equal(cost_trial_watch(&t, PID), 0);
	play(&t, &j, PAIRS);
	assert_true(cost_trial_result(&t, &f));
	assert_true(cost_trial_watch(&t, PID) > 100);
	assert_true(cost_trial_result(&t, &f));
	assert_int_equal(cost_trial_watch(&t, PID + 1), 0);
	assert_false(cost_trial_result(&t, &f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures_what_the_probes_cost),
		cmocka_unit_test(cpu_time_is_told_as_a_part_of_the_clocks),
		cmocka_unit_test(a_gpu_bound_job_pays_cpu_time_and_loses_none),
		cmocka_unit_test(many_busy_threads_count_as_one),
		cmocka_unit_test(windows_without_whole_steps_say_nothing),
		cmocka_unit_test(another_process_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
