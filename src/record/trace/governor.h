/* SPDX-License-Identifier: Apache-2.0 */
/* governor.h - keeps the cost of probing within a budget by probing launches only part of the time.
 *
 * Cost = hits x the measured cost of one hit, as a share of the busiest process's time: CPU time, which
 * a job need not feel (cost_felt.h), and without what probes do to caches and to the code around them.
 * Once windows with and without probes were compared often enough (cost_trial.h) to be sure that launches take
 * more CPU time, or less, that counts. Launches are nearly all hits; allocations, copies, waits and collectives
 * are always probed, and what they cost is taken off what launches may, down to a quarter of the budget.
 *
 * Launches have a credit of what they may cost in a second, and it refills as time goes by: a program that makes
 * few of them, or many for a moment, has all of them counted. Once it is spent they are probed in windows, each at
 * a random moment of its period, so that no rhythm of a job falls in step with them; how long they are does not
 * depend on what happens in them (a burst would make its own window short), but for one that costs several times
 * as much as was planned, which is cut. Pure: the tracer measures, attaches and detaches. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

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
