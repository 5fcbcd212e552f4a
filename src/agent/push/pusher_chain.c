/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_chain.c - incidents that the recording explains, each told once, as it was found. What was not
 * delivered is read and sent again. */
#include "agent/push/pusher_private.h"
#include "base/array.h"

#define CHAINS_MAX 16                       /* of a request */
#define BACK_NS    (60 * (int64_t)NS_PER_S) /* before our start */

struct chains {
	const struct pusher_recording *recording;
	struct recent_chain *items;
	size_t count, room;
};

static int take_chain(void *arg, const struct recent_chain *c)
{
	struct chains *x = arg;
	int r = ARRAY_RESERVE(x->items, x->room, x->count + 1, CHAINS_MAX);

	if (r < 0)
		return r;
	x->items[x->count++] = *c;
	return 0;
}

static int visit_chains(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct chains *x = arg;
	const struct pusher_recording *r = x->recording;

	return nodedb_recent_chains(
		l, r->chain_row, r->started.ns - BACK_NS, CHAINS_MAX, take_chain, x, reterr);
}

static struct push_chain chain_of(const struct recent_chain *c)
{
	return (struct push_chain){.detected_ns = c->detected_ns,
		.id = c->id,
		.severity = c->severity,
		.summary = c->summary,
		.root_cause = c->root_cause,
		.explanation = c->explanation,
		.recommendations = c->recommendations,
		.timeline = c->timeline,
		.op = c->op,
		.p99_us = c->p99_us,
		.p50_us = c->p50_us,
		.tail_ratio = c->tail_ratio};
}

void pusher_chain_step(struct pusher *p)
{
	struct chains x = {.recording = &p->recording};
	struct push_chain chains[CHAINS_MAX];

	if (p->chains_under_way)
		return;
	/* A failure is told by the reading of the interval. */
	if (nodedb_snapshot_read(p->recording.path, visit_chains, &x, NULL) == 0 && x.count) {
		for (size_t i = 0; i < x.count; i++)
			chains[i] = chain_of(&x.items[i]);
		pusher_send_chains(p, chains, x.count, x.items[x.count - 1].row);
	}
	free(x.items);
}
