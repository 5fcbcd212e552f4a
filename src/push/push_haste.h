/* SPDX-License-Identifier: Apache-2.0 */
/* push_haste.h - when calls are worth sending before their second is over: a rank was held up for far
 * longer than its steps usually take, so somebody is late and the cluster can say who. One for each rank.
 * Pure. */
#pragma once

#include "push/push.h"

#define PUSH_HASTE_NS                                                                              \
	200000000 /* agents look so often for new calls, and send them each second or in haste */
#define PUSH_HASTE_KINDS 16

struct push_haste_kind { /* of calls: one communicator, operation and peer */
	uint64_t key;    /* 0: none */
	int64_t longest_ns
		[2]; /* from the end before it to its own: in this epoch, in the one before */
	int64_t epoch_end_ns;
	uint32_t calls;
};

struct push_haste { /* begins as 0 */
	struct push_haste_kind kinds[PUSH_HASTE_KINDS];
	int64_t left_ns, hasty_until_ns;
	int64_t spent_ns; /* of the time in which haste is allowed again, so much is used up */
	uint32_t calls;
};

/* push_haste_take - the rank's next call. True: it is to be sent soon. */
bool push_haste_take(struct push_haste *h, const struct push_call *c);
