/* SPDX-License-Identifier: Apache-2.0 */
/* health_state.h - what a node is: calibrating, active, idle or stale. Pure.
 *
 *   calibrating -> active       after `warmup` readings
 *   active -> idle              after `idle_intervals` readings in a row without a launch
 *   idle -> calibrating         with the first launch: the baseline begins anew, and this reading is
 *                               its first, but is not pushed
 *   any -> stale                after `failed_intervals` failed readings in a row; nothing is pushed
 *   stale -> calibrating        with the first good reading
 *
 * The launches of a reading are those since the last one, not of the whole window that the other
 * signals look at: idle would otherwise come a window late. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errinfo.h"
#include "push/push.h"

#define HEALTH_IDLE_INTERVALS_MAX (1u << 20)

struct health_state_settings {
	uint32_t warmup;           /* 30 */
	uint32_t idle_intervals;   /* 3; 1 … HEALTH_IDLE_INTERVALS_MAX */
	uint32_t failed_intervals; /* 3 */
};
extern const struct health_state_settings health_state_defaults;
int health_state_check(const struct health_state_settings *s, struct errinfo *reterr);

struct health_state {
	enum push_state now;
	uint32_t warm, without_launch, failed; /* readings */
};

struct health_reading {
	bool failed;
	int64_t launches;      /* since the last reading; below 0 counts as 0 */
	int64_t at_ns, now_ns; /* when it was made; over a minute ahead counts as failed */
};

struct health_step {         /* what follows from a reading */
	bool push;           /* send it */
	bool classify;       /* it may be called a straggler */
	bool reset_baseline; /* before the reading is added to it */
	bool is_good;        /* it may be added to the baseline */
	bool changed;        /* the state is another one */
};

/* health_state_init - @restored: a baseline was loaded, and the node is active at once. */
void health_state_init(struct health_state *h, bool restored);
struct health_step health_state_observe(struct health_state *h,
	const struct health_state_settings *s, const struct health_reading *r);
