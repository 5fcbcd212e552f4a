/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - see calls.h. Batches come in here: what is refused has made nothing and changed nothing;
 * then each call goes to its place in its collective (comms.c). With each tick what is complete is
 * counted (lags.c), what is old leaves, and ranks that do not come are looked for (hangs.c). */
#include "cluster/detect/calls.h"

#include "base/clock.h"
#include "cluster/detect/calls_core.h"

#define READY_MAX    (128u << 10) /* calls that are complete wait for the next tick, but no more */
#define SWEEP_NS     INT64_C(5000000000)
#define SWEEP_MAX    1024
#define IDLE_WINDOWS 10 /* a communicator or process without calls for so long is forgotten */
#define HANG_KEPT_NS INT64_C(3600000000000)
#define STEP_MAX_NS  UINT64_C(60000000000) /* longer ones are treated as if they were that long */
#define WINDOW_STEPS 100
#define KEPT_NS      INT64_C(3600000000000) /* what is older than the window stays for so long, */
#define KEPT_PART    16                     /* as this part of the room is enough */

const struct calls_settings calls_defaults = {
	.window_ns = UINT64_C(60000000000),
	.calls_max = 4 << 20,
	.comms_max = 16384,
	.workers_max = 16384,
	.hang_ns = UINT64_C(3000000000),
	.future_ns = UINT64_C(60000000000),
};

int calls_new(const struct calls_settings *s, struct calls **ret)
{
	struct calls *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->s = *s;
	c->lags = calloc(1, sizeof(*c->lags));
	r = c->lags ? clocks_new(s->workers_max, NS_PER_S, &c->clocks) : -ENOMEM;
	if (r < 0) {
		free(c->lags);
		free(c);
		return r;
	}
	senders_init(&c->senders, s->workers_max);
	workers_init(&c->workers, s->workers_max);
	comms_init(&c->comms, s->comms_max, s->calls_max);
	joins_init(&c->joins);
	*ret = c;
	return 0;
}

void calls_free(struct calls *c)
{
	joins_done(&c->joins);
	comms_done(&c->comms, &c->workers);
	workers_done(&c->workers);
	senders_done(&c->senders);
	clocks_free(c->clocks);
	lags_free(c->lags);
	free(c);
}

static bool call_is_sound(const struct calls *c, const struct push_call *x, int64_t received_ns)
{
	int64_t latest = received_ns + (int64_t)c->s.future_ns;
	bool is_pair = x->op == NCCL_SEND || x->op == NCCL_RECV;

	if ((x->comm == 0 && x->seq <= INT64_MAX) || x->seq == UINT64_C(1) << 63 ||
		((x->op < NCCL_ALL_REDUCE || x->op > NCCL_RECV) &&
			(x->op < NCCL_REDUCE || x->op > NCCL_SCATTER)))
		return false;
	if (x->nranks < 1 || (uint32_t)x->nranks > c->s.workers_max || x->rank < 0 ||
		x->rank >= x->nranks || x->world_rank < -1)
		return false;
	if (is_pair && (x->peer < 0 || x->peer >= x->nranks))
		return false;
	if (x->enter_ns < 0 || x->enter_ns > latest || x->leave_ns > latest)
		return false;
	if (x->leave_ns == 0)
		return true;
	return x->leave_ns >= x->enter_ns &&
	       (x->wait_ns == UINT64_MAX || x->wait_ns <= (uint64_t)(x->leave_ns - x->enter_ns));
}

void calls_set_step(struct calls *c, uint64_t step_ns)
{
	c->step_ns = MIN(step_ns, STEP_MAX_NS);
}

void calls_set_patience(struct calls *c, uint64_t ns)
{
	c->patience_ns = MIN(ns, STEP_MAX_NS + STEP_MAX_NS / 2);
}

int64_t calls_lasting(const struct calls *c, int64_t least_ns, unsigned steps)
{
	return MAX(least_ns, (int64_t)(c->step_ns * steps));
}

/* The oldest goes, counted if complete; false: there is none. */
static bool evict(struct calls *c)
{
	struct collective *oldest = TAILQ_FIRST(&c->comms.by_age);

	if (!oldest)
		return false;
	if (oldest->state == COLLECTIVE_READY)
		(void)lags_fold(c);
	c->comms.evicted += oldest->have;
	comms_drop(&c->comms, oldest);
	return true;
}

static int find_place(struct calls *c, struct comm *m, uint64_t seq, uint32_t slot,
	int64_t received_ns, struct collective **ret, bool *ret_new)
{
	int r;

	do {
		r = comms_collective(&c->comms, m, seq, slot, received_ns, ret, ret_new);
	} while (r == -ENOSPC && evict(c));
	return r;
}

/* 1: taken; 0: it was there. What is inside is replaced by the same call when it has left. */
static int put(struct calls *c, struct collective *x, const struct push_call *call, uint32_t slot)
{
	struct arrival *a = &x->arrivals[slot];
	struct member *m = &x->comm->members[slot];
	bool is_first = a->enter_ns == INT64_MIN;

	if (!is_first && (a->leave_ns != 0 || call->leave_ns == 0))
		return 0;
	if (is_first && x->state != COLLECTIVE_OPEN)
		return -EEXIST;
	if (is_first) {
		if (x->have > 0)
			mismatches_check(&c->mismatches, x, call, m->worker,
				call->enter_ns + clocks_offset(c->clocks, m->node, call->enter_ns));
		x->have++;
	}
	x->inside += (call->leave_ns == 0) - (!is_first);
	*a = (struct arrival){call->enter_ns, call->leave_ns, call->wait_ns};
	m->next_seq = MAX(m->next_seq, call->seq + 1);
	comms_settle(&c->comms, x);
	return 1;
}

/* 1: taken; 0: it was there before; -ENOMEM; otherwise it is refused. */
static int place(
	struct calls *c, struct worker *w, const struct push_call *call, int64_t received_ns)
{
	struct collective *x;
	struct comm *m;
	uint32_t slot;
	bool is_new;
	int r = comms_get(&c->comms, call, &m);

	if (r < 0)
		return r;
	m->last_ns = received_ns;
	comm_vote(m, call->nranks);
	if (!comms_is_pair(m) && call->rank >= m->places)
		return -EINVAL;
	r = comm_member(&c->comms, m, call, &c->workers, w, &slot);
	r = r ?: find_place(c, m, call->seq, slot, received_ns, &x, &is_new);
	if (r < 0)
		return r;
	if (is_new) {
		x->op = call->op;
		x->bytes = call->bytes;
		x->datatype = call->datatype;
		x->nranks = call->nranks;
		x->first_worker = w->id;
	}
	w->made++;
	w->enter_ns = MAX(w->enter_ns, call->enter_ns);
	if (call->world_rank >= 0)
		w->world_rank = call->world_rank;
	return put(c, x, call, slot);
}

/* Likewise; one that all ranks do not know the number of is held until it is known. */
static int take(
	struct calls *c, struct sender *from, const struct push_call *call, int64_t received_ns)
{
	struct push_call named = *call;
	struct worker *w;
	int r;

	if (!call_is_sound(c, call, received_ns))
		return -EINVAL;
	r = workers_get(&c->workers, from->index, call->pid, &w);
	if (r < 0)
		return r;
	from->workers += r > 0;
	w->last_ns = received_ns;
	if (call->enter_ns >= w->inside_ns)
		w->inside_ns = 0;
	if (push_call_is_numbered(call) || joins_name(&c->joins, w->id, &named)) {
		r = place(c, w, &named, received_ns);
		if (r < 0 && call->leave_ns == 0)
			w->inside_ns = MAX(w->inside_ns, call->enter_ns);
		return r;
	}
	if (call->leave_ns == 0) {
		w->inside_ns = MAX(w->inside_ns, call->enter_ns);
		return 0; /* it comes again when it has left */
	}
	w->enter_ns = MAX(w->enter_ns, call->enter_ns);
	if (call->world_rank >= 0)
		w->world_rank = call->world_rank;
	r = joins_hold(&c->joins, w->id, call, received_ns);
	return r < 0 ? r : 1;
}

/* The node of @b, with its clock. */
static int find_sender(struct calls *c, const struct push_calls *b, struct sender **ret)
{
	struct sender *from;
	bool is_new;
	int r = senders_get(&c->senders, b->who.node, &from, &is_new);

	if (r < 0)
		return r;
	if (is_new) {
		r = clocks_add(c->clocks, from->index, from->key);
		if (r < 0) {
			senders_remove(&c->senders, from);
			return r;
		}
	}
	*ret = from;
	return 0;
}

static int refuse_all(struct calls *c, const struct push_calls *b, struct calls_taken *ret)
{
	c->refused += b->count;
	*ret = (struct calls_taken){.refused = b->count};
	return 0;
}

int calls_take(
	struct calls *c, const struct push_calls *b, int64_t received_ns, struct calls_taken *ret)
{
	struct calls_taken n = {0};
	struct sender *from;
	int r;

	if (b->who.node[0] == '\0' || received_ns < 0)
		return refuse_all(c, b, ret);
	c->now_ns = MAX(c->now_ns, received_ns);
	r = find_sender(c, b, &from);
	if (r == -ENOBUFS)
		return refuse_all(c, b, ret);
	if (r < 0)
		return r;
	if (sender_has_batch(from, b->who.boot, b->batch)) {
		c->duplicate += b->count;
		*ret = (struct calls_taken){.duplicate = b->count};
		return 0;
	}
	from->last_ns = received_ns;
	if (b->sent_ns > 0 && b->sent_ns <= received_ns + (int64_t)c->s.future_ns)
		clocks_pushed(c->clocks, from->index, b->sent_ns, received_ns);
	for (size_t i = 0; i < b->count; i++) {
		r = take(c, from, &b->items[i], received_ns);
		if (r == -ENOMEM)
			return r; /* it may be sent again: what was taken is then there */
		n.taken += r > 0;
		n.duplicate += r == 0;
		n.refused += r < 0;
	}
	sender_add_batch(from, b->who.boot, b->batch);
	c->taken += n.taken;
	c->duplicate += n.duplicate;
	c->refused += n.refused;
	*ret = n;
	return c->comms.ready_calls > READY_MAX ? lags_fold(c) : 0;
}

int64_t calls_window(const struct calls *c)
{
	return calls_lasting(c, (int64_t)c->s.window_ns, WINDOW_STEPS);
}

/* Jobs of long steps make few calls: while they go on these stay beyond the window, so that their steps can
 * be found. */
static bool is_old(const struct calls *c, const struct collective *x)
{
	int64_t age = c->now_ns - x->received_ns, window = calls_window(c);

	return age > window && (age > KEPT_NS || c->comms.units > c->s.calls_max / KEPT_PART ||
				       c->now_ns - x->comm->last_ns > window);
}

/* No more than SWEEP_MAX at a time: what is left has time until the next sweep. */
static void sweep_comms(struct calls *c, struct idmap *map, int64_t idle_ns)
{
	struct comm *idle[SWEEP_MAX], *m;
	size_t cursor = 0, n = 0;

	while (n < SWEEP_MAX && (m = idmap_next(map, &cursor, NULL)))
		if (m->live == 0 && c->now_ns - m->last_ns > idle_ns)
			idle[n++] = m;
	for (size_t i = 0; i < n; i++)
		comms_remove(&c->comms, idle[i], &c->workers);
}

/* What can be brought together with calls of other ranks goes to its place. */
static void join_late(struct calls *c)
{
	_cleanup_free_ struct held_call *named = NULL;
	size_t count;

	if (!joins_is_due(&c->joins, c->now_ns) || calls_late(c, &named, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		struct worker *w = c->workers.items[named[i].b.worker];

		if (w)
			(void)place(c, w, &named[i].b.c, named[i].received_ns);
	}
}

void calls_tick(struct calls *c, int64_t now_ns)
{
	struct collective *x;

	c->now_ns = MAX(c->now_ns, now_ns);
	join_late(c);
	(void)lags_fold(c); /* without memory some lags are not counted; the calls stay for blame */
	/* What is older than the window leaves. Ranks that wait in it keep a collective: a hang is longer than
	 * any window. It is given up as a whole: those who wait for who waited in it are not to be blamed next. */
	while ((x = TAILQ_FIRST(&c->comms.by_age)) && is_old(c, x)) {
		bool is_hang = x->is_in_open && hangs_is_waited_in(x);

		if (is_hang && c->now_ns - x->first_ns >= HANG_KEPT_NS)
			c->hang_over_ns = MAX(c->hang_over_ns, x->first_ns + calls_window(c));
		if (is_hang && x->first_ns > c->hang_over_ns)
			comms_keep(&c->comms, x, c->now_ns);
		else
			comms_drop(&c->comms, x);
	}
	if (c->now_ns - c->swept_ns > SWEEP_NS) {
		int64_t idle_ns = calls_window(c) * IDLE_WINDOWS;
		size_t removed = 0;

		/* What has not been heard of for long is forgotten, from communicators down to nodes. */
		sweep_comms(c, &c->comms.comms, idle_ns);
		sweep_comms(c, &c->comms.pairs, idle_ns);
		for (size_t i = 0; i < c->workers.count; i++) {
			struct worker *w = c->workers.items[i];

			if (!w || w->members > 0 || c->now_ns - w->last_ns <= idle_ns)
				continue;
			c->senders.items[w->node]->workers--;
			joins_forget(&c->joins, w->id);
			workers_remove(&c->workers, w);
		}
		for (size_t i = 0; i < c->senders.count && removed < SWEEP_MAX; i++) {
			struct sender *s = c->senders.items[i];

			if (!s || s->workers > 0 || c->now_ns - s->last_ns <= idle_ns)
				continue;
			clocks_forget(c->clocks, s->index);
			senders_remove(&c->senders, s);
			removed++;
		}
		c->swept_ns = c->now_ns;
	}
	hangs_find(c);
}

bool calls_is_slow(const struct calls *c)
{
	return c->now_ns < c->lags->slow_until_ns;
}

bool calls_is_late(const struct calls *c)
{
	return c->now_ns < c->lags->late_until_ns;
}

int64_t calls_sudden_ns(const struct calls *c)
{
	return c->lags->sudden_ns;
}

bool calls_is_slower(const struct calls *c)
{
	return c->now_ns < c->slower_until_ns;
}

uint64_t calls_settled(const struct calls *c)
{
	return c->lags->settled;
}
