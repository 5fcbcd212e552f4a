/* SPDX-License-Identifier: Apache-2.0 */
/* notice_stream.c - see notice_stream.h. */
#include "cluster/notify/notice_stream.h"

bool notice_stream(const struct fleet_notice *n, wall_time now, struct stream_message *ret)
{
	const struct fleet_episode *e = &n->episode;
	struct stream_node node = {.node_id = e->node,
		.cluster_id = e->cluster,
		.time = now,
		.event_id = e->event[0] ? e->event : NULL,
		.rank = e->rank};

	if (!e->node[0])
		return false;
	if (n->kind == FLEET_NOTICE_ENDED)
		*ret = (struct stream_message){
			.type = STREAM_STRAGGLER_RESOLVED, .resolved = {node}};
	else
		*ret = (struct stream_message){.type = STREAM_STRAGGLER_STATE,
			.state = {.node = node,
				.score = e->score,
				.threshold = e->threshold,
				.detection_mode = "fleet",
				.dominant_signal =
					e->signal[0] ? e->signal : fleet_problem_id(e->problem),
				.problem = fleet_problem_id(e->problem),
				.summary = e->text,
				.cause = e->cause,
				.fix = e->fix,
				.place = e->place,
				.lag_ns = e->lag_ns,
				.period_steps = e->period,
				.waiting_ranks = e->waiting,
				.waited_ns = e->waited_ns}};
	return true;
}
