/* SPDX-License-Identifier: Apache-2.0 */
/* seen.h - which requests have been taken already: keys of 16 bytes that are remembered for a while.
 *
 * Two generations: a key is put into the younger one and found in both; the older one is forgotten when the
 * younger is full or old enough. One thread. */
#pragma once

#include "base/buf.h"

#define SEEN_KEYS_MAX 1000000 /* of a generation */
#define SEEN_KEY      16

struct seen_key {
	uint8_t bytes[SEEN_KEY];
};

/* seen_key_of - of some bytes, after which come @len more. 0 or -ENOMEM. */
int seen_key_of(const char *kind, const void *data, size_t len, struct seen_key *ret);

enum seen_state {
	SEEN_NOT,
	SEEN_PENDING, /* it is being written */
	SEEN_KEPT,
};

struct seen;
int seen_new(uint64_t keep_ns, struct seen **ret);
DECLARE_FREE(struct seen, seen_free)

enum seen_state seen_find(const struct seen *s, const struct seen_key *k);
/* seen_set - SEEN_NOT forgets it. -ENOMEM: nothing has changed. */
int seen_set(struct seen *s, const struct seen_key *k, enum seen_state state);

/* seen_age - at @now_ns, of a monotonic clock. */
void seen_age(struct seen *s, uint64_t now_ns);

/* seen_put - appends the keys that are kept. */
void seen_put(const struct seen *s, struct buf *b);
