/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - a few threads that do what would hold up the loop, and a queue that has an end. */
#pragma once

#include <stddef.h>

#include "base/macros.h"

struct pool;
typedef void pool_fn(void *arg);

/* pool_new - @threads of them, @nice to others (0: as usual, up to 19); no more than @queue_max
 * wait. */
int pool_new(unsigned threads, int nice, size_t queue_max, struct pool **ret);

/* pool_free - waits for what runs; what waits in the queue is run, too. */
void pool_free(struct pool *p);
DEFINE_CLEANUP(struct pool *, pool_free)

/* pool_push - @fn runs once on one of the threads. -EBUSY: the queue is full. */
int pool_push(struct pool *p, pool_fn *fn, void *arg);

size_t pool_load(struct pool *p); /* running and waiting */
