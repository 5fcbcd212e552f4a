/* SPDX-License-Identifier: Apache-2.0 */
/* comms.c - see comms.h.
 *
 * Invariants: items holds exactly the collectives of by_age; units is the sum of their room and heads;
 * a collective is in open from when a rank comes until all have come or nobody waits in it; in ready once, while READY. */
#include "cluster/detect/comms.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/macros.h"

#define PAIRS_PER_COMM 4
#define VOTES_MAX      1024
#define REPLACE_NS                                                                                 \
	INT64_C(60000000000) /* a rank without a call for so long may be another process */

void comms_init(struct comms *m, uint32_t comms_max, size_t calls_max)
{
	*m = (struct comms){
		.comms = IDMAP_INIT(comms_max),
		.pairs = IDMAP_INIT((size_t)comms_max * PAIRS_PER_COMM),
		.items = IDMAP_INIT(calls_max),
		.units_max = calls_max,
	};
	TAILQ_INIT(&m->by_age);
	TAILQ_INIT(&m->open);
}

static void comm_free(struct comms *m, struct comm *x, struct workers *w)
{
	for (size_t i = 0; i < x->member_count; i++)
		w->items[x->members[i].worker]->members--;
	m->member_room -= x->member_room;
	free(x->members);
	free(x->slots);
	free(x);
}

void comms_done(struct comms *m, struct workers *w)
{
	struct collective *c;
	struct comm *x;
	size_t cursor = 0;

	while ((c = TAILQ_FIRST(&m->by_age))) {
		TAILQ_REMOVE(&m->by_age, c, age);
		free(c);
	}
	while ((x = idmap_next(&m->comms, &cursor, NULL)))
		comm_free(m, x, w);
	cursor = 0;
	while ((x = idmap_next(&m->pairs, &cursor, NULL)))
		comm_free(m, x, w);
	idmap_done(&m->comms);
	idmap_done(&m->pairs);
	idmap_done(&m->items);
	free(m->ready);
}

bool comms_is_pair(const struct comm *x)
{
	return x->src >= 0;
}

static uint64_t pair_id(uint64_t comm, int32_t src, int32_t dst)
{
	return hash_number(comm ^ hash_number((uint64_t)(uint32_t)src << 32 | (uint32_t)dst));
}

struct comm *comms_find(const struct comms *m, uint64_t comm)
{
	return idmap_get(&m->comms, comm);
}

int comms_get(struct comms *m, const struct push_call *c, struct comm **ret)
{
	bool is_pair = c->op == NCCL_SEND || c->op == NCCL_RECV;
	int32_t src = !is_pair ? -1 : c->op == NCCL_SEND ? c->rank : c->peer;
	int32_t dst = !is_pair ? -1 : c->op == NCCL_SEND ? c->peer : c->rank;
	struct idmap *map = is_pair ? &m->pairs : &m->comms;
	uint64_t id = is_pair ? pair_id(c->comm, src, dst) : c->comm;
	struct comm *x = idmap_get(map, id);
	int r;

	if (x) {
		if (x->comm != c->comm || x->src != src || x->dst != dst)
			return -ENOBUFS; /* two pairs with one id: the first keeps it */
		*ret = x;
		return 0;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	*x = (struct comm){
		.comm = c->comm,
		.src = src,
		.dst = dst,
		.nranks = c->nranks,
		.places = is_pair ? 2 : c->nranks,
		.salt = hash_number(id + 1) ^ (uint64_t)is_pair,
	};
	r = idmap_put(map, id, x);
	if (r < 0) {
		free(x);
		return r;
	}
	*ret = x;
	return 0;
}

void comms_remove(struct comms *m, struct comm *x, struct workers *w)
{
	if (comms_is_pair(x))
		idmap_remove(&m->pairs, pair_id(x->comm, x->src, x->dst));
	else
		idmap_remove(&m->comms, x->comm);
	comm_free(m, x, w);
}

/* Ranks are dense, so the place itself is the hash: one step where all ranks have been seen. */
static uint32_t *find_slot(
	uint32_t *slots, size_t room, const struct member *members, int32_t place)
{
	size_t i = (uint32_t)place & (room - 1);

	while (slots[i] && members[slots[i] - 1].place != place)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

uint32_t comm_slot(const struct comm *x, int32_t place)
{
	if (!x->slot_room)
		return UINT32_MAX;
	return *find_slot(x->slots, x->slot_room, x->members, place) - 1; /* 0 becomes UINT32_MAX */
}

static int slots_grow(struct comm *x)
{
	size_t room = x->slot_room ? x->slot_room * 2 : 8;
	uint32_t *slots;

	if (x->member_count + 1 <= x->slot_room / 2)
		return 0;
	slots = calloc(room, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->member_count; i++)
		*find_slot(slots, room, x->members, x->members[i].place) = i + 1;
	free(x->slots);
	x->slots = slots;
	x->slot_room = room;
	return 0;
}

static int member_add(struct comms *m, struct comm *x, struct member member)
{
	size_t room = x->member_room;
	int r = slots_grow(x);

	r = r ?: ARRAY_RESERVE(x->members, x->member_room, x->member_count + 1, SIZE_MAX / 2);
	if (r < 0)
		return r;
	m->member_room += x->member_room - room;
	x->members[x->member_count++] = member;
	*find_slot(x->slots, x->slot_room, x->members, member.place) = (uint32_t)x->member_count;
	return 0;
}

int comm_member(struct comms *m, struct comm *x, const struct push_call *c, struct workers *w,
	struct worker *from, uint32_t *ret)
{
	int32_t place = comms_is_pair(x) ? c->op == NCCL_RECV : c->rank;
	uint32_t slot = comm_slot(x, place);
	int r;

	if (slot == UINT32_MAX) {
		r = member_add(m, x,
			(struct member){.place = place,
				.rank = c->rank,
				.worker = from->id,
				.node = from->node});
		if (r < 0)
			return r;
		from->members++;
		slot = (uint32_t)x->member_count - 1;
	} else if (x->members[slot].worker != from->id) {
		struct worker *other = w->items[x->members[slot].worker];

		if (from->last_ns - other->last_ns < REPLACE_NS)
			return -EBUSY;
		other->members--;
		from->members++;
		x->members[slot].worker = from->id;
		x->members[slot].node = from->node;
	}
	*ret = slot;
	return 0;
}

void comm_vote(struct comm *x, int32_t nranks)
{
	if (nranks == x->nranks) {
		x->votes = MIN(x->votes + 1, (uint32_t)VOTES_MAX);
		return;
	}
	if (x->votes > 0) {
		x->votes--;
		return;
	}
	x->nranks = nranks;
	if (!comms_is_pair(x))
		x->places = nranks;
}

static uint64_t item_id(const struct comm *x, uint64_t seq)
{
	return x->salt + seq;
}

struct collective *comms_lookup(const struct comms *m, const struct comm *x, uint64_t seq)
{
	struct collective *c = idmap_get(&m->items, item_id(x, seq));

	return c && c->comm == x && c->seq == seq ? c : NULL;
}

static void arrivals_clear(struct collective *c, uint32_t from)
{
	for (uint32_t i = from; i < c->room; i++)
		c->arrivals[i] = (struct arrival){.enter_ns = INT64_MIN};
}

static struct collective *collective_alloc(struct collective *old, uint32_t room)
{
	return realloc(old, sizeof(*old) + (size_t)room * sizeof(struct arrival));
}

/* realloc() moves it: those that point to it are told. */
static int collective_grow(struct comms *m, struct collective **c, uint32_t room)
{
	struct collective *old = *c, *moved, *after = TAILQ_NEXT(old, age);
	bool was_open = old->is_in_open, was_unaged = m->unaged == old;
	uint32_t had = old->room;

	if (m->units + room - had > m->units_max)
		return -ENOSPC;
	TAILQ_REMOVE(&m->by_age, old, age);
	if (was_open)
		TAILQ_REMOVE(&m->open, old, open);
	moved = collective_alloc(old, room);
	if (moved) {
		moved->room = room;
		arrivals_clear(moved, had);
		m->units += room - had;
		*c = moved;
		/* the entry that goes leaves room for the one that comes: this cannot fail */
		idmap_remove(&m->items, item_id(moved->comm, moved->seq));
		(void)idmap_put(&m->items, item_id(moved->comm, moved->seq), moved);
	}
	if (after)
		TAILQ_INSERT_BEFORE(after, *c, age);
	else
		TAILQ_INSERT_TAIL(&m->by_age, *c, age);
	if (was_open)
		TAILQ_INSERT_TAIL(&m->open, *c, open);
	if (was_unaged)
		m->unaged = *c;
	return moved ? 0 : -ENOMEM;
}

static int collective_new(struct comms *m, struct comm *x, uint64_t seq, uint32_t room,
	int64_t now_ns, struct collective **ret)
{
	struct collective *c;
	int r;

	if (idmap_get(&m->items, item_id(x, seq)))
		return -ENOBUFS; /* another one with this id: it stays */
	if (m->units + COLLECTIVE_UNITS + room > m->units_max)
		return -ENOSPC;
	c = collective_alloc(NULL, room);
	if (!c)
		return -ENOMEM;
	*c = (struct collective){
		.comm = x, .seq = seq, .received_ns = now_ns, .first_ns = now_ns, .room = room};
	arrivals_clear(c, 0);
	r = idmap_put(&m->items, item_id(x, seq), c);
	if (r < 0) {
		free(c);
		return r;
	}
	TAILQ_INSERT_TAIL(&m->by_age, c, age);
	m->unaged = m->unaged ?: c;
	m->units += COLLECTIVE_UNITS + room;
	x->live++;
	*ret = c;
	return 0;
}

int comms_collective(struct comms *m, struct comm *x, uint64_t seq, uint32_t slot, int64_t now_ns,
	struct collective **ret, bool *ret_new)
{
	struct collective *c = comms_lookup(m, x, seq);
	uint32_t room = (uint32_t)x->member_count;
	int r;

	*ret_new = false;
	r = ARRAY_RESERVE(m->ready, m->ready_room, m->ready_count + 1, SIZE_MAX / 2);
	if (r < 0)
		return r;
	if (!c) {
		if (seq < x->floor_seq)
			return -EEXIST;
		r = collective_new(m, x, seq, room, now_ns, &c);
		if (r < 0)
			return r;
		*ret_new = true;
	} else if (slot >= c->room) {
		if (c->state != COLLECTIVE_OPEN) /* all ranks that there were had come */
			return -EEXIST;
		room = MAX(room, MIN(c->room * 2, (uint32_t)x->places));
		room = MAX(room, slot + 1);
		r = collective_grow(m, &c, room);
		if (r < 0)
			return r;
	}
	*ret = c;
	return 0;
}

void comms_settle(struct comms *m, struct collective *x)
{
	bool all = x->have >= (uint32_t)x->comm->places;
	bool is_open = x->have > 0 && !all;

	if (is_open != x->is_in_open) {
		if (is_open)
			TAILQ_INSERT_TAIL(&m->open, x, open);
		else
			TAILQ_REMOVE(&m->open, x, open);
		x->is_in_open = is_open;
	}
	if (!all || x->inside > 0 || x->state != COLLECTIVE_OPEN)
		return;
	m->ready[m->ready_count++] = x;
	m->ready_calls += x->have;
	x->state = COLLECTIVE_READY;
	x->comm->complete++;
}

void comms_unwait(struct comms *m, struct collective *x)
{
	TAILQ_REMOVE(&m->open, x, open);
	x->is_in_open = false;
}

/* It leaves its place by age. */
static void unlink_age(struct comms *m, struct collective *x)
{
	if (m->unaged == x)
		m->unaged = TAILQ_NEXT(x, age);
	TAILQ_REMOVE(&m->by_age, x, age);
}

void comms_keep(struct comms *m, struct collective *x, int64_t now_ns)
{
	unlink_age(m, x);
	x->received_ns = now_ns;
	TAILQ_INSERT_TAIL(&m->by_age, x, age);
	m->unaged = m->unaged ?: x;
}

struct collective *comms_next_partial(struct comms *m, int64_t before_ns)
{
	struct collective *x;

	while ((x = m->unaged) && x->received_ns < before_ns) {
		m->unaged = TAILQ_NEXT(x, age);
		if (x->state == COLLECTIVE_OPEN && !x->is_counted && x->inside == 0 &&
			x->have >= 2 && x->have == x->comm->member_count &&
			x->have < (uint32_t)x->comm->places)
			return x;
	}
	return NULL;
}

void comms_drop(struct comms *m, struct collective *x)
{
	struct comm *comm = x->comm;

	if (x->state == COLLECTIVE_OPEN)
		m->unmatched += x->have;
	else {
		comm->complete--;
		comm->floor_seq = MAX(comm->floor_seq, x->seq + 1);
	}
	comm->live--;
	m->units -= COLLECTIVE_UNITS + x->room;
	idmap_remove(&m->items, item_id(comm, x->seq));
	unlink_age(m, x);
	if (x->is_in_open)
		TAILQ_REMOVE(&m->open, x, open);
	free(x);
}
