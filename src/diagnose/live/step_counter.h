/* SPDX-License-Identifier: Apache-2.0 */
/* step_counter.h - what steps took since they were first seen, added up while the accounts of the last
 * minutes come and go. Nothing is counted twice or taken back: each moment of a process is counted
 * once, by the first look that finds it settled. Pure: the caller brings the time. */
#pragma once

#include <stddef.h>

#include "model/step_account.h"

#define STEP_COUNTER_MAX       48 /* processes; 17 lines each keep within METRIC_SERIES_MAX */
#define STEP_COUNTER_SETTLE_NS ((int64_t)(5 * NS_PER_S)) /* rows of other threads come later */

struct step_count { /* of one process */
	uint32_t pid;
	char comm[COMM_LEN];
	wall_time since, until; /* what lies between them is counted */
	double steps, slow_steps;
	double ns[ACCOUNT_LINES];
};

struct step_counter {
	struct step_count items[STEP_COUNTER_MAX];
	size_t count;
	uint64_t left_out; /* times that a process found no room */
};

/* step_counter_update - adds what of @r is over since STEP_COUNTER_SETTLE_NS before @now. A process
 * of which nothing is left in @r is forgotten once it has been silent for @forget_ns. */
void step_counter_update(
	struct step_counter *c, const struct step_report *r, wall_time now, int64_t forget_ns);
