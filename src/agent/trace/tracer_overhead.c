/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_overhead.c - what tracing costs the busiest process: holds it within the budget, measures it
 * in trials, writes it down. */
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/capture/use.h"
#include "agent/trace/tracer_private.h"
#include "base/file.h"

#define TRIAL_FROM  0.25  /* of the budget: below, a trial would measure nothing */
#define TRIAL_SHARE 0.125 /* of the budget: what trials may cost */
#define TRIAL_SURE  8     /* pairs, before a trial may end for being sure */
#define MARKS_RATE  4     /* a second: a process with fewer has no trial */

unsigned tracer_launch_weight(const struct tracer *t)
{
	return cost_trial_is_under_way(&t->trial) ? 2 : t->governor.weight;
}

/* CPU time of all threads of a process; 0: it is gone. The clock's id is made by hand (the kernel's
 * ABI: the id inverted, above three bits, of which 2 says "as the scheduler counts"), because
 * clock_getcpuclockid() makes a system call that the confined thread has given up. */
static uint64_t process_cpu_ns(uint32_t pid)
{
	struct timespec ts;

	if (clock_gettime((clockid_t)(~pid << 3 | 2), &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void trial_end(struct tracer *t, wall_time now)
{
	struct cost_found f = {0};

	t->trial.pairs_left = 0;
	if (cost_trial_result(&t->trial, &f))
		governor_learn(&t->governor, f.cpu.low, f.cpu.high);
	cost_trial_rest(&t->trial, now, fmax(f.cpu.middle, 0), TRIAL_SHARE * t->governor.budget);
}

/* Whether more pairs would change nothing: launches cost more than the budget, for sure. Then the rest
 * of the trial would only cost. */
static bool trial_is_sure(const struct tracer *t)
{
	struct cost_found f;

	if (t->trial.is_open || t->trial.is_second)
		return false; /* only between pairs is there something new */
	return t->trial.pair_count >= TRIAL_SURE && cost_trial_result(&t->trial, &f) &&
	       f.cpu.low > t->governor.budget;
}

/* Bring launch probes on or take them off, as the trial under way or the governor wants them now. */
int tracer_switch_launches(struct tracer *t, wall_time now)
{
	bool on;
	int r;

	if (cost_trial_is_under_way(&t->trial) &&
		(cost_trial_step(
			 &t->trial, now, t->launches.is_open, process_cpu_ns(t->trial.pid)) ||
			trial_is_sure(t)))
		trial_end(t, now);
	on = cost_trial_is_under_way(&t->trial) ? t->trial.wants_on
						: governor_wants_on(&t->governor, now);
	if (on == t->launches.is_open)
		return 0;
	if (on) {
		r = coverage_launches(t->coverage, true);
		probe_launches_enable(t->probe, true);
		launch_window_open(&t->launches, mono_now());
		return r;
	}
	probe_launches_enable(t->probe, false);
	launch_window_close(&t->launches, mono_now());
	r = coverage_launches(t->coverage, false);
	return r < 0 ? r : probe_sweep(t->probe, LOSS_GOVERNOR, true);
}

/* A trial pays only where the budget may be at stake and the process can be measured. */
static bool trial_is_wanted(const struct tracer *t, uint64_t marks, double seconds)
{
	const struct governor *g = &t->governor;

	return g->budget > 0 && g->can_switch && t->trial.pid && wall_now().ns >= t->trial.due.ns &&
	       (double)marks >= MARKS_RATE * seconds &&
	       g->launch_rate * g->hit_ns / (double)NS_PER_S >= TRIAL_FROM * g->budget;
}

/* Hits that marks and names came to since the last period: entry and return make one. */
static uint64_t hook_hits(struct tracer *t, uint32_t pid)
{
	uint64_t runs = probe_hook_runs(t->probe, pid);
	uint64_t more = pid == t->hook_pid && runs > t->hook_runs ? runs - t->hook_runs : 0;

	t->hook_pid = pid;
	t->hook_runs = runs;
	return more / 2;
}

/* What the busiest process did in a period, for cost_felt.h. */
static void load_note(struct tracer *t, const struct use *u, double seconds)
{
	t->load_now = (struct cost_load){.seconds = seconds,
		.launches = (double)u->launches * tracer_launch_weight(t),
		.waits = (double)u->waits,
		.waited_ns = (double)u->waited_ns};
	cost_load_add(&t->load, &t->load_now);
}

/* The governor looks at whole periods; while everything is probed, at every second. */
void tracer_govern(struct tracer *t, mono_time now)
{
	uint64_t others, marks, stacks_ns = tracer_stacks_ns(t);
	double seconds = (double)(now.ns - t->period_start.ns) / (double)NS_PER_S;
	bool in_trial = cost_trial_is_under_way(&t->trial);
	struct use u;

	if (!in_trial && t->governor.weight > 1 && now.ns - t->period_start.ns < GOVERNOR_PERIOD_NS)
		return;
	totals_busiest(t->totals, &u);
	/* Walks are not told apart by process: all are counted against the busiest. */
	others = u.others + (uint64_t)((double)(stacks_ns - t->stacks_ns) / t->governor.hit_ns);
	t->stacks_ns = stacks_ns;
	if (u.pid)
		others += hook_hits(t, u.pid);
	t->period_start = now;
	load_note(t, &u, seconds);
	if (in_trial) {
		governor_trial(&t->governor, u.launches + others, seconds);
		return;
	}
	governor_period(&t->governor, u.launches, others, seconds);
	marks = u.pid ? cost_trial_watch(&t->trial, u.pid) : 0;
	if (trial_is_wanted(t, marks, seconds))
		cost_trial_begin(&t->trial);
}

uint64_t tracer_cost(const struct tracer *t, bool lately, struct cost_felt *ret)
{
	const struct governor *g = &t->governor;
	const struct cost_load *load = lately ? &t->load_now : &t->load;
	struct cost_felt others;
	struct cost_found found;

	if (!cost_trial_result(&t->trial, &found)) {
		*ret = cost_felt_guess(lately ? g->overhead : governor_mean(g), load);
		return 0;
	}
	others = cost_felt_guess(g->others, &t->load_now);
	*ret = cost_felt_join(g->launch_rate * g->hit_ns / (double)NS_PER_S, &found,
		1.0 / tracer_launch_weight(t), &others);
	return t->trial.pair_count;
}

static uint64_t cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NS_PER_US;
}

static uint64_t rss_bytes(void)
{
	unsigned long long pages = 0;
	char line[128];

	if (file_read_line("", "/proc/self/statm", line, sizeof(line)) < 0 ||
		sscanf(line, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void tracer_overhead(struct tracer *t, wall_time now)
{
	mono_time mono = mono_now();
	uint64_t cpu = cpu_ns(), passed = mono.ns - t->overhead_at.ns;
	struct overhead o = {.time = now,
		.budget = t->governor.budget,
		.hit_ns = t->governor.hit_ns,
		.launch_weight = tracer_launch_weight(t),
		.rss_bytes = rss_bytes(),
		.cpu_pct =
			passed ? 100.0 * (double)(cpu - t->overhead_cpu_ns) / (double)passed : 0};
	bool first = !t->overhead_at.ns;
	struct cost_felt felt;

	o.pairs = tracer_cost(t, true, &felt);
	o.share = felt.share;
	o.low = felt.low;
	o.high = felt.high;
	t->overhead_at = mono;
	t->overhead_cpu_ns = cpu;
	if (!t->store || first)
		return;
	o.db_bytes = store_writer_size(t->store);
	if (!store_writer_push_overhead(t->store, &o))
		log_warning("the store's queue is full: a row about tracing overhead is lost");
}
