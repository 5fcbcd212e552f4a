/* SPDX-License-Identifier: Apache-2.0 */
/* live_ops.h - the live table of calls: one row for each op, all processes together. Made anew
 * whenever it is shown. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/accounting.h"
#include "stat/sketch.h"
#include "wire/record.h"

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

/* From which duration on a call is an exception that the kernel half sends as a row:
 * a multiple of the op's median. Pure.
 *
 * Limits are relative to the fastest process of an op: a slower one sends more than it need, never
 * less. */

struct slow_limits {                               /* zero: empty */
	uint64_t ns[WIRE_SOURCE_MAX][WIRE_OP_MAX]; /* 0: none yet */
};

/* slow_limits_add - @calls are those of one process. Only GPU calls have limits, and only when there
 * were enough of them. */
void slow_limits_add(
	struct slow_limits *l, unsigned source, unsigned op, const struct sketch *calls);

/* Which gaps in what is seen of processes have been reported: a mapping is found by the
 * kernel's record and by scans, and one gap is reported once. The latest GAP_LOG_MAX are known. */

#define GAP_LOG_MAX 256

struct gap_log_entry {
	uint32_t pid;
	uint64_t start_ticks, file; /* the file's name as a hash */
};

struct gap_log {                                   /* zero: empty */
	struct gap_log_entry entries[GAP_LOG_MAX]; /* a ring */
	size_t count;                              /* ever entered */
};

/* gap_log_add - false: @g has been reported. *ret_is_new_process: no other gap of its process has; set
 * in both cases. */
bool gap_log_add(struct gap_log *l, const struct call_gap *g, bool *ret_is_new_process);
