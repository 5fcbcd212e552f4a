/* SPDX-License-Identifier: Apache-2.0 */
/* tool_late.h - who makes a job wait, from its stored collectives: for find_stragglers and blame. */
#pragma once

#include "cluster/answer/replay.h"

struct late { /* of one cluster; done with late_done() */
	const char *cluster;
	struct replay replay;
	struct blame blame;
	struct blame_worker *workers;
	size_t worker_count;
};

/* late_load - at most @max calls. */
int late_load(struct late *l, const struct tool_call *c, const struct tool_scope *s,
	const char *cluster, size_t max, struct errinfo *reterr);
void late_done(struct late *l);

/* late_suspect - of worker @w; NULL: nobody blames it. */
const struct blame_suspect *late_suspect(const struct late *l, const struct worker_view *w);
/* late_is_cleared - it was often last, but only because it waited for others. */
bool late_is_cleared(const struct late *l, const struct worker_view *w);
/* late_is_often_last - by itself no blame: last by a millisecond and more, in a tenth of its calls. */
bool late_is_often_last(const struct worker_view *w);

/* late_json - the figures of one rank. */
json_t *late_json(const struct late *l, const struct worker_view *w);
