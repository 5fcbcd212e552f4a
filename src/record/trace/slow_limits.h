/* SPDX-License-Identifier: Apache-2.0 */
/* slow_limits.h - from which duration on a call is an exception that the kernel half sends as a row:
 * a multiple of the op's median. Pure.
 *
 * Limits are relative to the fastest process of an op: a slower one sends more than it need, never
 * less. */
#pragma once

#include "stat/sketch.h"
#include "wire/record.h"

struct slow_limits {                               /* zero: empty */
	uint64_t ns[WIRE_SOURCE_MAX][WIRE_OP_MAX]; /* 0: none yet */
};

/* slow_limits_add - @calls are those of one process. Only GPU calls have limits, and only when there
 * were enough of them. */
void slow_limits_add(
	struct slow_limits *l, unsigned source, unsigned op, const struct sketch *calls);
