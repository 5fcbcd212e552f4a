/* SPDX-License-Identifier: Apache-2.0 */
/* live_window.h - the last minutes of a trace, in bounded memory, as a recording that can be explained.
 *
 * Held are the last LIVE_WINDOW_NS, but no more than the ceilings below: then the oldest go first, and
 * the minutes are fewer. Calls too short to be slow by any baseline are not held (the aggregates
 * count them), nor stays off the CPU too short to make one slow. Of samples of what runs on the CPUs,
 * two of a thread become one that stands for both when there are too many, so that they do not
 * displace the rest. Belongs to one thread. */
#pragma once

#include <stddef.h>

#include "diagnose/recording.h"
#include "model/stack.h"
#include "model/step_account.h"

/* The stacks that rows of the last minutes refer to, in bounded memory: of too many,
 * those that no row has named for longest go. */
#define LIVE_STACKS_MAX   4096u
#define LIVE_STACKS_BYTES (8u << 20) /* of all together: 2 kB each is usual */

struct live_stack_use {
	uint64_t used; /* by the number of the last use */
	size_t bytes;
};

struct live_stacks {
	struct stack_list list;
	struct live_stack_use *uses; /* of each in the list */
	size_t list_room, use_room;
	size_t bytes;
	uint64_t clock; /* uses so far */
};

/* live_stacks_add - takes over @s, whose block has @bytes, also on failure; one of the same hash is
 * replaced. 0 or -ENOMEM. */
int live_stacks_add(struct live_stacks *l, struct stack *s, size_t bytes);

/* live_stacks_use - a row refers to @hash; one that is not there is nothing. */
void live_stacks_use(struct live_stacks *l, uint64_t hash);
void live_stacks_done(struct live_stacks *l);

#define LIVE_WINDOW_NS              ((int64_t)(300 * NS_PER_S))
#define LIVE_WINDOW_EVENTS_MAX      (48u << 10) /* 8 MB */
#define LIVE_WINDOW_CPU_SAMPLES_MAX (16u << 10) /* of the events */
#define LIVE_WINDOW_AGGREGATES_MAX  2048u /* 10 MB: 12 ops of 8 processes for 107 s, of 1 for all */
#define LIVE_WINDOW_SAMPLES_MAX     512u
#define LIVE_WINDOW_GPUS_MAX        2400u       /* 1 MB: 8 GPUs */
#define LIVE_WINDOW_COLLECTIVES_MAX 8192u       /* 2 MB */
#define LIVE_WINDOW_LEDGER_MAX      (32u << 10) /* 10 MB: 109 rows a second for all */
#define LIVE_WINDOW_CONTAINERS_MAX  8192u       /* 1 MB: 27 groups for all */

struct live_window_list {
	void *items; /* in order of time */
	size_t count, room;
};

struct live_window {
	struct live_window_list events, aggregates, samples, gpus, collectives, ledger, containers;
	struct live_stacks stacks;
	size_t cpu_samples; /* among the events, at most: what was forgotten is not counted at once */
	uint64_t dropped;   /* events for which there was no room within LIVE_WINDOW_NS */
};

/* live_window_wants - whether @e can matter: cheap, for the path of every event. */
bool live_window_wants(const struct event *e);

/* live_window_wants_aggregate - whether @a can matter: detectors ask how calls of the GPU usually are. Those of
 * the host are of every process that has read a disk, and ten times as many. */
bool live_window_wants_aggregate(const struct aggregate *a);

/* Each enters one, at its place by time. 0 or -ENOMEM. */
int live_window_add_event(struct live_window *r, const struct event *e);
int live_window_add_aggregate(struct live_window *r, const struct aggregate *a);
int live_window_add_sample(struct live_window *r, const struct host_sample *s);
int live_window_add_gpu(struct live_window *r, const struct gpu_sample *s);
int live_window_add_collective(struct live_window *r, const struct collective_row *c);
int live_window_add_ledger(struct live_window *r, const struct ledger_row *row);
int live_window_add_container(struct live_window *r, const struct container_sample *s);

/* live_window_add_stack - takes over @s, also on failure; @bytes is the size of its block. */
int live_window_add_stack(struct live_window *r, struct stack *s, size_t bytes);

/* live_window_recording - what is held, after forgetting what is older than LIVE_WINDOW_NS before @now. The
 * arrays stay @r's. */
void live_window_recording(struct live_window *r, wall_time now, struct recording *ret);
void live_window_done(struct live_window *r);
