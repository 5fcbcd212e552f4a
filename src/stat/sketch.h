/* SPDX-License-Identifier: Apache-2.0 */
/* sketch.h - a mergeable summary of durations: count, sum, extremes and a log-linear histogram.
 *
 * The buckets are those of wire/record.h, so a kernel aggregate merges without loss. Quantiles are
 * within 3.2 % of the true value (and never outside min..max). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

struct sketch {
	uint64_t count, sum, min, max; /* min is 0 while count is 0 */
	uint64_t hist[BUCKET_COUNT];
};

void sketch_add(struct sketch *s, uint64_t value, uint64_t weight);
void sketch_merge(struct sketch *s, const struct sketch *other);

/* sketch_scale - every value counts @factor times, to the nearest whole; extremes stay. */
void sketch_scale(struct sketch *s, double factor);

/* sketch_add_delta - adds what a kernel aggregate gained between two readings of it. Where only a
 * part of its calls was timed (its histogram holds fewer than it counted), that part stands for all.
 */
void sketch_add_delta(struct sketch *s, const struct wire_agg *now, const struct wire_agg *before);

/* sketch_quantile - the value at rank ceil(q * count), 0 < q <= 1; 0 when empty. */
uint64_t sketch_quantile(const struct sketch *s, double q);

/* bucket_low - the smallest value that falls into bucket @b. */
uint64_t bucket_low(unsigned b);

/* The stored form: a version byte, then for each non-empty bucket, in order, two LEB128 numbers:
 * the distance from the previous non-empty bucket (the first: from -1) and its count. */
#define SKETCH_BLOB_MAX (1 + BUCKET_COUNT * 12)
size_t sketch_encode(const struct sketch *s, uint8_t out[SKETCH_BLOB_MAX]);

/* sketch_decode - adds the stored histogram to @s (count too; sum, min and max are columns of their
 * own). Returns 0 or -EBADMSG, in which case @s is unchanged. */
int sketch_decode(struct sketch *s, const uint8_t *data, size_t len);

/* A sketch that has memory only for the buckets in use: a few hundred bytes instead of 4.8 kB where
 * a handful of durations is usual. For those that are kept; arithmetic is sketch.h's. */

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
