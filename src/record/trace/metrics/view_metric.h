/* SPDX-License-Identifier: Apache-2.0 */
/* view_metric.h - a run of tracing as metrics. Pure: the tracer gathers (tracer_metric.c), this
 * writes. */
#pragma once

#include "model/event.h"
#include "model/metric.h"
#include "record/trace/metric_state.h"
#include "record/trace/roster.h"
#include "record/trace/tracer.h"

#define READING_LAUNCHES_MAX 512 /* processes with a series of their own */

struct reading_launches {
	uint32_t pid;
	char comm[COMM_LEN];
	uint64_t count;
	wall_time since;
};

struct reading { /* everything that metrics are made of */
	const struct tracer_view *view;
	const struct metric_state *metric_state;
	const char *node, *version;
	struct {
		struct sketch all;
		uint64_t bytes;
	} copies[COPY_DIRECTION_COUNT];
	struct {
		uint64_t count, bytes;
	} collectives[WIRE_OP_MAX];
	struct reading_launches launches[READING_LAUNCHES_MAX];
	size_t launch_count;
	bool has_store;
	uint64_t pruned_rows;
	struct step_count steps[STEP_COUNTER_MAX]; /* of processes that are running */
	size_t step_count;
	/* Where processes live; NULL: not known. */
	struct roster_home (*home)(const struct roster *r, uint32_t pid);
	const struct roster *roster;
	uint64_t cut; /* what the lists above had no room for */
};

/* view_metric - add the points of @r to @s, all but the figures of the reading itself. */
void view_metric(const struct reading *r, struct metric_set *s);
