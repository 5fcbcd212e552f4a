/* SPDX-License-Identifier: Apache-2.0 */
/* health_state.c - see health_state.h. */
#include "node/health/health_state.h"

#include <errno.h>

#include "base/clock.h"
#include "base/macros.h"

#define FUTURE_NS (60 * (int64_t)NS_PER_S)

const struct health_state_settings health_state_defaults = {
	.warmup = 30, .idle_intervals = 3, .failed_intervals = 3};

int health_state_check(const struct health_state_settings *s, struct errinfo *reterr)
{
	if (!s->idle_intervals || s->idle_intervals > HEALTH_IDLE_INTERVALS_MAX)
		return errinfo_set(reterr, -EINVAL, "idle intervals must be between 1 and %u",
			HEALTH_IDLE_INTERVALS_MAX);
	return s->failed_intervals
		       ? 0
		       : errinfo_set(reterr, -EINVAL, "failed intervals must be at least 1");
}

void health_state_init(struct health_state *h, bool restored)
{
	*h = (struct health_state){.now = restored ? PUSH_ACTIVE : PUSH_CALIBRATING};
}

static void calibrate(struct health_state *h)
{
	h->now = PUSH_CALIBRATING;
	h->warm = 0;
	h->without_launch = 0;
}

/* A reading while calibrating, also the one that made it so. */
static void warm_up(struct health_state *h, const struct health_state_settings *s)
{
	if (++h->warm >= s->warmup)
		h->now = PUSH_ACTIVE;
}

static void observe_good(struct health_state *h, const struct health_state_settings *s,
	int64_t launches, struct health_step *step)
{
	*step = (struct health_step){.push = true, .is_good = true};
	h->failed = 0;
	if (h->now == PUSH_STALE)
		calibrate(h);
	if (h->now == PUSH_IDLE && launches > 0) {
		calibrate(h);
		step->reset_baseline = true;
		step->push = false;
	}
	h->without_launch = launches > 0 ? 0 : MIN(h->without_launch + 1, s->idle_intervals);
	if (h->now == PUSH_CALIBRATING)
		warm_up(h, s);
	else if (h->now == PUSH_ACTIVE && h->without_launch >= s->idle_intervals)
		h->now = PUSH_IDLE;
	/* Without a launch it may be on its way to idle: that is no straggler. */
	step->classify = h->now == PUSH_ACTIVE && launches > 0;
}

struct health_step health_state_observe(struct health_state *h,
	const struct health_state_settings *s, const struct health_reading *r)
{
	enum push_state before = h->now;
	struct health_step step = {0};

	if (!r->failed && (r->at_ns <= r->now_ns || r->at_ns - r->now_ns <= FUTURE_NS)) {
		observe_good(h, s, MAX(r->launches, INT64_C(0)), &step);
	} else {
		h->failed = MIN(h->failed + 1, s->failed_intervals);
		if (h->failed >= s->failed_intervals)
			h->now = PUSH_STALE;
	}
	step.changed = h->now != before;
	return step;
}
