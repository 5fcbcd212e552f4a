/* SPDX-License-Identifier: Apache-2.0 */
/* stream_work.h - a stream as stream.c (threads and waiting) and stream_work.c (placing work in
 * time) see it. Nobody else includes this. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "stream.h"

enum stream_state { STREAM_FREE, STREAM_LIVE, STREAM_DRAINING };

/* Work that could not be placed yet: it is behind a gate, or behind another stream's. */
struct stream_item {
	struct stream_item *next;
	uint64_t order, posted_ns, dur_ns;
	enum stream_lane lane;
	struct stream_effect *effect;
	struct sim_gate *gate; /* NULL: none */
	struct stream *first;  /* NULL: none; else not before first_ticket of it */
	uint64_t first_ticket;
};

struct stream {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	_Atomic enum stream_state state;
	bool blocking;
	uint64_t end_ns, wanted_ns;
	_Atomic uint64_t issued, placed; /* tickets given, and those whose end is known */
	_Atomic uint64_t *ends;          /* of the last SIM_QUEUE_DEPTH pieces, a ring */
	struct stream_effect *head, **tail;
	struct stream_item *deferred, **deferred_tail;
	_Atomic uint64_t deferred_order; /* of the first deferred item; UINT64_MAX: none */
	bool tells_followers;            /* its thread is to call stream_wake_followers() */
	struct graph_body *_Atomic capture;
};

extern struct stream stream_table[STREAM_MAX]; /* [0] is the default stream */
extern atomic_uint stream_table_top;           /* slots ever used */

/* stream_lanes_init - before any work. */
void stream_lanes_init(void);

/* stream_ticket_end_ns - the end of placed work; 0 if it is so old that it has ended. */
uint64_t stream_ticket_end_ns(const struct stream *s, uint64_t ticket);

/* stream_place_deferred - under the lock: place what can be placed by now, and wake waiters. */
void stream_place_deferred(struct stream *s);

/* stream_wake_followers - with no lock held: let streams that put work off look again. */
void stream_wake_followers(void);

/* stream_wait_locked - stream_wait() with the lock held; lets go of it while blocked. */
void stream_wait_locked(struct stream *s, uint64_t ticket);
