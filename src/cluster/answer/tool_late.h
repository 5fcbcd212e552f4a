/* SPDX-License-Identifier: Apache-2.0 */
/* tool_late.h - who makes a job wait, from its stored collectives: for find_stragglers and blame. They are brought
 * together as the cluster does when they come in: matched by communicator and sequence, with the nodes' clocks
 * compared. */
#pragma once

#include "cluster/answer/tool_private.h"
#include "cluster/detect/calls.h"

#define LATE_CALLS_MAX    100000 /* the newest; 40 MiB of rows, a tenth of a second */
#define LATE_CLUSTERS_MAX 8      /* in one answer: the busiest */

struct late { /* of one cluster; done with late_done() */
	const char *cluster;
	struct calls *calls;
	size_t rows;      /* calls that were read */
	int64_t since_ns; /* from when on: later than asked for if there were too many */
	bool is_cut;
	struct blame blame;
	struct blame_worker *workers;
	size_t worker_count;
};

/* late_clusters - names of the clusters that have collectives, a row each with their number, busiest first. */
int late_clusters(const struct tool_call *c, struct sql_table *ret);

/* late_load - at most @max calls of @cluster. As of store_select(). */
int late_load(struct late *l, const struct tool_call *c, const char *cluster, size_t max);
void late_done(struct late *l);

/* late_suspect - of worker @w; NULL: nobody blames it. */
const struct blame_suspect *late_suspect(const struct late *l, const struct worker_view *w);
/* late_is_cleared - it was often last, but only because it waited for others. */
bool late_is_cleared(const struct late *l, const struct worker_view *w);
/* late_is_often_last - by itself no blame: last by a millisecond and more, in a tenth of its calls. */
bool late_is_often_last(const struct worker_view *w);

/* late_json - the figures of one rank. */
json_t *late_json(const struct late *l, const struct worker_view *w);
