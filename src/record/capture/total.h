/* SPDX-License-Identifier: Apache-2.0 */
/* total.h - what is known of the calls of one process and op. There are some for every process that has read
 * a disk, so they take memory for what they hold only (stat/sketch.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "stat/sketch.h"
#include "wire/record.h"

struct total_seen { /* of an entry of the kernel, summed over CPUs, at the last reading */
	uint64_t sent, sum_arg0;
	struct sparse calls;
};

struct total_kind { /* copies of one kind (wire/record.h) */
	struct sparse all;
	uint64_t bytes;
	struct total_seen seen;
};

struct total {
	struct wire_agg_key key; /* its flags without a kind */
	wall_time since;         /* its first call came after this */
	char comm[WIRE_COMM_LEN];
	struct sparse all;                    /* since the start */
	uint64_t bytes;                       /* likewise, where arg0 is a byte count */
	struct sparse bucket;                 /* since the last totals_flush() */
	uint64_t bucket_stored;               /* of it, kept as rows of their own */
	uint64_t bucket_bytes;                /* likewise, as bytes */
	struct total_seen seen;               /* last reading */
	uint64_t hits;                        /* counted, each once */
	uint64_t hits_taken;                  /* of these, told to totals_busiest() */
	uint64_t calls_taken, ns_taken;       /* of `all`, likewise */
	struct total_kind *kinds[WIRE_KINDS]; /* parts of `all` and `bytes`; NULL: none yet */
	bool gone; /* its process has ended: folded away at the next flush */
};

void total_free(struct total *v);

/* total_kind_of - the part of @v for the kind in @flags, made if need be; NULL with *ret_err 0 if it has
 * none. */
struct total_kind *total_kind_of(struct total *v, unsigned flags, int *ret_err);

/* total_gain - what was gained goes to all who count it. 0, or -ENOMEM: all are as they were. */
int total_gain(struct total *v, struct total_kind *kind, const struct sketch *gain, uint64_t bytes);

/* total_fold - @from becomes part of @to. 0, or -ENOMEM: what is not folded yet is still in @from. */
int total_fold(struct total *to, struct total *from);

/* total_seen_get - the reading, as the kernel gave it. */
void total_seen_get(const struct total_seen *seen, struct wire_agg *ret);

/* total_seen_set - the reading is @now, and @counts its histogram, for which sparse_reserve() was called. */
void total_seen_set(
	struct total_seen *seen, const struct wire_agg *now, const struct sketch *counts);
void total_seen_clear(struct total_seen *seen);
