/* SPDX-License-Identifier: Apache-2.0 */
/* live_window.h - the last minutes of a trace, in bounded memory, as a recording that can be explained.
 *
 * Held are the last LIVE_WINDOW_NS, but no more than the ceilings below: then the oldest go first, and
 * the minutes are fewer. Calls too short to be slow by any baseline are not held (the aggregates
 * count them), nor stays off the CPU too short to make one slow. Belongs to one thread. */
#pragma once

#include "agent/correlate/engine/correlate.h"

#define LIVE_WINDOW_NS              ((int64_t)(300 * NS_PER_S))
#define LIVE_WINDOW_EVENTS_MAX      (32u << 10) /* 5 MB */
#define LIVE_WINDOW_AGGREGATES_MAX  2048u /* 10 MB: 12 ops of 8 processes for 107 s, of 1 for all */
#define LIVE_WINDOW_SAMPLES_MAX     512u
#define LIVE_WINDOW_GPUS_MAX        2400u /* 1 MB: 8 GPUs */
#define LIVE_WINDOW_COLLECTIVES_MAX 8192u /* 2 MB */

struct live_window_list {
	void *items; /* in order of time */
	size_t count, room;
};

struct live_window {
	struct live_window_list events, aggregates, samples, gpus, collectives;
	uint64_t dropped; /* events for which there was no room within LIVE_WINDOW_NS */
};

/* live_window_wants - whether @e can matter: cheap, for the path of every event. */
bool live_window_wants(const struct event *e);

/* Each enters one, at its place by time. 0 or -ENOMEM. */
int live_window_add_event(struct live_window *r, const struct event *e);
int live_window_add_aggregate(struct live_window *r, const struct aggregate *a);
int live_window_add_sample(struct live_window *r, const struct host_sample *s);
int live_window_add_gpu(struct live_window *r, const struct gpu_sample *s);
int live_window_add_collective(struct live_window *r, const struct collective_row *c);

/* live_window_recording - what is held, after forgetting what is older than LIVE_WINDOW_NS before @now. The
 * arrays stay @r's. */
void live_window_recording(struct live_window *r, wall_time now, struct recording *ret);
void live_window_done(struct live_window *r);
