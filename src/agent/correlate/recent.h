/* SPDX-License-Identifier: Apache-2.0 */
/* recent.h - the last minutes of a trace, in bounded memory, as a recording that can be explained.
 *
 * Held are the last RECENT_NS, but no more than the ceilings below: then the oldest go first, and
 * the minutes are fewer. Calls too short to be slow by any baseline are not held (the aggregates
 * count them), nor stays off the CPU too short to make one slow. Belongs to one thread. */
#pragma once

#include "agent/correlate/correlate.h"

#define RECENT_NS              ((int64_t)(300 * NS_PER_S))
#define RECENT_EVENTS_MAX      (32u << 10) /* 5 MB */
#define RECENT_AGGREGATES_MAX  2048u /* 10 MB: 12 ops of 8 processes for 107 s, of 1 for all */
#define RECENT_SAMPLES_MAX     512u
#define RECENT_GPUS_MAX        2400u /* 1 MB: 8 GPUs */
#define RECENT_COLLECTIVES_MAX 8192u /* 2 MB */

struct recent_list {
	void *items; /* in order of time */
	size_t count, room;
};

struct recent {
	struct recent_list events, aggregates, samples, gpus, collectives;
	uint64_t dropped; /* events for which there was no room within RECENT_NS */
};

/* recent_wants - whether @e can matter: cheap, for the path of every event. */
bool recent_wants(const struct event *e);

/* Each enters one, at its place by time. 0 or -ENOMEM. */
int recent_add_event(struct recent *r, const struct event *e);
int recent_add_aggregate(struct recent *r, const struct aggregate *a);
int recent_add_sample(struct recent *r, const struct host_sample *s);
int recent_add_gpu(struct recent *r, const struct gpu_sample *s);
int recent_add_collective(struct recent *r, const struct collective_row *c);

/* recent_recording - what is held, after forgetting what is older than RECENT_NS before @now. The
 * arrays stay @r's. */
void recent_recording(struct recent *r, wall_time now, struct recording *ret);
void recent_done(struct recent *r);
