/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_calls.h - rows of `collectives` as the calls that are pushed, numbered and waiting. Pure.
 *
 * (comm, seq) names a collective on all ranks. A Send or Recv has no such number: it is counted by
 * process, communicator, direction and peer, from the recording's first one on, as its other end
 * counts it. What the tracer came too late to number, or to name, is sent with the rank's own count. */
#pragma once

#include "store/read/nodedb_recent.h"
#include "base/idmap.h"
#include "push/push.h"

#define PUSHER_CALLS_MAX  200000 /* waiting; the oldest are left out, and counted */
#define PUSHER_POINTS_MAX 65536  /* pairs of processes; of further ones nothing is sent */
#define PUSHER_CALL_AGE                                                                            \
	(600 * (int64_t)NS_PER_S) /* older ones help nobody: left out, and counted */

struct pusher_calls {
	struct push_call *items;
	size_t count, room;
	uint64_t lost;       /* left out since pusher_calls_take() */
	uint64_t nameless;   /* taken without a communicator's id, in all */
	struct idmap points; /* hash of a pair -> its count */
};

void pusher_calls_init(struct pusher_calls *c);
void pusher_calls_done(struct pusher_calls *c);

/* pusher_calls_points - so many were before the first row that is added. 0 or -ENOMEM. */
int pusher_calls_points(struct pusher_calls *c, const struct recent_points *p);

/* pusher_calls_add - @world_rank -1: not known. 0 or -ENOMEM. */
int pusher_calls_add(struct pusher_calls *c, const struct collective_row *row, int32_t world_rank,
	wall_time now);

/* pusher_calls_take - moves up to @max of them to @ret, whose items the caller frees: numbered ones, or else those that are
 * not. */
int pusher_calls_take(struct pusher_calls *c, size_t max, struct push_calls *ret);
