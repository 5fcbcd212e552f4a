/* SPDX-License-Identifier: Apache-2.0 */
/* governor.h - keeps the cost of probing within a budget by probing launches only part of the time.
 *
 * Cost = hits x the measured cost of one hit, as a share of the busiest process's time: CPU time, which
 * a job need not feel (cost_felt.h), and without what probes do to caches and to the code around them.
 * Once a trial (cost_trial.h) is sure that launches take more CPU time, or less, its result counts. Launches
 * are nearly all hits; allocations, copies, waits and collectives are never sampled. When the
 * budget is exceeded, launch probes are attached for 1/weight of every second (a power of two up to
 * 32) and what they counted is multiplied by the weight, so counts stay true on average and say so.
 * What the rest costs is taken off what launches may, down to a quarter of the budget.
 * Pure: the tracer measures, attaches and detaches. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define GOVERNOR_WEIGHT_MAX 32 /* 62 ms of 2 s: some hundred calls of a busy process */
#define GOVERNOR_PERIOD_NS                                                                         \
	(2 * NS_PER_S) /* switching is not free, and the last period may be cut */

struct governor {
	double budget;            /* share of a process's time, 0.01 is 1 %; 0: no limit */
	double hit_ns;            /* cost of one hit */
	unsigned weight;          /* 1: probes are always there */
	double launch_rate;       /* hits of launches a second, if all were probed */
	double launch_factor;     /* what they cost, in hits x hit_ns */
	double others;            /* what the rest costs, as a share, in the last period */
	double overhead;          /* hits x hit_ns over the last period */
	double spent_ns, seconds; /* in all */
	bool can_switch;          /* the attach method detaches fast enough */
};

void governor_init(struct governor *g, double budget, double hit_ns, bool can_switch);

/* governor_period - once a second: @launch_hits (unscaled) and @other_hits are those of the busiest
 * process. Sets overhead, and weight for the next period. */
void governor_period(struct governor *g, uint64_t launch_hits, uint64_t other_hits, double seconds);

/* governor_trial - a period in which launches were probed now and then for a trial: it costs, which
 * sets overhead, and tells nothing of the load. */
void governor_trial(struct governor *g, uint64_t hits, double seconds);

/* governor_learn - while all launches are probed, the truth is between @low and @high. The account
 * is moved as far as it needs to be to lie between them. */
void governor_learn(struct governor *g, double low, double high);

/* governor_mean - the overhead since the start. */
double governor_mean(const struct governor *g);

/* governor_wants_on - whether launch probes should be attached at @now: the first 1/weight of each
 * period. */
bool governor_wants_on(const struct governor *g, wall_time now);
