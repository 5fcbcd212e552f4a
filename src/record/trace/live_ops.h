/* SPDX-License-Identifier: Apache-2.0 */
/* live_ops.h - the live table of calls: one row for each op, all processes together. Made anew
 * whenever it is shown. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stat/sketch.h"

#define LIVE_OPS_MAX 256 /* rows: more than there are ops */

struct tracer_op {
	uint8_t source;
	uint16_t op;
	bool nested;
	bool is_estimate; /* not all were counted */
	uint64_t count;
	struct sketch sketch;
};

struct live_ops {
	struct tracer_op rows[LIVE_OPS_MAX];
	size_t count;
};

void live_ops_clear(struct live_ops *t);

/* live_ops_add - calls of a process and their times. */
void live_ops_add(
	struct live_ops *t, unsigned source, unsigned op, bool nested, const struct sketch *calls);

/* live_ops_count - @count events without a duration. */
void live_ops_count(struct live_ops *t, unsigned source, unsigned op, uint64_t count);

/* live_ops_sort - those that took most first, calls inside other calls behind all others. */
void live_ops_sort(struct live_ops *t);
