/* SPDX-License-Identifier: Apache-2.0 */
/* cost_trial.c - see cost_trial.h. Runs on the tracer's thread, every few milliseconds during a
 * trial. Invariant: a window is open only while the probes are as it wants them, so what happens
 * while they are switched belongs to none. */
#include "agent/trace/cost_trial.h"

#include <math.h>

#include "base/macros.h"

#define WINDOW_NS      ((int64_t)(250 * NS_PER_MS))
#define WINDOW_MAX_NS  ((int64_t)(2 * NS_PER_S))
#define MARKS_WANTED   8 /* a window is drawn out until it has so many */
#define MARKS_MIN      3 /* with fewer it says nothing */
#define FIRST_PAIRS    16
#define LATER_PAIRS    4
#define UNUSABLE_LIMIT 2
#define REST_NS        (60 * (int64_t)NS_PER_S)

void cost_trial_init(struct cost_trial *t, uint64_t seed)
{
	*t = (struct cost_trial){.random = seed | 1, .wants_on = true};
}

uint64_t cost_trial_watch(struct cost_trial *t, uint32_t pid)
{
	uint64_t marks = t->marks;

	t->marks = 0;
	if (pid == t->pid)
		return marks;
	t->pid = pid;
	t->pairs_left = 0;
	t->pair_count = 0;
	return 0;
}

/* The next pair's first window, by xorshift. */
static void pair_begin(struct cost_trial *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	t->wants_on = t->random >> 63;
	t->is_second = false;
	t->is_open = false;
	t->step_ns[0] = t->step_ns[1] = 0;
	t->step_cpu_ns[0] = t->step_cpu_ns[1] = 0;
}

void cost_trial_begin(struct cost_trial *t)
{
	t->pairs_left = t->pair_count ? LATER_PAIRS : FIRST_PAIRS;
	t->unusable = 0;
	t->on_ns = 0;
	pair_begin(t);
}

void cost_trial_rest(struct cost_trial *t, wall_time now, double cost, double share)
{
	double rest = share > 0 ? (double)t->on_ns * cost / share : 0;

	t->due.ns = now.ns + (rest > (double)REST_NS ? (int64_t)rest : REST_NS);
}

void cost_trial_mark(struct cost_trial *t, uint32_t pid, wall_time at)
{
	if (pid != t->pid)
		return;
	t->marks++;
	if (!t->is_open || at.ns < t->began.ns)
		return;
	if (!t->window_marks++)
		t->first = at;
	t->last.ns = MAX(t->last.ns, at.ns);
}

static void window_open(struct cost_trial *t, wall_time now, uint64_t cpu_ns)
{
	t->is_open = true;
	t->began = t->first = t->last = now;
	t->began_cpu_ns = cpu_ns;
	t->window_marks = 0;
}

static void window_close(struct cost_trial *t, wall_time now, uint64_t cpu_ns)
{
	int64_t passed = now.ns - t->began.ns;
	double cpu_share = (double)(cpu_ns - MIN(t->began_cpu_ns, cpu_ns)) / (double)passed;
	double step_ns = t->window_marks < MARKS_MIN ? 0
						     : (double)(t->last.ns - t->first.ns) /
							       (double)(t->window_marks - 1);

	t->step_ns[t->wants_on] = step_ns;
	t->step_cpu_ns[t->wants_on] = cpu_share * step_ns;
	t->on_ns += t->wants_on ? (uint64_t)passed : 0;
}

/* A process that sleeps half of the time pays half as much of its time: its CPU time counts as the part
 * of the clock's that it is. With several busy threads it is more; what one of them pays counts. */
static void pair_end(struct cost_trial *t)
{
	const double *cpu = t->step_cpu_ns, *clock = t->step_ns;
	size_t at = t->pair_count % PAIRED_MAX;

	t->pairs_left--;
	if (cpu[0] > 0 && cpu[1] > 0) {
		t->by_clock[at] = log(clock[1] / clock[0]);
		t->by_cpu[at] =
			log(cpu[1] / cpu[0]) * MIN(1.0, (cpu[0] + cpu[1]) / (clock[0] + clock[1]));
		t->pair_count++;
		t->unusable = 0;
	} else if (++t->unusable >= UNUSABLE_LIMIT)
		t->pairs_left = 0;
	pair_begin(t);
}

bool cost_trial_step(struct cost_trial *t, wall_time now, bool is_on, uint64_t cpu_ns)
{
	int64_t passed = now.ns - t->began.ns;

	if (!t->pairs_left)
		return false;
	if (!t->is_open) {
		if (is_on == t->wants_on)
			window_open(t, now, cpu_ns);
		return false;
	}
	if (passed < WINDOW_NS || (t->window_marks < MARKS_WANTED && passed < WINDOW_MAX_NS))
		return false;
	window_close(t, now, cpu_ns);
	if (t->is_second)
		pair_end(t);
	else {
		t->is_second = true;
		t->is_open = false;
		t->wants_on = !t->wants_on;
	}
	return !t->pairs_left;
}

static bool estimate(const struct cost_trial *t, const double *logs, struct paired *ret)
{
	struct paired p;

	if (paired_estimate(logs, MIN(t->pair_count, (uint64_t)PAIRED_MAX), &p) < 0)
		return false;
	*ret = (struct paired){
		.middle = expm1(p.middle), .low = expm1(p.low), .high = expm1(p.high)};
	return true;
}

bool cost_trial_result(const struct cost_trial *t, struct cost_found *ret)
{
	struct cost_found f;

	if (!estimate(t, t->by_clock, &f.clock) || !estimate(t, t->by_cpu, &f.cpu))
		return false;
	*ret = f;
	return true;
}
