/* SPDX-License-Identifier: Apache-2.0 */
/* launch_watch.h - how many launches each process made, counted in windows and estimated between them
 * (launch_estimate.h): reads what the kernel half counts and the processes' CPU time whenever a window begins or
 * ends. Belongs to the tracer's thread. */
#pragma once

#include "record/trace/launch_estimate.h"
#include "base/clock.h"
#include "base/macros.h"
#include "wire/record.h"

/* Of all processes, since the start. */
struct launch_sum {
	double launches; /* counted and estimated */
	double counted;
	double error;   /* the truth is within so many, in 95 of 100 cases; 0: all were counted */
	double watched; /* share of the time */
	uint64_t windows;
};

/* launch_sum_share - the error as a share of the number: 0 if all were counted, at most 1: not known. */
double launch_sum_share(const struct launch_sum *s);

struct launch_watch;

/* launch_watch_new - @uses: see probe_uses(). */
int launch_watch_new(const struct wire_use *uses, double hit_ns, struct launch_watch **ret);
DECLARE_FREE(struct launch_watch, launch_watch_free)

/* launch_watch_add - a process that may launch. launch_watch_gone: it has ended. */
int launch_watch_add(struct launch_watch *w, uint32_t pid);
void launch_watch_gone(struct launch_watch *w, uint32_t pid);

/* launch_watch_turn - the probes of launches are in @phase from now on. */
void launch_watch_turn(struct launch_watch *w, mono_time now, enum launch_phase phase);

/* launch_watch_step - every few milliseconds. Returns what launches cost the process that made most of them since the
 * last step, in hits. */
uint64_t launch_watch_step(struct launch_watch *w);

/* launch_watch_weigh - once a second, before counts are read: sets what a launch that was counted since the last
 * time stands for. */
void launch_watch_weigh(struct launch_watch *w);
/* launch_watch_more - after counts were read: tells @fn of processes of which nothing will be counted any more how
 * much more there was, as a share of what there is. */
void launch_watch_more(
	struct launch_watch *w, void (*fn)(void *arg, uint32_t pid, double share), void *arg);
double launch_watch_weight(const struct launch_watch *w, uint32_t pid); /* 1 or more */
double launch_watch_apply(
	struct launch_watch *w, uint32_t pid, uint64_t launches); /* likewise, to so many */

/* launch_watch_end - nothing is counted any more: what was not is estimated up to now. launch_watch_weigh() follows. */
void launch_watch_end(struct launch_watch *w, mono_time now);

void launch_watch_sum(const struct launch_watch *w, struct launch_sum *ret);

/* launch_watch_cpu_ns - CPU time of all threads of a process; 0: it is gone. */
uint64_t launch_watch_cpu_ns(uint32_t pid);
