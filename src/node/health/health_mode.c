/* SPDX-License-Identifier: Apache-2.0 */
/* health_mode.c - see health_mode.h. */
#include "node/health/health_mode.h"

#include <string.h>

#include "base/clock.h"
#include "base/macros.h"

#define FRESH_NS  (20 * (int64_t)NS_PER_S)
#define USABLE_NS (300 * (int64_t)NS_PER_S)

const char *health_mode_id(enum health_mode m)
{
	static const char *const ids[] = {
#define X(NAME, id) [HEALTH_MODE_##NAME] = id,
		HEALTH_MODES(X)
#undef X
	};

	return ids[m];
}

bool health_mode_find(const char *id, enum health_mode *ret)
{
	for (int m = HEALTH_MODE_NONE; m <= HEALTH_MODE_LOCAL_BASELINE; m++)
		if (strcmp(id, health_mode_id((enum health_mode)m)) == 0) {
			*ret = (enum health_mode)m;
			return true;
		}
	return false;
}

bool health_threshold_is_usable(double value)
{
	return value >= HEALTH_THRESHOLD_MIN && value <= HEALTH_THRESHOLD_MAX;
}

enum health_mode health_mode_choose(const struct health_mode_facts *f, double *ret_threshold)
{
	int64_t age = f->now_ns - f->cached.at_ns;
	int64_t fresh = MAX(FRESH_NS, (int64_t)(f->push_interval_ns / 2 * 5));
	bool usable = f->cached.known && health_threshold_is_usable(f->cached.value) && age >= 0 &&
		      age <= MAX(USABLE_NS, fresh);

	*ret_threshold = usable ? f->cached.value : 0;
	if (usable && f->cached.quorum && age <= fresh)
		return HEALTH_MODE_FLEET;
	if (usable)
		return f->reachable ? HEALTH_MODE_FLEET_CACHED : HEALTH_MODE_LOCAL_CACHED;
	if (!f->warm)
		return HEALTH_MODE_NONE;
	*ret_threshold = HEALTH_LOCAL_THRESHOLD;
	return HEALTH_MODE_LOCAL_BASELINE;
}

void health_reach_note(struct health_reach *r, bool success)
{
	r->failures = success ? 0 : MIN(r->failures + 1, (uint32_t)HEALTH_UNREACHABLE);
}

bool health_reach_ok(const struct health_reach *r)
{
	return r->failures < HEALTH_UNREACHABLE;
}
