/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_overhead.c - what tracing costs the busiest process: holds it within the budget, measures it
 * in trials, writes it down. */
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

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
	struct paired p = {0};

	t->trial.pairs_left = 0;
	if (cost_trial_result(&t->trial, &p))
		governor_learn(&t->governor, p.low, p.high);
	cost_trial_rest(&t->trial, now, fmax(p.middle, 0), TRIAL_SHARE * t->governor.budget);
}

/* Whether more pairs would change nothing: launches cost more than the budget, for sure. Then the rest
 * of the trial would only cost. */
static bool trial_is_sure(const struct tracer *t)
{
	struct paired p;

	if (t->trial.is_open || t->trial.is_second)
		return false; /* only between pairs is there something new */
	return t->trial.pair_count >= TRIAL_SURE && cost_trial_result(&t->trial, &p) &&
	       p.low > t->governor.budget;
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

/* The governor looks at whole periods; while everything is probed, at every second. */
void tracer_govern(struct tracer *t, mono_time now)
{
	uint64_t launches, others, marks, stacks_ns = tracer_stacks_ns(t);
	double seconds = (double)(now.ns - t->period_start.ns) / (double)NS_PER_S;
	bool in_trial = cost_trial_is_under_way(&t->trial);
	uint32_t pid;

	if (!in_trial && t->governor.weight > 1 && now.ns - t->period_start.ns < GOVERNOR_PERIOD_NS)
		return;
	pid = totals_busiest(t->totals, &launches, &others);
	/* Walks are not told apart by process: all are counted against the busiest. */
	others += (uint64_t)((double)(stacks_ns - t->stacks_ns) / t->governor.hit_ns);
	t->stacks_ns = stacks_ns;
	if (pid)
		others += hook_hits(t, pid);
	t->period_start = now;
	if (in_trial) {
		governor_trial(&t->governor, launches + others, seconds);
		return;
	}
	governor_period(&t->governor, launches, others, seconds);
	marks = pid ? cost_trial_watch(&t->trial, pid) : 0;
	if (trial_is_wanted(t, marks, seconds))
		cost_trial_begin(&t->trial);
}

/* Steps that differ much by themselves make a trial wide, and its middle says little then: the account
 * of hits is moved no further than the trial wants it (as the governor does). */
bool tracer_overhead_measured(const struct tracer *t, struct paired *ret)
{
	double share = 1.0 / tracer_launch_weight(t), others = t->governor.others;
	double account = t->governor.launch_rate * t->governor.hit_ns / (double)NS_PER_S;
	double low, high;
	struct paired p;

	if (!cost_trial_result(&t->trial, &p))
		return false;
	low = fmax(p.low, 0);
	high = fmax(p.high, 0);
	*ret = (struct paired){.middle = fmin(fmax(account, low), high) * share + others,
		.low = low * share + others,
		.high = high * share + others};
	return true;
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
		.share = t->governor.overhead,
		.budget = t->governor.budget,
		.hit_ns = t->governor.hit_ns,
		.launch_weight = tracer_launch_weight(t),
		.rss_bytes = rss_bytes(),
		.cpu_pct =
			passed ? 100.0 * (double)(cpu - t->overhead_cpu_ns) / (double)passed : 0};
	bool first = !t->overhead_at.ns;
	struct paired p;

	if (tracer_overhead_measured(t, &p)) {
		o.share = p.middle;
		o.low = p.low;
		o.high = p.high;
		o.pairs = t->trial.pair_count;
	}
	t->overhead_at = mono;
	t->overhead_cpu_ns = cpu;
	if (!t->store || first)
		return;
	o.db_bytes = store_writer_size(t->store);
	if (!store_writer_push_overhead(t->store, &o))
		log_warning("the store's queue is full: a row about tracing overhead is lost");
}
