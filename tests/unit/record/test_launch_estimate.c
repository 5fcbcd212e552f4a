/* SPDX-License-Identifier: Apache-2.0 */
/* A process whose launches are known is watched in windows at random moments; what is estimated is compared with
 * the truth. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>

#include "record/trace/launch_estimate.h"
#include "base/clock.h"
#include "base/macros.h"

#define TICK_NS (NS_PER_MS / 2)
#define HIT_NS  1000
#define RUNS    100

static uint64_t random_state;

static double chance(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / (double)(1ull << 53);
}

/* What a process does in a tick. */
struct work {
	double launches, waits, cpu_ns;
};
typedef struct work job(double second);

struct outcome {
	double truth, estimate, error, by_weights;
	double before, error_before; /* shown before the last weight is known, and its error */
};

static bool has_ticks; /* the kernel tells what it found a process at every 4 ms */
static bool is_slowed; /* the process has no more CPU time in windows: it does less */
static double late_s;  /* after a weight was made, what it is applied to is read */

static void tick(struct launch_reading *now, double own_ns, double probes_ns)
{
	if (!has_ticks || now->time_ns % (4 * NS_PER_MS) != 0 || own_ns + probes_ns <= 0)
		return;
	now->tick_ns += 4 * NS_PER_MS;
	now->user_ns += chance() < own_ns / (own_ns + probes_ns) ? 4 * NS_PER_MS : 0;
}

static double weighted(struct launch_estimate *e, uint64_t launches)
{
	return (double)launches * launch_estimate_apply(e, (double)launches);
}

/* The job for @seconds, with windows of @window_ms one each @period_ms; launches cost the job @hit_ns each while
 * they are counted, of which the estimate is told HIT_NS. */
static struct outcome watch(
	job *work, double seconds, double window_ms, double period_ms, double hit_ns)
{
	struct launch_estimate e = {0};
	struct launch_reading now = {0};
	struct outcome o = {0};
	double opens = 0, left_launches = 0, left_waits = 0, since_weight = 0;
	bool is_read = true;
	uint64_t counted = 0;
	enum launch_phase was = LAUNCH_AWAY;

	launch_estimate_read(&e, &now, was, HIT_NS);
	for (double t = 0; t < seconds; t += (double)TICK_NS / NS_PER_S) {
		double ms = t * 1000, in_period = fmod(ms, period_ms);
		struct work w = work(t);
		bool open;
		double whole;

		if (in_period < (double)TICK_NS / NS_PER_MS)
			opens = chance() * (period_ms - window_ms);
		open = in_period >= opens && in_period < opens + window_ms;
		if (open != (was == LAUNCH_COUNTED))
			launch_estimate_read(&e, &now, was, HIT_NS);
		was = open ? LAUNCH_COUNTED : LAUNCH_AWAY;
		if (is_slowed && open && w.cpu_ns > 0) {
			double rest = w.cpu_ns / (w.cpu_ns + w.launches * hit_ns);

			w.launches *= rest;
			w.cpu_ns *= rest;
		}
		left_launches = modf(left_launches + w.launches, &whole);
		o.truth += whole;
		now.launches += open ? (uint64_t)whole : 0;
		now.time_ns += TICK_NS;
		now.cpu_ns += (uint64_t)(w.cpu_ns + (open ? whole * hit_ns : 0));
		tick(&now, w.cpu_ns, open ? whole * hit_ns : 0);
		left_waits = modf(left_waits + w.waits, &whole);
		now.waits += (uint64_t)whole;
		now.at_wait = whole > 0 ? now.launches : now.at_wait;
		if (in_period < opens + window_ms && fmod(ms, 10) < (double)TICK_NS / NS_PER_MS)
			launch_estimate_read(&e, &now, was, HIT_NS);
		if (t - since_weight >= 1) {
			launch_estimate_read(&e, &now, was, HIT_NS);
			launch_estimate_weigh(&e);
			since_weight = t;
			is_read = false;
		}
		if (!is_read && t - since_weight >= late_s) {
			o.by_weights += weighted(&e, now.launches - counted);
			counted = now.launches;
			is_read = true;
		}
	}
	launch_estimate_read(&e, &now, was, HIT_NS);
	launch_estimate_end(&e);
	o.before = o.by_weights + (double)(now.launches - counted);
	o.error_before = launch_estimate_error(&e);
	launch_estimate_weigh(&e);
	o.by_weights += weighted(&e, now.launches - counted);
	o.estimate = launch_estimate_total(&e);
	o.error = launch_estimate_error(&e);
	return o;
}

/* 20,000 a second, with the noise that CPU time has. */
static struct work steady(double second)
{
	return (struct work){.launches = 10, .cpu_ns = 10 * 9000 * (0.8 + 0.4 * chance())};
}

/* Two seconds of launches, two of other work on the CPU. */
static struct work bursts(double second)
{
	bool on = fmod(second, 4) < 2;

	return (struct work){
		.launches = on ? 20 : 0, .waits = on ? 0.2 : 0, .cpu_ns = TICK_NS * 0.9};
}

/* Two seconds of launches, two of nothing. */
static struct work naps(double second)
{
	bool on = fmod(second, 4) < 2;

	return (struct work){.launches = on ? 20 : 0, .cpu_ns = on ? TICK_NS * 0.9 : 500};
}

/* A step of 200 ms: launches in its first quarter, the CPU busy all the time. */
static struct work periodic(double second)
{
	bool on = fmod(second, 0.2) < 0.05;

	return (struct work){.launches = on ? 40 : 0, .waits = on ? 0.5 : 0, .cpu_ns = TICK_NS};
}

/* A step of 22 ms whose launches are in its first half, and CPU time that is not worth much; of every 4 s one and a half
 * are slept. */
static struct work steps(double second)
{
	bool on = fmod(second, 4) < 2.5, first = fmod(second, 0.022) < 0.011;

	return (struct work){.launches = on && first ? 68 : 0,
		.waits = on ? 0.5 / 22 : 0,
		.cpu_ns = on ? TICK_NS * (0.3 + 0.7 * chance()) : 0};
}

/* Steps of 10 ms and of 90 ms in turn, each with a wait at its end: a window holds none but the short ones whole. */
static struct work unlike(double second)
{
	long at = lrint(second * 1000 * NS_PER_MS / TICK_NS) % 200;

	return (struct work){.launches = at < 20 ? 80 : 320,
		.waits = at == 0 || at == 20,
		.cpu_ns = TICK_NS * (0.3 + 0.7 * chance())};
}

/* One of 150 ms, in a process that does nothing else. */
static struct work single(double second)
{
	bool on = second > 5.05 && second < 5.2;

	return (struct work){.launches = on ? 200 : 0, .cpu_ns = on ? TICK_NS : 0};
}

/* Nothing but launches, a microsecond each. */
static struct work tight(double second)
{
	return (struct work){.launches = TICK_NS / 1000.0, .cpu_ns = TICK_NS};
}

/* As many launches as it gets CPU for, which is from none to all. */
static struct work crowded(double second)
{
	double share = chance() * chance();

	return (struct work){.launches = 25 * share, .cpu_ns = TICK_NS * share};
}

static void everything_is_exact_without_gaps(void **state)
{
	struct outcome o = watch(steady, 3, 1e6, 1e6, HIT_NS);

	assert_true(o.estimate == o.truth);
	assert_true(o.by_weights == o.truth);
	assert_true(o.error == 0);
}

/* In how many of RUNS the truth is within the error; *ret_far: the largest distance, as a share. */
static int holds(job *work, double window_ms, double period_ms, double hit_ns, double *ret_far)
{
	int held = 0;

	*ret_far = 0;
	for (int i = 0; i < RUNS; i++) {
		struct outcome o;
		double off;

		random_state = 0x9e3779b97f4a7c15 * (uint64_t)(i + 1);
		o = watch(work, 16, window_ms, period_ms, hit_ns);
		off = fabs(o.estimate - o.truth);
		held += off <= o.error + 1;
		*ret_far = fmax(*ret_far, off / o.truth);
	}
	return held;
}

static void steady_launches_are_known_to_two_percent(void **state)
{
	double far;

	assert_true(holds(steady, 40, 400, HIT_NS, &far) >= 95);
	assert_true(far < 0.02);
}

static void bursts_are_known_to_five_percent(void **state)
{
	double far;

	assert_true(holds(naps, 40, 300, HIT_NS, &far) >= 95);
	assert_true(far < 0.05);
	assert_true(holds(bursts, 40, 300, HIT_NS, &far) >= 95);
	assert_true(far < 0.10);
}

static void steps_from_wait_to_wait_are_known_to_two_percent(void **state)
{
	double far;

	assert_true(holds(steps, 100, 900, HIT_NS, &far) >= 95);
	assert_true(far < 0.02);
}

static void the_error_holds_where_little_is_known(void **state)
{
	double far;

	assert_true(holds(unlike, 40, 900, HIT_NS, &far) >= 95);
	assert_true(far < 0.1);
	assert_true(holds(periodic, 40, 400, HIT_NS, &far) >= 95);
	assert_true(holds(single, 40, 400, HIT_NS, &far) >= 95);
}

/* Half of the CPU time in a window is the probes'. */
static void probes_that_slow_their_caller_do_not_hide_launches(void **state)
{
	double far;

	assert_true(holds(tight, 40, 800, HIT_NS, &far) >= 95);
	assert_true(far < 0.01);
	assert_true(holds(tight, 40, 800, 1.2 * HIT_NS, &far) >= 95); /* and known to a quarter */
	assert_true(far > 0.05);
	is_slowed = true;
	assert_true(holds(tight, 40, 800, 0.6 * HIT_NS, &far) >= 95);
	assert_true(holds(tight, 40, 800, 1.5 * HIT_NS, &far) >= 95);
	is_slowed = false;
	assert_true(far > 0.25);
}

/* What probes take is not the program's own code: ticks tell it where the agent's own cost does not. */
static void ticks_tell_what_probes_cost(void **state)
{
	double blind, seeing;

	is_slowed = true;
	assert_true(holds(tight, 100, 500, 2 * HIT_NS, &blind) < 95);
	has_ticks = true;
	assert_true(holds(tight, 100, 500, 2 * HIT_NS, &seeing) >= 95);
	assert_true(holds(tight, 100, 500, HIT_NS, &seeing) >= 95);
	has_ticks = is_slowed = false;
	assert_true(seeing < blind);
}

/* CPU time comes and goes, and with it the launches. */
static void a_busy_machine_is_within_the_error(void **state)
{
	double far;

	assert_true(holds(crowded, 40, 400, HIT_NS, &far) >= 95);
	assert_true(holds(crowded, 40, 400, 1.4 * HIT_NS, &far) >= 95);
}

static void weights_add_up_to_the_estimate(void **state)
{
	random_state = 7;
	struct outcome o = watch(steady, 20, 40, 400, HIT_NS);

	assert_true(fabs(o.by_weights - o.estimate) < 0.002 * o.truth);
	assert_true(o.error_before > o.error); /* what is owed is not shown yet, and is said */
	assert_true(o.error_before >= fabs(o.before - o.estimate));
}

/* Windows are open while the tables are read: some launches get the weight before theirs. */
static void weights_make_up_for_what_is_read_late(void **state)
{
	double off = 0;

	late_s = 0.03;
	for (random_state = 7; random_state < 7 + RUNS;) {
		uint64_t seed = random_state;
		struct outcome o = watch(steady, 20, 40, 400, HIT_NS);

		assert_true(fabs(o.by_weights - o.estimate) <= o.error + 0.001 * o.truth);
		off += fabs(o.by_weights - o.estimate) / o.truth;
		random_state = seed + 1;
	}
	late_s = 0;
	assert_true(off / RUNS < 0.002);
}

/* Launches that are met in the moment in which windows are turned are in the tables: they count. */
static void what_is_counted_beside_windows_counts(void **state)
{
	struct launch_estimate e = {0};
	struct launch_reading now = {.launches = 7};

	launch_estimate_read(&e, &now, LAUNCH_AWAY, HIT_NS);
	assert_true(launch_estimate_total(&e) == 0); /* from before it was watched */
	now.launches = 20;
	launch_estimate_read(&e, &now, LAUNCH_COUNTED, HIT_NS);
	now.launches = 24;
	launch_estimate_read(&e, &now, LAUNCH_GOING, HIT_NS);
	assert_true(launch_estimate_total(&e) == 17);
}

/* Tracing ends, and then it is heard that the process has. */
static void the_last_gap_is_filled_once(void **state)
{
	struct launch_estimate e = {0};
	struct launch_reading now = {0};
	double ended;

	launch_estimate_read(&e, &now, LAUNCH_COUNTED, HIT_NS);
	for (int step = 0; step < 400; step++) {
		enum launch_phase phase = step % 40 < 10 ? LAUNCH_COUNTED : LAUNCH_AWAY;

		now.launches += phase == LAUNCH_COUNTED ? 100 : 0;
		now.cpu_ns += 10 * NS_PER_MS;
		now.time_ns += 10 * NS_PER_MS;
		now.waits++;
		now.at_wait = now.launches;
		launch_estimate_read(&e, &now, phase, 0);
	}
	launch_estimate_end(&e);
	ended = launch_estimate_total(&e);
	assert_true(fabs(ended - 400 * 100) < 100);
	launch_estimate_read(&e, &now, LAUNCH_AWAY, 0);
	launch_estimate_end(&e);
	assert_true(e.chosen == LAUNCH_BY_WAITS);
	assert_true(fabs(launch_estimate_total(&e) - ended) < 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_exact_without_gaps),
		cmocka_unit_test(steady_launches_are_known_to_two_percent),
		cmocka_unit_test(bursts_are_known_to_five_percent),
		cmocka_unit_test(steps_from_wait_to_wait_are_known_to_two_percent),
		cmocka_unit_test(the_error_holds_where_little_is_known),
		cmocka_unit_test(probes_that_slow_their_caller_do_not_hide_launches),
		cmocka_unit_test(ticks_tell_what_probes_cost),
		cmocka_unit_test(a_busy_machine_is_within_the_error),
		cmocka_unit_test(what_is_counted_beside_windows_counts),
		cmocka_unit_test(the_last_gap_is_filled_once),
		cmocka_unit_test(weights_add_up_to_the_estimate),
		cmocka_unit_test(weights_make_up_for_what_is_read_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
