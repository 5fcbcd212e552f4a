/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_signals.h - the four signals of a node's health from what was recorded in a window. Pure.
 *
 * throughput  launches a second, by the runtime, the driver and of graphs. A call of the driver that is
 *             made inside one of the runtime is the same launch and counts once.
 * compute     the share of time in which a kernel ran, by the GPUs' own readings. Without them: the
 *             share of 5 s buckets in which work was given to a GPU. Time that the host spends in calls
 *             says nothing: a thread that waits at a barrier is in a call all the time, and one that
 *             works ahead of its GPU hardly ever.
 * memory      1 less the pressure on memory: the share of time in which tasks of this machine stalled
 *             for want of it (or, where the kernel does not tell, how near to its end it is), and calls
 *             of CUDA that found none. A GPU whose memory is full and serves well is healthy.
 * cpu         1 less the share of all CPUs that is in use. */
#pragma once

#include "node/health/health_baseline.h"
#include "store/read/nodedb_recent.h"

struct pusher_activity {        /* calls in the buckets of from_ns … to_ns */
	int64_t from_ns, to_ns; /* to_ns moves on with buckets that were written soon */
	uint64_t launches;
	uint32_t busy_buckets; /* with a launch */
	int64_t last_busy_ns;
};

/* pusher_is_launch - the call gives a GPU work and is not part of another that does. */
bool pusher_is_launch(const struct recent_calls *c);

/* pusher_activity_add - calls come in order of their buckets. How many launches of the window they are. */
uint64_t pusher_activity_add(struct pusher_activity *a, const struct recent_calls *c);

/* pusher_launch_rate - a second. */
double pusher_launch_rate(const struct pusher_activity *a, uint64_t launches);

/* pusher_signals_make - @ret[HEALTH_THROUGHPUT] is launches a second, the others are 0 to 1. What is not
 * known is no reason to complain: 1. */
void pusher_signals_make(const struct pusher_activity *a, const struct recent_readings *r,
	double ret[HEALTH_SIGNAL_COUNT]);
