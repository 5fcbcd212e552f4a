/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_overhead.c - what tracing costs the busiest process: holds it within the budget, measures it
 * in trials, writes it down. */
#include <math.h>
#include <sys/resource.h>

#include "record/capture/use.h"
#include "record/trace/tracer_private.h"
#include "base/file.h"

#define TURN_WAIT_MS 1 /* probes that are there cost, and nothing is counted yet */
#define MARKS_RATE   4 /* a second: with fewer, windows are not made to hold steps */

unsigned tracer_launch_weight(const struct tracer *t, uint32_t pid)
{
	return (unsigned)lrint(launch_watch_weight(t->launches, pid));
}

/* ---- windows ---- */

static void trial_close(struct tracer *t, wall_time now)
{
	struct cost_found f;

	if (cost_trial_close(&t->trial, now, launch_watch_cpu_ns(t->trial.pid)) &&
		cost_trial_result(&t->trial, &f))
		governor_learn(&t->governor, f.cpu.low, f.cpu.high);
}

static void trial_open(struct tracer *t, wall_time now, bool with_probes)
{
	cost_trial_open(&t->trial, now, with_probes, launch_watch_cpu_ns(t->trial.pid));
}

static void phase_begin(struct tracer *t, enum launch_phase phase)
{
	launch_watch_turn(t->launches, mono_now(), phase);
	t->launch_phase = phase;
}

/* Launches are counted, or not, from one moment on, whatever the number of files: the probes come before and go
 * after it, beside this thread. */
static void window_open(struct tracer *t)
{
	probe_launches_enable(t->probe, true);
	phase_begin(t, LAUNCH_COUNTED);
	trial_open(t, wall_now(), true);
}

static void window_close(struct tracer *t, wall_time now)
{
	trial_close(t, now);
	/* First: if this thread lost its CPU in between, waits would be taken for those of the window, and the launches
	 * before them be missing. */
	phase_begin(t, LAUNCH_GOING);
	probe_launches_enable(t->probe, false);
	coverage_launches(t->coverage, false);
}

static int probes_gone(struct tracer *t)
{
	phase_begin(t, LAUNCH_AWAY);
	trial_open(t, wall_now(), false);
	return probe_sweep(t->probe, LOSS_GOVERNOR, true);
}

static void probes_come(struct tracer *t, wall_time now)
{
	trial_close(t, now);
	phase_begin(t, LAUNCH_COMING);
	coverage_launches(t->coverage, true);
}

/* Bring launch probes on or take them off, as the governor wants them now. */
int tracer_turn_launches(struct tracer *t, wall_time now)
{
	mono_time mono = mono_now();
	bool is_settled = coverage_turn(t->coverage);
	bool on = governor_step(&t->governor, mono, launch_watch_step(t->launches),
		t->launch_phase == LAUNCH_COUNTED);
	int r = 0;

	if (t->launch_phase == LAUNCH_COUNTED && !on)
		window_close(t, now);
	else if (t->launch_phase == LAUNCH_GOING && is_settled)
		r = probes_gone(t);
	else if (t->launch_phase == LAUNCH_AWAY && on)
		probes_come(t, now);
	else if (t->launch_phase == LAUNCH_COMING && is_settled)
		window_open(t);
	else
		return 0;
	coverage_turn(t->coverage);
	return r;
}

int tracer_wait_ms(const struct tracer *t, int timeout_ms)
{
	return t->launch_phase == LAUNCH_COMING ? MIN(timeout_ms, TURN_WAIT_MS) : timeout_ms;
}

/* ---- cost ---- */

/* Hits that marks and names came to since the last period: entry and return make one. */
static uint64_t hook_hits(struct tracer *t, uint32_t pid)
{
	uint64_t runs = probe_hook_runs(t->probe, pid);
	uint64_t more = pid == t->hook_pid && runs > t->hook_runs ? runs - t->hook_runs : 0;

	t->hook_pid = pid;
	t->hook_runs = runs;
	return more / 2;
}

/* What the busiest process did in a second, for governor.h. */
static void load_note(struct tracer *t, const struct use *u, double seconds)
{
	t->load_now = (struct cost_load){.seconds = seconds,
		.launches = (double)u->launches * launch_watch_weight(t->launches, u->pid),
		.waits = (double)u->waits,
		.waited_ns = (double)u->waited_ns};
	cost_load_add(&t->load, &t->load_now);
}

void tracer_govern(struct tracer *t, mono_time now)
{
	uint64_t others, marks, stacks_ns = tracer_stacks_ns(t);
	double seconds = (double)(now.ns - t->govern_at.ns) / (double)NS_PER_S;
	struct use u;

	totals_busiest(t->totals, &u);
	/* Walks are not told apart by process: all are counted against the busiest. */
	others = u.others + (uint64_t)((double)(stacks_ns - t->stacks_ns) / t->governor.hit_ns);
	t->stacks_ns = stacks_ns;
	if (u.pid)
		others += hook_hits(t, u.pid);
	t->govern_at = now;
	load_note(t, &u, seconds);
	governor_second(&t->governor, u.launches, others, seconds);
	marks = u.pid ? cost_trial_watch(&t->trial, u.pid) : 0;
	t->governor.step_ns = (double)marks >= MARKS_RATE * seconds
				      ? (uint64_t)(seconds * (double)NS_PER_S / (double)marks)
				      : 0;
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
	*ret = cost_felt_join(
		g->launch_rate * g->hit_ns / (double)NS_PER_S, &found, governor_share(g), &others);
	return t->trial.pair_count;
}

uint64_t tracer_own_cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NS_PER_US;
}

uint64_t tracer_own_bytes(void)
{
	unsigned long long pages = 0;
	char line[128];

	if (file_read_line("", "/proc/self/statm", line, sizeof(line)) < 0 ||
		sscanf(line, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_down(struct tracer *t, wall_time now, bool is_last)
{
	mono_time mono = mono_now();
	uint64_t cpu = tracer_own_cpu_ns(), passed = mono.ns - t->overhead_at.ns;
	struct overhead o = {.time = now,
		.budget = t->governor.budget,
		.hit_ns = t->governor.hit_ns,
		.launch_weight = (uint32_t)lrint(1 / governor_share(&t->governor)),
		.rss_bytes = tracer_own_bytes(),
		.cpu_pct =
			passed ? 100.0 * (double)(cpu - t->overhead_cpu_ns) / (double)passed : 0};
	bool first = !t->overhead_at.ns;
	struct launch_sum launches;
	struct cost_felt felt;

	launch_watch_sum(t->launches, &launches);
	o.launch_watched = launches.watched;
	o.launch_error = launch_sum_share(&launches);
	o.pairs = tracer_cost(t, true, &felt);
	o.share = felt.share;
	o.low = felt.low;
	o.high = felt.high;
	t->overhead_at = mono;
	t->overhead_cpu_ns = cpu;
	if (!t->store || (first && !is_last))
		return;
	o.db_bytes = store_writer_size(t->store);
	if (!store_writer_push_row(t->store, &o))
		log_warning("the store's queue is full: a row about tracing overhead is lost");
}

void tracer_overhead(struct tracer *t, wall_time now)
{
	write_down(t, now, false);
}

/* Only a row says how sure the number of launches is: where that is a question, the recording ends with one. */
void tracer_last_overhead(struct tracer *t)
{
	struct launch_sum launches;

	launch_watch_sum(t->launches, &launches);
	if (launch_sum_share(&launches) > 0)
		write_down(t, wall_now(), true);
}
