/* SPDX-License-Identifier: Apache-2.0 */
/* governor.h - keeps the cost of probing within a budget by probing launches only part of the time.
 *
 * Cost = hits x the measured cost of one hit, as a share of the busiest process's time: CPU time, which
 * a job need not feel (governor.h), and without what probes do to caches and to the code around them.
 * Once windows with and without probes were compared often enough (governor.h) to be sure that launches take
 * more CPU time, or less, that counts. Launches are nearly all hits; allocations, copies, waits and collectives
 * are always probed, and what they cost is taken off what launches may, down to a quarter of the budget.
 *
 * Launches have a credit of what they may cost in a second, and it refills as time goes by: a program that makes
 * few of them, or many for a moment, has all of them counted. Once it is spent they are probed in windows, each at
 * a random moment of its period, so that no rhythm of a job falls in step with them; how long they are does not
 * depend on what happens in them (a burst would make its own window short), but for one that costs several times
 * as much as was planned, which is cut. Pure: the tracer measures, attaches and detaches. */
#pragma once

#include "base/clock.h"
#include "stat/compare.h"
#include "stat/sketch.h"
#include "wire/record.h"

struct governor {
	double budget;            /* share of a process's time, 0.01 is 1 %; 0: no limit */
	double hit_ns;            /* cost of one hit */
	bool can_switch;          /* the attach method detaches fast enough */
	double launch_rate;       /* hits of launches a second, while they are probed */
	double launch_factor;     /* what they cost, in hits x hit_ns */
	double others;            /* what the rest costs, as a share, in the last second */
	double overhead;          /* hits x hit_ns over the last second */
	double spent_ns, seconds; /* in all */

	double credit_ns;
	mono_time stepped;
	bool in_windows; /* false: launches are probed all the time */
	mono_time opens; /* of the present period */
	uint64_t window_ns, period_ns;
	mono_time ends;
	unsigned calm; /* windows in a row of which the budget has room for all the time */
	bool was_open;
	double window_hits, window_seconds; /* of the window under way */
	uint64_t step_ns;                   /* of the job's: a window should hold some of them */
	uint64_t random;
};

void governor_init(struct governor *g, double budget, double hit_ns, bool can_switch, uint64_t seed,
	mono_time now);

/* governor_step - every few milliseconds. @launches: what they cost since the last step, in hits, the process that made most;
 * @is_open: whether they are probed now. Returns whether they should be. */
bool governor_step(struct governor *g, mono_time now, uint64_t launches, bool is_open);

/* governor_second - once a second: hits of the busiest process. Sets overhead. */
void governor_second(struct governor *g, uint64_t launch_hits, uint64_t other_hits, double seconds);

/* governor_learn - while all launches are probed, the truth is between @low and @high. The account
 * is moved as far as it needs to be to lie between them. */
void governor_learn(struct governor *g, double low, double high);

/* governor_share - of the time in which launches are meant to be probed: 1, or less. */
double governor_share(const struct governor *g);

/* governor_mean - the overhead since the start. */
double governor_mean(const struct governor *g);

/* Measures what the launch probes cost the process that uses them most: where the governor has
 * them probed in windows, what a step takes in a window is compared with what it takes before it.
 *
 * A step is the time from one of its marks to the next: a wait for the GPU ended, or an optimizer's
 * step began. Compared are the length of a step by the clock, which is what the job loses, and its CPU
 * time: the process's CPU time, as a share of the window, times the mean step in it. The place of a
 * window's ends between two marks matters to neither, and time in which the process sleeps not to the
 * second, so it is known sooner where steps differ much. A window and the time without probes before it make a
 * pair. Of the last pairs paired_estimate() makes numbers with their intervals. It costs nothing: windows are
 * where the governor wants them. Pure: the tracer switches the probes and brings time, CPU time and marks. */

struct cost_trial {
	uint32_t pid;          /* the process that is looked at */
	uint64_t marks;        /* its marks since cost_trial_watch() last asked */
	bool is_open;          /* a window is under way */
	bool with_probes;      /* it is one with probes */
	wall_time began;       /* the window */
	uint64_t began_cpu_ns; /* the process's CPU time then */
	wall_time first, last; /* marks in it */
	uint64_t window_marks;
	double step_ns[2], step_cpu_ns[2]; /* of this pair, without and with; 0: not known */
	/* Logarithms of with / without, for CPU time as a part of the clock's: */
	double by_clock[PAIRED_MAX], by_cpu[PAIRED_MAX];
	uint64_t pair_count; /* ever, of this process; the last PAIRED_MAX are kept */
};

/* How much more a step takes while all launches are probed, as a share of the time that one without
 * takes (0.05: 5 %). */
struct cost_found {
	struct paired clock; /* how much longer it is */
	struct paired cpu;   /* how much more CPU time it has */
};

/* cost_trial_watch - look at process @pid from now on. What is known of another is forgotten. Returns how many
 * marks it made since the last call. */
uint64_t cost_trial_watch(struct cost_trial *t, uint32_t pid);

/* cost_trial_mark - process @pid made a mark. */
void cost_trial_mark(struct cost_trial *t, uint32_t pid, wall_time at);

/* cost_trial_open - from now on all launch probes are there, or all are away; @cpu_ns: the process's CPU time.
 * cost_trial_close - that ends. Returns true if there is a pair more than before. */
void cost_trial_open(struct cost_trial *t, wall_time now, bool with_probes, uint64_t cpu_ns);
bool cost_trial_close(struct cost_trial *t, wall_time now, uint64_t cpu_ns);

/* cost_trial_result - false: too few pairs yet. */
bool cost_trial_result(const struct cost_trial *t, struct cost_found *ret);

/* How much longer a job takes because of its probes.
 *
 * Probes take CPU time of the thread that calls. A job whose GPU is the slower one does not feel that: its
 * threads run ahead and wait for the GPU, in a call that waits or in a launch for which the queue has no
 * room, and wait so much less. Only the first launch after a wait keeps the GPU from work in any case. So
 * the CPU time is the most that such a job loses, and what its waits cannot hide is the least. How much it
 * is in truth, only steps with and without probes can tell (governor.h). Pure. */

/* What the busiest process did, over some time. */
struct cost_load {
	double seconds;
	double launches;         /* all of them, probed or not */
	double waits, waited_ns; /* for the GPU */
};

struct cost_felt {
	double share;     /* of the process's time: the figure to name */
	double low, high; /* the truth is between */
};

void cost_load_add(struct cost_load *l, const struct cost_load *more);

/* cost_felt_guess - if @probes (a share of the time) is what probes take, and the process did @l
 * meanwhile. The share is the low end. */
struct cost_felt cost_felt_guess(double probes, const struct cost_load *l);

/* cost_felt_join - what trials found of all launches, of which @part is probed, and @others, which no
 * trial takes away. @account is what launches would take by hits x cost, all of them probed: steps that
 * differ much by themselves make a trial wide, and its middle says little then, so the account is moved
 * no further than the trial wants it, and a trial that does not contradict it reaches no further than
 * twice the account. What the clock says comes last: a job that sleeps or waits pays CPU time, and loses
 * none. */
struct cost_felt cost_felt_join(double account, const struct cost_found *found, double part,
	const struct cost_felt *others);

/* From which duration on a call is an exception that the kernel half sends as a row:
 * a multiple of the op's median. Pure.
 *
 * Limits are relative to the fastest process of an op: a slower one sends more than it need, never
 * less. */

struct slow_limits {                               /* zero: empty */
	uint64_t ns[WIRE_SOURCE_MAX][WIRE_OP_MAX]; /* 0: none yet */
};

/* slow_limits_add - @calls are those of one process. Only GPU calls have limits, and only when there
 * were enough of them. */
void slow_limits_add(
	struct slow_limits *l, unsigned source, unsigned op, const struct sketch *calls);
