/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - a request that is answered on a thread of a pool and replied to on the loop.
 *
 * It is withdrawn if its time is up before a thread took it. One that ends with its asker is so,
 * too, when its connection is closed, and what it waits for from a SQL worker is ended then. */
#pragma once

#include "base/pool.h"
#include "net/server/server.h"

struct job { /* a part of what the request needs */
	struct http_exchange *x;
	bool ends_with_asker; /* not for what a client that half-closes should still get */
	/* On a thread. False: see pool_fn. */
	bool (*run)(struct job *j, bool brief);
	/* On the loop, once: replies, and frees the whole. @err is 0 if it ran to its end, -EBUSY if
	 * no thread took it in time, -ECANCELED if nobody waits for it. */
	void (*finish)(struct job *j, int err);
	/* private */
	struct loop *loop;
	struct pool *pool;
	struct pool_job queued;
	struct loop_task task;
	struct loop_timer *timer; /* NULL: it may wait as long as it takes */
	int gone; /* an eventfd: readable when the asker has gone; -1: not watched */
	bool is_gone;
};

/* job_start - on the loop. @deadline_ns (monotonic) ends its waiting; 0: nothing does. On failure
 * (-EBUSY: there are too many) it is still the caller's. */
int job_start(struct job *j, struct loop *l, struct pool *p, const struct http_request *q,
	uint64_t deadline_ns);
