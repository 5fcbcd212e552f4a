/* SPDX-License-Identifier: Apache-2.0 */
/* cost_trial.h - measures what the launch probes cost the process that uses them most: they are
 * taken away and put back for short windows, and what a step takes is compared.
 *
 * A step is the time from one of its marks to the next: a wait for the GPU ended, or an optimizer's
 * step began. Compared are the length of a step by the clock, which is what the job loses, and its CPU
 * time: the process's CPU time, as a share of the window, times the mean step in it. The place of a
 * window's ends between two marks matters to neither, and time in which the process sleeps not to the
 * second, so it is known sooner where steps differ much. Two windows, with and without, make a
 * pair; which comes first is random, so that a job with a rhythm does not fall in step with it. Of
 * the last pairs paired_estimate() makes numbers with their intervals.
 *
 * What a trial costs: half of it launches are not seen (their counts are scaled), and where the
 * governor holds them back they are probed more than the budget allows; so trials are short and
 * far apart. Pure: the tracer switches the probes and brings time, CPU time and marks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "stat/paired.h"

struct cost_trial {
	uint32_t pid;          /* the process that is looked at */
	uint64_t marks;        /* its marks since cost_trial_watch() last asked */
	unsigned pairs_left;   /* of the present trial; 0: none is under way */
	unsigned unusable;     /* pairs in a row with too few marks */
	bool wants_on;         /* the present window is one with probes */
	bool is_second;        /* window of its pair */
	bool is_open;          /* the window has begun: the probes are as it wants them */
	uint64_t random;       /* state of the generator that orders pairs */
	wall_time began;       /* the window */
	uint64_t began_cpu_ns; /* the process's CPU time then */
	wall_time first, last; /* marks in it */
	uint64_t window_marks;
	double step_ns[2], step_cpu_ns[2]; /* of this pair, without and with; 0: not known */
	/* Logarithms of with / without, for CPU time as a part of the clock's: */
	double by_clock[PAIRED_MAX], by_cpu[PAIRED_MAX];
	uint64_t pair_count; /* ever, of this process; the last PAIRED_MAX are kept */
	uint64_t on_ns;      /* of the last trial: time with probes */
	wall_time due;       /* the next trial not before this */
};

/* How much more a step takes while all launches are probed, as a share of the time that one without
 * takes (0.05: 5 %). */
struct cost_found {
	struct paired clock; /* how much longer it is */
	struct paired cpu;   /* how much more CPU time it has */
};

void cost_trial_init(struct cost_trial *t, uint64_t seed);

/* cost_trial_watch - look at process @pid from now on. What is known of another is forgotten, and its
 * trial ends. Returns how many marks it made since the last call. */
uint64_t cost_trial_watch(struct cost_trial *t, uint32_t pid);

/* cost_trial_begin - a trial of a process whose marks come often enough: 16 pairs the first time,
 * then 4. */
void cost_trial_begin(struct cost_trial *t);

/* cost_trial_rest - after a trial: none again for a minute, and not before one like it costs at most
 * @share of the time, if what it measures is @cost. */
void cost_trial_rest(struct cost_trial *t, wall_time now, double cost, double share);

static inline bool cost_trial_is_under_way(const struct cost_trial *t)
{
	return t->pairs_left > 0;
}

/* cost_trial_mark - process @pid made a mark. */
void cost_trial_mark(struct cost_trial *t, uint32_t pid, wall_time at);

/* cost_trial_step - @is_on: whether the probes are there now; @cpu_ns: the process's CPU time. Sets
 * wants_on. Returns true when the trial has ended with this step. */
bool cost_trial_step(struct cost_trial *t, wall_time now, bool is_on, uint64_t cpu_ns);

/* cost_trial_result - false: too few pairs yet. */
bool cost_trial_result(const struct cost_trial *t, struct cost_found *ret);
