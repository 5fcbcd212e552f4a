/* SPDX-License-Identifier: Apache-2.0 */
/* cost_trial.h - measures what the launch probes cost the process that uses them most: where the governor has
 * them probed in windows, what a step takes in a window is compared with what it takes before it.
 *
 * A step is the time from one of its marks to the next: a wait for the GPU ended, or an optimizer's
 * step began. Compared are the length of a step by the clock, which is what the job loses, and its CPU
 * time: the process's CPU time, as a share of the window, times the mean step in it. The place of a
 * window's ends between two marks matters to neither, and time in which the process sleeps not to the
 * second, so it is known sooner where steps differ much. A window and the time without probes before it make a
 * pair. Of the last pairs paired_estimate() makes numbers with their intervals. It costs nothing: windows are
 * where the governor wants them. Pure: the tracer switches the probes and brings time, CPU time and marks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "stat/compare.h"

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
