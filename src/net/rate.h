/* SPDX-License-Identifier: Apache-2.0 */
/* rate.h - how often something may happen: a burst at once, then so many a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct rate {
	uint64_t used_ns; /* what has been used, as the time it takes to come back */
	uint64_t last_ns;
};

/* rate_settle - what is still used up at @now_ns. */
static inline uint64_t rate_settle(struct rate *r, uint64_t now_ns)
{
	uint64_t passed = now_ns > r->last_ns ? now_ns - r->last_ns : 0;

	r->used_ns = r->used_ns > passed ? r->used_ns - passed : 0;
	r->last_ns = now_ns;
	return r->used_ns;
}

/* rate_take - one more at @now_ns; false if that is over the rate (and it is not counted).
 * @each_ns is the time in which one comes back. */
static inline bool rate_take(struct rate *r, uint64_t now_ns, unsigned burst, uint64_t each_ns)
{
	if (rate_settle(r, now_ns) + each_ns > burst * each_ns)
		return false;
	r->used_ns += each_ns;
	return true;
}

/* rate_owe - takes what can be known only afterwards, also beyond the burst: it has to come back first. */
static inline void rate_owe(struct rate *r, uint64_t now_ns, uint64_t cost_ns)
{
	r->used_ns = rate_settle(r, now_ns) + cost_ns;
}

/* rate_is_spent - whether the next rate_take() would fail. */
static inline bool rate_is_spent(struct rate *r, uint64_t now_ns, unsigned burst, uint64_t each_ns)
{
	return rate_settle(r, now_ns) + each_ns > burst * each_ns;
}
