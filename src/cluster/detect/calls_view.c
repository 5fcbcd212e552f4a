/* SPDX-License-Identifier: Apache-2.0 */
/* calls_view.c - what calls.h lets one see. Cursors hold a place in a table, or the address of the
 * collective that was shown last: nothing may change meanwhile. */

#include "cluster/detect/calls_core.h"

bool calls_worker_next(const struct calls *c, size_t *cursor, struct worker_view *ret)
{
	while (*cursor < c->workers.count) {
		const struct worker *w = c->workers.items[(*cursor)++];

		if (!w)
			continue;
		*ret = (struct worker_view){
			.worker = w->id,
			.node = c->senders.items[w->node]->name,
			.world_rank = w->world_rank,
			.pid = w->pid,
			.last_ns = w->enter_ns + clocks_offset(c->clocks, w->node, w->enter_ns),
			.calls = w->calls,
			.last_count = w->last_count,
			.late_since_ns = w->late_since_ns,
			.waited_ns = w->waited_ns,
			.offset_ns = clocks_offset(c->clocks, w->node, w->enter_ns),
			.error_ns = clocks_error(c->clocks, w->node),
			.drift_ppm = clocks_drift_ppm(c->clocks, w->node),
		};
		if (c->now_ns < w->slower_until_ns) {
			ret->slower_since_ns = w->slower_since_ns;
			ret->slower = w->slower;
		}
		if (c->now_ns - w->late_ns > calls_window(c))
			ret->late_since_ns = 0;
		if (w->lag)
			ret->lag = *w->lag;
		return true;
	}
	return false;
}

bool calls_comm_next(const struct calls *c, size_t *cursor, struct comm_view *ret)
{
	const struct comm *m = idmap_next(&c->comms.comms, cursor, NULL);

	if (!m)
		return false;
	*ret = (struct comm_view){.comm = m->comm,
		.nranks = m->nranks,
		.ranks = (uint32_t)m->member_count,
		.matched = m->matched,
		.open = m->live - m->complete,
		.first_seq = m->first_seq,
		.last_seq = m->last_seq};
	return true;
}

#define CURSOR_END SIZE_MAX

bool calls_collective_next(const struct calls *c, size_t *cursor, struct collective_view *ret)
{
	const struct collective *x;

	if (*cursor == CURSOR_END)
		return false;
	x = *cursor == 0 ? TAILQ_LAST(&c->comms.by_age, collective_list)
			 : TAILQ_PREV((struct collective *)*cursor, collective_list, age);
	while (x && (x->state != COLLECTIVE_DONE || comms_is_pair(x->comm)))
		x = TAILQ_PREV(x, collective_list, age);
	if (!x) {
		*cursor = CURSOR_END;
		return false;
	}
	*cursor = (size_t)x;
	*ret = (struct collective_view){.comm = x->comm->comm,
		.seq = x->seq,
		.bytes = x->bytes,
		.op = x->op,
		.nranks = x->comm->nranks,
		.last_worker = x->comm->members[x->last_slot].worker,
		.lag_ns = x->lag_ns,
		.waited_ns = x->waited_ns,
		.last_ns = x->last_ns};
	return true;
}

int calls_arrivals(const struct calls *c, uint64_t comm, uint64_t seq, int64_t *ret, size_t max)
{
	const struct comm *m = comms_find(&c->comms, comm);
	const struct collective *x = m ? comms_lookup(&c->comms, m, seq) : NULL;
	int r;

	if (!x)
		return -ENOENT;
	r = lags_align(c, x);
	if (r < 0)
		return r;
	for (size_t i = 0; i < max && i < (size_t)m->places; i++)
		ret[i] = INT64_MIN;
	for (uint32_t i = 0; i < x->room; i++)
		if (c->lags->arrivals[i] != INT64_MIN && (size_t)m->members[i].place < max)
			ret[m->members[i].place] = c->lags->arrivals[i];
	return m->places;
}

bool calls_hang_next(const struct calls *c, size_t *cursor, struct hang_view *ret)
{
	if (*cursor >= c->hangs.count)
		return false;
	*ret = c->hangs.items[(*cursor)++];
	return true;
}

bool calls_mismatch_next(const struct calls *c, size_t *cursor, struct mismatch_view *ret)
{
	return mismatches_next(&c->mismatches, cursor, ret);
}

static size_t map_bytes(const struct idmap *m)
{
	return m->capacity * 2 * sizeof(uint64_t);
}

struct calls_stats calls_stats(const struct calls *c)
{
	const struct comms *m = &c->comms;

	return (struct calls_stats){
		.taken = c->taken,
		.duplicate = c->duplicate,
		.refused = c->refused,
		.evicted = m->evicted,
		.unmatched = m->unmatched,
		.joined = c->joins.joined,
		.held = c->joins.count,
		.given_up = c->joins.given_up,
		.clock_steps = clocks_steps(c->clocks),
		.kept = m->units,
		.bytes = sizeof(*c) + m->units * sizeof(struct arrival) + map_bytes(&m->items) +
			 map_bytes(&m->comms) + map_bytes(&m->pairs) +
			 (m->comms.used + m->pairs.used) * sizeof(struct comm) +
			 m->member_room * (sizeof(struct member) + 2 * sizeof(uint32_t)) +
			 c->workers.used * sizeof(struct worker) +
			 c->workers.sketches * sizeof(struct sketch) +
			 map_bytes(&c->workers.by_process) +
			 c->senders.by_key.used * sizeof(struct sender) + clocks_bytes(c->clocks),
	};
}

const char *calls_mismatch_id(enum calls_mismatch m)
{
	return LIST_IDS(CALLS_MISMATCHES)[m];
}
