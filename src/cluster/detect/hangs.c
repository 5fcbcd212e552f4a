/* SPDX-License-Identifier: Apache-2.0 */
/* hangs.c - see hangs.h. A rank is waiting if it is inside and has not been seen in a later collective
 * of the communicator; missing if it has neither come nor been seen later: a call that the agent lost
 * is no hang. */
#include "cluster/detect/hangs.h"

#include "base/clock.h"
#include "base/search.h"
#include "blame/comm_join.h"
#include "cluster/detect/calls_core.h"

#define YOUNG_NS    (NS_PER_S / 2)
#define FIRST_TIMES 10 /* as long, where ranks have hardly met yet: */
#define FIRST_CALLS 16 /* of the communicator, or of the rank that is missing */

static bool is_waiting(const struct collective *x, uint32_t slot)
{
	const struct arrival *a = &x->arrivals[slot];

	/* NCCL's calls return at once: of who waits for the GPU behind one it is only not known how long. */
	return a->enter_ns != INT64_MIN && (a->leave_ns == 0 || a->wait_ns == UINT64_MAX) &&
	       x->comm->members[slot].next_seq == x->seq + 1;
}

bool hangs_is_waited_in(const struct collective *x)
{
	return EXISTS(i, x->room, is_waiting(x, i));
}

static bool has_come(const struct collective *x, uint32_t slot)
{
	if (slot == UINT32_MAX)
		return false;
	return (slot < x->room && x->arrivals[slot].enter_ns != INT64_MIN) ||
	       x->comm->members[slot].next_seq > x->seq;
}

bool hangs_is_passed(const struct collective *x)
{
	return !EXISTS(i, x->comm->member_count, !has_come(x, i)) &&
	       (size_t)x->comm->places <= x->comm->member_count;
}

static void add_missing(struct hang_view *h, uint32_t worker, int32_t rank)
{
	if (h->missing < ARRAY_SIZE(h->first_missing)) {
		h->first_missing[h->missing] = worker;
		h->missing_rank[h->missing] = rank;
	}
	h->missing++;
}

/* It waits in a call that may be this one; or it did not come to the one before either, which the
 * others have left: then it was brought together with those of another communicator. */
static bool may_have_come(const struct calls *c, const struct collective *x, uint32_t slot)
{
	const struct member *m = &x->comm->members[slot];

	return c->workers.items[m->worker]->inside_ns != 0 ||
	       (x->seq >= COMM_JOIN_MADE_UP && m->next_seq != x->seq);
}

/* Those that are known first: something can be said of them. */
static void find_missing(const struct calls *c, const struct collective *x, struct hang_view *h)
{
	const struct comm *m = x->comm;
	uint32_t unseen = 0;

	for (uint32_t i = 0; i < m->member_count; i++)
		if (!has_come(x, i) && !may_have_come(c, x, i))
			add_missing(h, m->members[i].worker, m->members[i].rank);
	/* What was brought together by when calls ended may be a part of a communicator. */
	if ((size_t)m->places > m->member_count && x->seq < COMM_JOIN_MADE_UP)
		unseen = (uint32_t)m->places - (uint32_t)m->member_count;
	for (int32_t place = 0;
		unseen > 0 && h->missing < ARRAY_SIZE(h->first_missing) && place < m->places;
		place++)
		if (comm_slot(m, place) == UINT32_MAX) {
			int32_t rank = !comms_is_pair(m) ? place : place ? m->dst : m->src;

			add_missing(h, UINT32_MAX, rank);
			unseen--;
		}
	h->missing += unseen;
}

/* Before the first calls of a communicator, and in a rank's first steps, code is loaded and compiled and connections are
 * made, by each rank in its own time. */
static bool is_beginning(const struct calls *c, const struct comm *m, const struct hang_view *h)
{
	uint32_t who = h->first_missing[0];

	return !m->matched || (who != UINT32_MAX && c->workers.items[who]->made < FIRST_CALLS);
}

/* Who comes a whole step late is late; more is a hang. */
static int64_t hang_after(const struct calls *c, const struct comm *m, const struct hang_view *h)
{
	uint64_t patience = MAX(c->patience_ns, c->step_ns + c->step_ns / 2);

	return (int64_t)MAX(c->s.hang_ns * (is_beginning(c, m, h) ? FIRST_TIMES : 1), patience);
}

/* Whether one that is missing has made other calls since: where calls were brought together by when they ended, and not by
 * numbers of NCCL's, it has come to another one that looks the same. */
static bool goes_on(const struct calls *c, const struct hang_view *h)
{
	for (size_t i = 0; i < MIN((size_t)h->missing, ARRAY_SIZE(h->first_missing)); i++) {
		const struct worker *w = h->first_missing[i] == UINT32_MAX
						 ? NULL
						 : c->workers.items[h->first_missing[i]];

		if (w && w->enter_ns + clocks_offset(c->clocks, w->node, w->enter_ns) >
				 h->since_ns + (int64_t)c->s.hang_ns)
			return true;
	}
	return false;
}

static bool hang_of(struct calls *c, const struct collective *x, struct hang_view *ret)
{
	const struct comm *m = x->comm;
	struct hang_view h = {.comm = m->comm,
		.seq = x->seq,
		.op = x->op,
		.nranks = m->nranks,
		.since_ns = INT64_MAX};

	for (uint32_t i = 0; i < x->room; i++) {
		int64_t enter = x->arrivals[i].enter_ns;

		if (!is_waiting(x, i))
			continue;
		h.waiting++;
		enter += clocks_offset(c->clocks, m->members[i].node, enter);
		h.since_ns = MIN(h.since_ns, enter);
	}
	if (h.waiting == 0 || c->now_ns - h.since_ns <= (int64_t)c->s.hang_ns)
		return false;
	find_missing(c, x, &h);
	if (h.missing == 0 || c->now_ns - h.since_ns <= hang_after(c, m, &h) ||
		(x->seq >= COMM_JOIN_MADE_UP && goes_on(c, &h)))
		return false;
	*ret = h;
	return true;
}

/* The rest of a young one is on its way. */
static bool is_old(const struct calls *c, const struct collective *x)
{
	return x->first_ns > c->hang_over_ns &&
	       c->now_ns - x->first_ns > (int64_t)MIN(c->s.hang_ns, YOUNG_NS);
}

/* Of those that are named the ones that are not themselves waiting come first; how many these are. */
static size_t put_idle_first(const struct calls *c, struct hang_view *h)
{
	size_t n = MIN((size_t)h->missing, ARRAY_SIZE(h->first_missing)), idle = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t worker = h->first_missing[i];
		int32_t rank = h->missing_rank[i];

		if (!(worker == UINT32_MAX || c->workers.items[worker]->waiting != c->hangs.round))
			continue;
		for (size_t j = i; j > idle; j--) {
			h->first_missing[j] = h->first_missing[j - 1];
			h->missing_rank[j] = h->missing_rank[j - 1];
		}
		h->first_missing[idle] = worker;
		h->missing_rank[idle++] = rank;
	}
	return idle;
}

static int compare_since(const void *a, const void *b)
{
	const struct hang_view *x = a, *y = b;

	if (x->since_ns != y->since_ns)
		return (x->since_ns > y->since_ns) - (x->since_ns < y->since_ns);
	return x->comm != y->comm ? (x->comm > y->comm) - (x->comm < y->comm)
				  : (x->seq > y->seq) - (x->seq < y->seq);
}

void hangs_find(struct calls *c)
{
	struct hangs *h = &c->hangs;
	struct collective *x, *next;
	size_t first = 0;

	h->round++;
	h->count = h->looked = 0;
	for (x = TAILQ_FIRST(&c->comms.open); x; x = next) {
		bool any = false;

		next = TAILQ_NEXT(x, open);
		h->looked++;
		if (!is_old(c, x))
			continue;
		/* Who waits anywhere, however short a time. */
		for (uint32_t i = 0; i < x->room; i++)
			if (is_waiting(x, i)) {
				any = true;
				c->workers.items[x->comm->members[i].worker]->waiting =
					c->hangs.round;
			}
		/* Who has gone on does not come back to wait: it is not looked at again before another rank comes. */
		if (!any)
			comms_unwait(&c->comms, x);
	}
	TAILQ_FOREACH (x, &c->comms.open, open)
		if (is_old(c, x) && h->count < HANGS_MAX && hang_of(c, x, &h->items[h->count]))
			h->count++;
	SORT(h->items, h->count, compare_since);
	for (size_t i = 0; i < h->count; i++)
		if (put_idle_first(c, &h->items[i]) > 0) {
			struct hang_view root = h->items[i];

			root.is_root = true;
			for (size_t j = i; j > first; j--)
				h->items[j] = h->items[j - 1];
			h->items[first++] = root;
		}
}
