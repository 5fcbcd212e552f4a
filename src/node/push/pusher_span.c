/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_span.c - the times in which this node was a straggler, or degraded, as spans: sent when they end,
 * as spans are. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "node/push/pusher_cohort.h"
#include "node/push/pusher_private.h"

static void fill_random(struct pusher *p, uint8_t *out, size_t size)
{
	if (getrandom(out, size, 0) != (ssize_t)size)
		for (size_t i = 0; i < size; i++)
			out[i] = (uint8_t)pusher_random(p);
}

static void begin_episode(struct pusher *p, int kind)
{
	struct pusher_episode *e = &p->episodes[kind];
	uint8_t random[16];

	*e = (struct pusher_episode){.is_open = true, .start_ns = wall_now().ns};
	if (kind == EPISODE_STRAGGLER) { /* the id by which the fleet and the stream know it */
		snprintf(e->event, sizeof(e->event), "%s", p->monitor.classifier.event);
		return;
	}
	fill_random(p, random, sizeof(random));
	health_event_id(random, e->event);
}

static void end_episode(struct pusher *p, int kind, bool is_resolved)
{
	struct pusher_episode *e = &p->episodes[kind];
	struct push_span s = {.who = pusher_who(p),
		.is_straggler = kind == EPISODE_STRAGGLER,
		.start_ns = e->start_ns,
		.end_ns = wall_now().ns,
		.resolved = is_resolved};

	e->is_open = false;
	memcpy(s.event, e->event, sizeof(s.event));
	snprintf(s.workload, sizeof(s.workload), "%s", pusher_workload(p));
	pusher_cohort_hash(s.workload, p->recording.job, p->recording.cgroup, s.cohort);
	snprintf(s.gpu_model, sizeof(s.gpu_model), "%s", p->reading.readings.gpu_model);
	fill_random(p, s.trace, sizeof(s.trace));
	fill_random(p, s.id, sizeof(s.id));
	pusher_send_span(p, &s);
}

void pusher_span_step(struct pusher *p)
{
	const bool now[EPISODE_COUNT] = {[EPISODE_STRAGGLER] = p->monitor.classifier.is_straggler,
		[EPISODE_DEGRADED] = p->was_degraded};

	for (int i = 0; p->settings->spans && i < EPISODE_COUNT; i++) {
		if (now[i] && !p->episodes[i].is_open)
			begin_episode(p, i);
		else if (!now[i] && p->episodes[i].is_open)
			end_episode(p, i, true);
	}
}

void pusher_span_stop(struct pusher *p)
{
	for (int i = 0; i < EPISODE_COUNT; i++)
		if (p->episodes[i].is_open)
			end_episode(p, i, false);
}
