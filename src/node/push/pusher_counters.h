/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_counters.h - how much each control group did since the agent began: launches, bytes copied,
 * time without a CPU. Pure.
 *
 * Counts are exact and never fall. The recording's newest buckets still grow, so that they are read
 * anew each time; those before `settled_until_ns` are added up for good. One reading is
 *
 *   from = pusher_counters_begin(c);
 *   pusher_counters_add(c, …) for each row of buckets from `from` on;
 *   pusher_counters_end(c, now);
 *
 * A file that is rolled over: a last reading of the old one, then pusher_counters_roll(): the new one
 * holds only what came after it, in buckets that may have begun before. */
#pragma once

#include "store/read/nodedb_recent.h"
#include "push/push_wire.h"

#define PUSHER_GROUPS_MAX   1024 /* control groups; further ones count as one, named "other" */
#define PUSHER_SETTLE_NS    (120 * (int64_t)NS_PER_S) /* a bucket so old does not grow any more */
#define PUSHER_GROUP_OTHERS "other"

struct pusher_amounts {
	uint64_t launches, stall_ns, copied_bytes[5];
};

struct pusher_group {
	char name[PUSH_HASH_MAX];
	struct pusher_amounts settled, settling,
		fresh; /* for good; so at the end of this reading */
};

struct pusher_counters {
	struct pusher_group *items;
	size_t count, room;
	int64_t start_ns; /* of the first bucket that counts */
	int64_t settled_until_ns;
	uint64_t launches; /* of all groups */
};

void pusher_counters_init(struct pusher_counters *c, int64_t now_ns);
void pusher_counters_done(struct pusher_counters *c);
int64_t pusher_counters_begin(struct pusher_counters *c);
/* 0 or -ENOMEM. @now_ns as given to pusher_counters_end(). */
int pusher_counters_add(struct pusher_counters *c, const struct recent_calls *row,
	const char *group, int64_t now_ns);
int pusher_counters_stall(struct pusher_counters *c, const char *group, uint64_t ns);
void pusher_counters_end(struct pusher_counters *c, int64_t now_ns);
void pusher_counters_roll(struct pusher_counters *c);

/* pusher_counters_list - *ret is the caller's (free()); its names are the counters'. */
int pusher_counters_list(
	const struct pusher_counters *c, struct push_counters **ret, size_t *ret_count);
