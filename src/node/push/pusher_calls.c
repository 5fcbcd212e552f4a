/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_calls.c - calls to push: see pusher_recording.h. */
#include "node/push/pusher_recording.h"

#include "base/array.h"
#include "base/hash.h"
#include "blame/ends.h"

#define SWEEP_NS (60 * (int64_t)NS_PER_S) /* between looks for pairs to forget */

struct point {
	uint64_t count;
	int64_t used_ns;
	uint32_t pid;
};

void pusher_calls_init(struct pusher_calls *c)
{
	*c = (struct pusher_calls){.points = IDMAP_INIT(PUSHER_POINTS_MAX)};
}

void pusher_calls_done(struct pusher_calls *c)
{
	size_t cursor = 0;
	void *point;

	while ((point = idmap_next(&c->points, &cursor, NULL)))
		free(point);
	idmap_done(&c->points);
	free(c->items);
	*c = (struct pusher_calls){0};
}

/* The pairs of processes that are gone, as far as can be told: one of them that counts anew would not be as its peers
 * count. */
static void forget_quiet(struct pusher_calls *c, int64_t now_ns)
{
	struct idmap used = IDMAP_INIT(PUSHER_POINTS_MAX); /* by process: when, last */
	const struct point *p;
	size_t cursor = 0;
	int r = 0;

	while (r == 0 && (p = idmap_next(&c->points, &cursor, NULL)))
		if ((uintptr_t)idmap_get(&used, p->pid) < (uintptr_t)p->used_ns)
			r = idmap_put(&used, p->pid, (void *)(uintptr_t)p->used_ns);
	cursor = 0;
	while (r == 0 && (p = idmap_next(&c->points, &cursor, NULL)))
		if ((int64_t)(uintptr_t)idmap_get(&used, p->pid) < now_ns - PUSHER_CALL_AGE)
			free(idmap_take(&c->points, &cursor));
	idmap_done(&used);
	c->swept_ns = now_ns;
}

/* The pair's count; NULL: no room. */
static uint64_t *point_count(struct pusher_calls *c, uint32_t pid, uint64_t comm, bool is_send,
	int32_t peer, int64_t now_ns)
{
	uint64_t id =
		hash_number(hash_number(comm + pid) ^ ((uint64_t)(uint32_t)peer << 1 | is_send));
	struct point *p = idmap_get(&c->points, id);

	if (!p) {
		if (c->points.used == PUSHER_POINTS_MAX && now_ns - c->swept_ns >= SWEEP_NS)
			forget_quiet(c, now_ns);
		p = calloc(1, sizeof(*p));
		if (!p || idmap_put(&c->points, id, p) < 0) {
			free(p);
			return NULL;
		}
		p->pid = pid;
	}
	p->used_ns = MAX(p->used_ns, now_ns);
	return &p->count;
}

int pusher_calls_points(struct pusher_calls *c, const struct recent_points *p)
{
	uint64_t *count = point_count(c, p->pid, p->comm, p->is_send, p->peer, 0);

	if (count)
		*count = p->count;
	return 0;
}

static struct push_call call_of(const struct collective_row *row, int32_t world_rank)
{
	return (struct push_call){.comm = row->c.comm_hash,
		.seq = row->c.seq,
		.bytes = row->c.bytes,
		.enter_ns = row->start.ns,
		.leave_ns = collective_left_ns(row),
		.wait_ns = row->c.wait_ns < 0 ? UINT64_MAX : (uint64_t)row->c.wait_ns,
		.rank = row->c.rank,
		.nranks = row->c.nranks,
		.peer = row->c.peer,
		.world_rank = world_rank,
		.pid = row->pid,
		.op = row->op,
		.datatype = row->c.datatype < 0 ? UINT16_MAX : (uint16_t)row->c.datatype};
}

/* What the Send or Recv is to its peer, negative where that is the rank's own count; 0: no room. */
static uint64_t point_number(struct pusher_calls *c, const struct collective_row *row)
{
	bool is_own = !row->c.comm_hash || row->c.seq > INT64_MAX;
	uint64_t tag = row->c.comm_hash ? 0 : -row->c.seq >> COLLECTIVE_TAG;
	uint64_t *count = point_count(c, row->pid, row->c.comm_hash + tag, row->op == NCCL_SEND,
		row->c.peer, row->start.ns);

	if (!count)
		return 0;
	++*count;
	return is_own ? -(tag << COLLECTIVE_TAG | *count) : *count;
}

int pusher_calls_add(
	struct pusher_calls *c, const struct collective_row *row, int32_t world_rank, wall_time now)
{
	struct push_call call = call_of(row, world_rank);
	bool is_point = row->op == NCCL_SEND || row->op == NCCL_RECV;
	int r;

	if (is_point)
		call.seq = point_number(c, row);
	else if (!call.comm && call.seq <= INT64_MAX)
		call.seq = -call.seq; /* as older tracers count */
	if (!call.seq || row->start.ns < now.ns - PUSHER_CALL_AGE) {
		c->lost++; /* nobody could match it */
		return 0;
	}
	c->nameless += !call.comm;
	if (c->count == PUSHER_CALLS_MAX) { /* a quarter at once, so that it costs little */
		size_t drop = PUSHER_CALLS_MAX / 4;

		c->lost += drop;
		c->count -= drop;
		memmove(c->items, c->items + drop, c->count * sizeof(*c->items));
	}
	r = ARRAY_RESERVE(c->items, c->room, c->count + 1, PUSHER_CALLS_MAX);
	if (r == 0)
		c->items[c->count++] = call;
	return r;
}

/* The later ones first, so that shared synchronisations are known. */
static int share_syncs(struct pusher_calls *c)
{
	_cleanup_(idmap_done) struct idmap next = IDMAP_INIT(PUSHER_CALLS_MAX); /* by process */
	int r = 0;

	for (size_t i = c->count; r >= 0 && i-- > 0;) {
		const struct push_call *after = idmap_get(&next, c->items[i].pid);

		if (after)
			ends_share(&c->items[i], after);
		r = idmap_put(&next, c->items[i].pid, &c->items[i]);
	}
	return MIN(r, 0);
}

int pusher_calls_take(struct pusher_calls *c, size_t max, struct push_calls *ret)
{
	_cleanup_free_ struct push_call *items = malloc(MIN(c->count, max) * sizeof(*items) + 1);
	bool numbered = c->count && push_call_is_numbered(&c->items[0]);
	size_t n = 0, kept = 0;

	if (!items || share_syncs(c) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++)
		if (n < max && push_call_is_numbered(&c->items[i]) == numbered)
			items[n++] = c->items[i];
		else
			c->items[kept++] = c->items[i];
	c->count = kept;
	ret->items = TAKE(items);
	ret->count = n;
	ret->lost = c->lost;
	c->lost = 0;
	return 0;
}
