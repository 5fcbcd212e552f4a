/* SPDX-License-Identifier: Apache-2.0 */
/* cost_trial.c - see cost_trial.h. Runs on the tracer's thread. Invariant: a window is open only while the
 * probes are all there or all away, so what happens while they are switched belongs to none. */
#include "record/trace/cost_trial.h"

#include <math.h>

#include "base/macros.h"

#define MARKS_MIN 3 /* with fewer a window says nothing */

uint64_t cost_trial_watch(struct cost_trial *t, uint32_t pid)
{
	uint64_t marks = t->marks;

	t->marks = 0;
	if (pid == t->pid)
		return marks;
	*t = (struct cost_trial){.pid = pid};
	return 0;
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

void cost_trial_open(struct cost_trial *t, wall_time now, bool with_probes, uint64_t cpu_ns)
{
	t->is_open = true;
	t->with_probes = with_probes;
	t->began = t->first = t->last = now;
	t->began_cpu_ns = cpu_ns;
	t->window_marks = 0;
}

/* A process that sleeps half of the time pays half as much of its time: its CPU time counts as the part
 * of the clock's that it is. With several busy threads it is more; what one of them pays counts. */
static void pair_end(struct cost_trial *t)
{
	const double *cpu = t->step_cpu_ns, *clock = t->step_ns;
	size_t at = t->pair_count % PAIRED_MAX;

	if (cpu[0] > 0 && cpu[1] > 0) {
		t->by_clock[at] = log(clock[1] / clock[0]);
		t->by_cpu[at] =
			log(cpu[1] / cpu[0]) * MIN(1.0, (cpu[0] + cpu[1]) / (clock[0] + clock[1]));
		t->pair_count++;
	}
	t->step_ns[0] = t->step_ns[1] = 0;
	t->step_cpu_ns[0] = t->step_cpu_ns[1] = 0;
}

bool cost_trial_close(struct cost_trial *t, wall_time now, uint64_t cpu_ns)
{
	int64_t passed = now.ns - t->began.ns;
	uint64_t pairs = t->pair_count;
	double cpu_share, step_ns;

	if (!t->is_open || passed <= 0)
		return false;
	t->is_open = false;
	cpu_share = (double)(cpu_ns - MIN(t->began_cpu_ns, cpu_ns)) / (double)passed;
	step_ns = t->window_marks < MARKS_MIN
			  ? 0
			  : (double)(t->last.ns - t->first.ns) / (double)(t->window_marks - 1);
	t->step_ns[t->with_probes] = step_ns;
	t->step_cpu_ns[t->with_probes] = cpu_share * step_ns;
	if (t->with_probes)
		pair_end(t);
	return t->pair_count != pairs;
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
