/* SPDX-License-Identifier: Apache-2.0 */
/* launch_estimate.h - how many launches a process made, when they were counted only in windows of time.
 *
 * In a window every launch is counted. What a process did between two windows is known too: its CPU time, its
 * waits for the GPU, which are always counted, and how long it took. So a gap is filled with launches at the rates
 * (launches from one wait to the next, a nanosecond of CPU, a nanosecond) of the windows at its two ends. A burst or
 * a pause between windows shows in CPU time and waits. Most jobs make as many launches from one wait to the next,
 * which is their step: from the last wait in a window to the first in the next one, these are whole steps. Of steps of
 * several lengths a window holds the short ones whole, so all windows may agree on a rate that is wrong: the launches
 * and waits of whole windows, wherever in a step these begin and end, tell by how much.
 * CPU time that the probes took themselves is taken off a window's first. Three things tell how much that is: what a
 * hit costs the agent, which is little beside what it costs a program with caches of its own; of a process
 * that makes as many launches without probes as with them, its additional CPU time; and the share of its CPU time
 * that is its own code's: probes run in the kernel, so that share falls by what they take. Whether they made the window
 * longer, too, depends on the job (one that sleeps or waits has slack), so that time counts only for gaps in which
 * the process was as busy as in the windows. Of the measures the one is taken whose error is the least so far.
 *
 * The error comes from the spread between windows: the rates at the two ends of a gap would be the same if the
 * filling were exact, and the square of their difference is twice the variance of either. How well it is known what
 * the probes took, and how much longer they make a window, is added. Pure: the caller brings the readings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum launch_measure { LAUNCH_BY_CPU, LAUNCH_BY_TIME, LAUNCH_BY_WAITS, LAUNCH_MEASURES };
#define LAUNCH_BY_WORK                                                                             \
	LAUNCH_BY_WAITS /* those before it go by what was done in a stretch of time */

/* What launches and their probes are doing. */
enum launch_phase {
	LAUNCH_AWAY,    /* there are none */
	LAUNCH_COMING,  /* they are being attached, and cost already */
	LAUNCH_COUNTED, /* a window */
	LAUNCH_GOING,   /* they are being detached */
};

/* Of one process, each since ever. */
struct launch_reading {
	uint64_t launches; /* grows in windows only */
	uint64_t nested;   /* of these, half as dear */
	uint64_t send_ns;  /* what some of them took besides */
	uint64_t cpu_ns, time_ns;
	uint64_t user_ns,
		tick_ns; /* CPU time in its own code, and in all, as clock ticks found it */
	uint64_t waits;
	uint64_t at_wait; /* launches when the last wait began */
};

struct launch_stretch { /* of time in which launches were counted */
	double launches;
	double hits, send_ns;   /* a nested one is half a hit */
	double probe_ns;        /* what both cost */
	double cpu_ns, time_ns; /* with that */
	double user_ns, tick_ns;
	double work
		[LAUNCH_MEASURES]; /* CPU time, calls, time; without what the probes made of it */
};

struct launch_estimate {
	struct launch_reading last;
	bool has_last;
	struct launch_stretch window; /* the present one, or a part of it */
	struct launch_stretch before; /* the last before the gap */
	struct launch_stretch all;
	struct launch_away { /* time without any probe */
		double cpu_ns, time_ns;
		double user_ns, tick_ns;
	} away, steady_away; /* in the present gap; in those between windows that were alike */
	struct launch_away all_away;
	struct launch_stretch steady; /* windows after such gaps */
	struct launch_marks {
		struct launch_mark {
			uint64_t waits, launches;
		} first, last; /* waits in the present window */
		bool has_first;
		struct launch_mark kept; /* the last in the window before */
		bool has_gap;            /* since then */
		double rate;      /* launches from one wait to the next there; < 0: not known */
		double spread;    /* of the rates of windows: squares of differences, as shares, */
		unsigned spreads; /* of so many */
		double one_sided; /* squares of launches in gaps with a rate at one end only: */
		double alone;     /* all those with the present one have the same error */
	} marks;
	struct launch_whole { /* windows from their beginning to their end, wherever waits are */
		struct launch_mark began; /* the present one, */
		bool is_open;
		double launches, waits; /* in all, and their squares and products, of so many */
		double launches_2, waits_2, products;
		unsigned count;
		double gap_waits; /* between them */
	} whole;
	double hit_ns;     /* what a hit costs the agent, */
	double hit_factor; /* and the process so many times that */
	bool knows_factor;
	double gap[LAUNCH_BY_WORK]; /* work between the two that is not filled yet */
	bool has_gap;
	struct launch_filling {
		double launches; /* in all gaps */
		double by_cpu;   /* of these, in gaps of which another measure tells nothing */
		double variance, bias;
	} by[LAUNCH_MEASURES];
	enum launch_measure chosen;
	uint64_t gaps; /* filled */
	double counted;
	double counted_since; /* the last launch_estimate_weigh() */
	double weighed;       /* of the launches in gaps, those that weights have made up for */
	double last_weight;
};

/* launch_estimate_read - @phase: as it was since the last reading; each launch that was counted took @hit_ns of
 * CPU time. The first reading only tells where counting begins. */
void launch_estimate_read(struct launch_estimate *e, const struct launch_reading *now,
	enum launch_phase phase, double hit_ns);

/* launch_estimate_end - the process has ended, or tracing has: what is open is filled by what came before. */
void launch_estimate_end(struct launch_estimate *e);

/* launch_estimate_weigh - how many launches each stands for that was counted since the last call; 1 while
 * all are. A gap in whose second none were counted is made up for by those that are counted next. */
void launch_estimate_weigh(struct launch_estimate *e);

/* launch_estimate_apply - the weight, which @launches more get. They are read from another table a moment later, so they
 * need not be those that the weight was made for: what is missing then, or too much, the next weight makes up for. */
double launch_estimate_apply(struct launch_estimate *e, double launches);

/* launch_estimate_more - nothing will be counted any more: what share of all that weights made is still missing. */
double launch_estimate_more(struct launch_estimate *e);

double launch_estimate_total(const struct launch_estimate *e); /* counted and estimated */

/* launch_estimate_error - the truth is within so many launches of launch_estimate_total(), in 95 of 100 cases; 0:
 * all were counted. */
double launch_estimate_error(const struct launch_estimate *e);
/* launch_estimate_bias - the part of it that another process's has, too: what probes cost. */
double launch_estimate_bias(const struct launch_estimate *e);
