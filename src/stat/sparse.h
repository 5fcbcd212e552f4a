/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.h - a sketch that has memory only for the buckets in use: a few hundred bytes instead of 4.8 kB where
 * a handful of durations is usual. For those that are kept; arithmetic is sketch.h's. */
#pragma once

#include "stat/sketch.h"

struct sparse_bucket {
	uint32_t bucket;
	uint64_t count; /* not 0 */
};

struct sparse {
	uint64_t count, sum, min, max; /* as of a sketch */
	struct sparse_bucket *buckets; /* in order */
	uint32_t used, room;
};

/* sparse_reserve - makes sure that sparse_add() of @more has the memory it needs. 0 or -ENOMEM. */
int sparse_reserve(struct sparse *s, const struct sketch *more);

/* sparse_add - as sketch_merge(). sparse_reserve() was called for @more. */
void sparse_add(struct sparse *s, const struct sketch *more);

/* sparse_merge - adds @s to @to, as sketch_merge(). */
void sparse_merge(struct sketch *to, const struct sparse *s);

void sparse_done(struct sparse *s); /* empties it, and frees its memory */
