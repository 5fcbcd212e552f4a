/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - a few threads that do what would hold up the loop, and a queue that has an end.
 *
 * Nobody who asks much keeps others waiting: of what waits, the job of the asker with the fewest
 * running ones is next; no asker has more jobs in the queue than it leaves places free; and where
 * jobs are long, none has more running than it leaves threads free. A job that must wait for such a
 * thread is tried on a brief one meanwhile, so that what is quick never waits behind what is not. */
#pragma once

#include <sys/queue.h>

#include "base/macros.h"

struct pool;

/* False: it was told to be @brief and did not come to its end; it is run again at length. */
typedef bool pool_fn(void *arg, bool brief);

struct pool_job { /* the caller's memory, which the function may free when it returns true */
	pool_fn *fn;
	void *arg;
	uint64_t asker; /* whom it is for */
	/* private */
	TAILQ_ENTRY(pool_job) link;
	bool is_waiting, was_tried;
};

struct pool_settings {
	unsigned threads;
	unsigned brief_threads; /* besides them */
	int nice;               /* to others: 0 as usual, up to 19 */
	size_t queue_max;       /* no more wait */
	bool leaves_room;       /* no asker has more running than it leaves threads free */
};

int pool_new(const struct pool_settings *s, struct pool **ret);

/* pool_free - waits for what runs; what waits in the queue is run, too. */
DECLARE_FREE(struct pool, pool_free)

/* pool_push - -EBUSY: the queue has no place for this asker. */
int pool_push(struct pool *p, struct pool_job *j);

/* pool_withdraw - true: @j was waiting and will not be run. */
bool pool_withdraw(struct pool *p, struct pool_job *j);

size_t pool_load(struct pool *p); /* running and waiting */
