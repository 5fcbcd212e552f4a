/* SPDX-License-Identifier: Apache-2.0 */
/* totals.h - reads the kernel's aggregates and keeps, per process and op, what was gained: since
 * the start (for the live table) and in the present 5 s bucket (for the store).
 *
 * The kernel's counters only grow; a reading is compared with the one before, so nothing is counted
 * twice and nothing is missed, however late the reading comes. */
#pragma once

#include "base/clock.h"
#include "model/event.h"
#include "record/probe/probe.h"
#include "stat/sketch.h"
#include "wire/record.h"

/* What is known of the calls of one process and op. There are some for every process that has read
 * a disk, so they take memory for what they hold only (stat/sketch.h). */

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
	uint64_t bucket_hits;                 /* of it, counted: the rest is estimated */
	uint64_t bucket_stored;               /* of these, kept as rows of their own */
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

struct totals;

int totals_new(struct probe *p, struct totals **ret);
void totals_free(struct totals *t);

/* totals_weigh - @weight says how many launches each of a process's stands for that was counted, of which it gets @launches:
 * they are probed only part of the time. */
typedef double totals_weight(void *arg, uint32_t pid, uint64_t launches);
void totals_weigh(struct totals *t, totals_weight *weight, void *arg);

/* totals_more - the process made more launches than were counted, by @share of what there is, of each kind. */
int totals_more(struct totals *t, uint32_t pid, double share);

/* totals_read - bring everything up to date. Returns 0 or a negative errno. */
int totals_read(struct totals *t);

/* totals_add - count an event that the kernel could not count (WIRE_UNCOUNTED). */
int totals_add(struct totals *t, const struct event *e);

/* totals_flush - hand the gains of every op to @sink as aggregates of @bucket and start anew. What
 * the sink refuses (false) is kept and comes with the next flush. Returns how many were refused. */
typedef bool totals_sink(void *arg, const struct aggregate *a);
int totals_flush(struct totals *t, wall_time bucket, totals_sink *sink, void *arg);

/* totals_process_gone - the process ended; its kernel entries go after the next reading. */
int totals_process_gone(struct totals *t, uint32_t pid);

/* totals_busiest - sets @ret to what the process with most hits did since the last call; pid 0: nobody
 * called. Hits of launches are unweighted. */
struct use;
void totals_busiest(struct totals *t, struct use *ret);

/* totals_next - walk all (process 0: the ended ones together): *cursor starts at 0; NULL at the
 * end. Valid until the next read. */
const struct total *totals_next(const struct totals *t, size_t *cursor);
