/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - stored collectives of one cluster, brought together as the cluster does when they come in:
 * matched by communicator and sequence, with the nodes' clocks compared. */
#pragma once

#include "cluster/answer/tool_private.h"
#include "cluster/detect/calls.h"

#define REPLAY_CALLS_MAX    100000 /* the newest; 40 MiB of rows, a tenth of a second */
#define REPLAY_CLUSTERS_MAX 8      /* in one answer: the busiest */

struct replay {
	struct calls *calls;
	size_t rows;      /* calls that were read */
	int64_t since_ns; /* from when on: later than asked for if there were too many */
	bool is_cut;
};

/* replay_clusters - names of the clusters that have collectives in @s, a row each with their number,
 * busiest first. */
int replay_clusters(const struct tool_call *c, const struct tool_scope *s, struct sql_table *ret,
	struct errinfo *reterr);

/* replay_load - at most @max calls of @cluster. As of store_select(). */
int replay_load(struct replay *p, const struct tool_call *c, const struct tool_scope *s,
	const char *cluster, size_t max, struct errinfo *reterr);
void replay_done(struct replay *p);
