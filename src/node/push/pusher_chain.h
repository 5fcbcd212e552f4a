/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_chain.h - which of the recording's incidents the fleet knows, and as what. Pure.
 *
 * One is told when it is found, when its words, severity or end change, and while it goes on once in
 * PUSHER_CHAIN_AGAIN_NS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUSHER_CHAINS_MAX       16  /* of a request */
#define PUSHER_CHAINS_KNOWN     512 /* further ones push out the one that was told longest ago */
#define PUSHER_CHAIN_AGAIN_NS   (60 * UINT64_C(1000000000))
#define PUSHER_CHAIN_OVERLAP_NS (120 * INT64_C(1000000000))

struct pusher_chain {     /* as it was told */
	uint64_t id;      /* hash of it */
	uint64_t words;   /* hash of what is told at once when it changes */
	uint64_t extent;  /* hash of what may wait: count, last seen */
	uint64_t told_ns; /* monotonic */
};

struct pusher_chains {
	struct pusher_chain known[PUSHER_CHAINS_KNOWN];
	size_t count;
	struct pusher_chain sent[PUSHER_CHAINS_MAX]; /* under way */
	size_t sent_count;
	int64_t from_ns; /* those last seen before are told */
};

/* pusher_chains_want - whether it is to be told now. pusher_chains_note - it was. */
bool pusher_chains_want(const struct pusher_chains *c, const struct pusher_chain *x);
void pusher_chains_note(struct pusher_chains *c, const struct pusher_chain *x);
