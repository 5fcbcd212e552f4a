/* SPDX-License-Identifier: Apache-2.0 */
/* health_mode.h - by which threshold a node judges itself. Pure.
 *
 * A threshold is usable if it is within HEALTH_THRESHOLD_MIN … _MAX and at most 5 minutes old. In this
 * order:
 *   fleet           usable, of a quorum, and fresh: at most 20 s old, or two and a half push intervals
 *                   if that is longer, so that a slow cadence does not switch detection off
 *   fleet-cached    usable otherwise, and the fleet can be reached
 *   local-cached    usable otherwise
 *   local-baseline  none is usable (a fleet below its quorum has none), but enough samples are there
 *                   to judge by one's own past: HEALTH_LOCAL_THRESHOLD
 *   none            nothing to judge by
 * An age below 0 (a clock that was set back) is not usable. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEALTH_THRESHOLD_MIN   0.1
#define HEALTH_THRESHOLD_MAX   0.99
#define HEALTH_LOCAL_THRESHOLD 0.85
#define HEALTH_UNREACHABLE     3 /* failed pushes in a row */

/* X(NAME, id) */
#define HEALTH_MODES(X)                                                                            \
	X(NONE, "none")                                                                            \
	X(FLEET, "fleet")                                                                          \
	X(FLEET_CACHED, "fleet-cached")                                                            \
	X(LOCAL_CACHED, "local-cached")                                                            \
	X(LOCAL_BASELINE, "local-baseline")

enum health_mode {
#define X(NAME, ...) HEALTH_MODE_##NAME,
	HEALTH_MODES(X)
#undef X
};

const char *health_mode_id(enum health_mode m);
/* health_mode_find - the mode that is called @id. False: none is. */
bool health_mode_find(const char *id, enum health_mode *ret);

struct health_threshold { /* what the fleet said last */
	bool known;
	double value;
	bool quorum;
	int64_t at_ns; /* monotonic */
};

struct health_mode_facts {
	struct health_threshold cached;
	int64_t now_ns;
	uint64_t push_interval_ns;
	bool reachable;
	bool warm; /* enough samples for a baseline */
};

/* health_mode_choose - *ret_threshold is 0 in mode none. */
enum health_mode health_mode_choose(const struct health_mode_facts *f, double *ret_threshold);

/* health_threshold_is_usable - the value, not its age. */
bool health_threshold_is_usable(double value);

struct health_reach {      /* whether the fleet can be reached */
	uint32_t failures; /* in a row */
};
void health_reach_note(struct health_reach *r, bool success);
bool health_reach_ok(const struct health_reach *r);
