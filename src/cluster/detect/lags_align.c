/* SPDX-License-Identifier: Apache-2.0 */
/* lags_align.c - the end of a collective is one moment for all its nodes: what the times at which they left say
 * about their clocks. */

#include "base/array.h"
#include "base/macros.h"
#include "cluster/detect/calls_core.h"
#include "cluster/detect/lags.h"
#include "stat/robust.h"
#include "wire/ids.h"

#define AT_ONCE_NS  UINT64_C(100000) /* who left so far apart left together */
#define COME_NS     INT64_C(1000000) /* ranks that came within this did not come one after the other */
#define SET_NS      UINT64_C(1000000) /* a clock that is this far off was set */
#define SET_ERRORS  10                /* likewise by so many times its error */
#define SET_SPREADS 6                 /* and by so many times what ends are apart */

static int room_for(const struct calls *c, const struct collective *x)
{
	struct lags *l = c->lags;
	size_t had = l->node_room, nodes = MAX(c->senders.count, (size_t)1);
	int r = ARRAY_RESERVE(l->nodes, l->node_room, nodes, SIZE_MAX / 2);

	if (r < 0)
		return r;
	for (size_t i = had; i < l->node_room; i++)
		l->nodes[i] = (struct lag_node){0};
	r = ARRAY_RESERVE(l->touched, l->touched_room, nodes, SIZE_MAX / 2);
	r = r ?: ARRAY_RESERVE(l->arrivals, l->arrival_room, (size_t)x->room, SIZE_MAX / 2);
	if (r < 0)
		return r;
	return ARRAY_RESERVE(l->sorted, l->sorted_room, MAX((size_t)x->room, nodes), SIZE_MAX / 2);
}

static void add_silent(struct lag_node *n, const struct arrival *a)
{
	if (!n->silent++) {
		n->first_enter_ns = n->last_enter_ns = a->enter_ns;
		n->first_leave_ns = n->last_leave_ns = a->leave_ns;
	}
	n->first_enter_ns = MIN(n->first_enter_ns, a->enter_ns);
	n->last_enter_ns = MAX(n->last_enter_ns, a->enter_ns);
	n->first_leave_ns = MIN(n->first_leave_ns, a->leave_ns);
	n->last_leave_ns = MAX(n->last_leave_ns, a->leave_ns);
}

/* Ranks of a node that came one after the other and left together were let go by the collective's end. */
static bool left_together(const struct lag_node *n)
{
	return n->silent > 1 && n->first_leave_ns > n->last_enter_ns &&
	       n->last_enter_ns - n->first_enter_ns >= COME_NS &&
	       n->last_leave_ns - n->first_leave_ns <= (int64_t)AT_ONCE_NS;
}

/* The nodes that take part, each with its first rank to leave. */
static void gather_nodes(const struct calls *c, const struct collective *x)
{
	bool all_wait = (x->op == NCCL_ALL_REDUCE || x->op == NCCL_ALL_GATHER ||
				x->op == NCCL_REDUCE_SCATTER || x->op == NCCL_ALL_TO_ALL) &&
			!comms_is_pair(x->comm);
	struct lags *l = c->lags;

	l->round++;
	l->touched_count = 0;
	for (uint32_t i = 0; i < x->room; i++) {
		const struct member *m = &x->comm->members[i];
		const struct arrival *a = &x->arrivals[i];
		struct lag_node *n;

		if (a->enter_ns == INT64_MIN) /* there may be no such member yet */
			continue;
		n = &l->nodes[m->node];
		if (n->round != l->round) {
			*n = (struct lag_node){.round = l->round,
				.rank = m->rank,
				.holds = true,
				.error_ns = clocks_error(c->clocks, m->node)};
			l->touched[l->touched_count++] = m->node;
		}
		n->rank = MIN(n->rank, m->rank);
		n->holds &= clocks_holds(c->clocks, m->node, a->enter_ns, x->first_ns);
		if (all_wait && a->wait_ns == UINT64_MAX && a->leave_ns > 0)
			add_silent(n, a);
		if (!all_wait || a->leave_ns == 0 ||
			!clocks_is_end(a->enter_ns, a->leave_ns, a->wait_ns))
			continue;
		n->left_ns = n->is_left ? MIN(n->left_ns, a->leave_ns) : a->leave_ns;
		n->is_left = true;
	}
	for (size_t i = 0; i < l->touched_count; i++) {
		struct lag_node *n = &l->nodes[l->touched[i]];

		if (n->is_left || !left_together(n))
			continue;
		n->left_ns = n->first_leave_ns;
		n->is_left = true;
	}
}

/* Of those that left, the node of the lowest rank. UINT32_MAX: nobody did. */
static uint32_t hub_of(const struct lags *l)
{
	uint32_t hub = UINT32_MAX;

	for (size_t i = 0; i < l->touched_count; i++) {
		const struct lag_node *n = &l->nodes[l->touched[i]];

		if (n->is_left && (hub == UINT32_MAX || n->rank < l->nodes[hub].rank))
			hub = l->touched[i];
	}
	return hub;
}

/* Nodes that left far from the middle of all. False: a clock was set since, and nothing tells by how much. */
static bool find_shifts(const struct calls *c)
{
	struct lags *l = c->lags;
	int64_t *left = (int64_t *)l->sorted, middle;
	bool all_hold = true, all_left = true;
	size_t n = 0;

	for (size_t i = 0; i < l->touched_count; i++) {
		struct lag_node *node = &l->nodes[l->touched[i]];

		all_hold &= node->holds;
		all_left &= node->is_left;
		if (!node->is_left)
			continue;
		node->left_ns += clocks_offset(c->clocks, l->touched[i], node->left_ns);
		left[n++] = node->left_ns;
	}
	if (n < 2)
		return all_hold || l->touched_count < 2;
	middle = select_kth(left, n, (n - 1) / 2, l->round);
	for (size_t i = 0; i < l->touched_count; i++) {
		struct lag_node *node = &l->nodes[l->touched[i]];
		int64_t off = middle - node->left_ns;
		uint64_t far = (uint64_t)llabs(off);

		if (!node->is_left)
			continue;
		if (far > SET_NS && far / SET_ERRORS > node->error_ns &&
			far / SET_SPREADS > clocks_spread(c->clocks, l->touched[i]))
			node->shift_ns = off;
		node->error_ns = capped_sum(node->error_ns, far);
	}
	return all_hold || all_left;
}

int64_t lags_shift(const struct calls *c, uint32_t node, int64_t at_ns)
{
	return clocks_offset(c->clocks, node, at_ns) + c->lags->nodes[node].shift_ns;
}

int lags_align(const struct calls *c, const struct collective *x)
{
	struct lags *l = c->lags;
	int r = room_for(c, x);

	if (r < 0)
		return r;
	gather_nodes(c, x);
	l->is_comparable = find_shifts(c);
	for (uint32_t i = 0; i < x->room; i++) {
		int64_t enter = x->arrivals[i].enter_ns;

		l->arrivals[i] = INT64_MIN;
		if (enter != INT64_MIN)
			l->arrivals[i] = enter + lags_shift(c, x->comm->members[i].node, enter);
	}
	return 0;
}

int lags_teach(struct calls *c, const struct collective *x)
{
	struct lags *l = c->lags;
	int r = room_for(c, x);
	uint32_t hub;

	if (r < 0)
		return r;
	gather_nodes(c, x);
	hub = hub_of(l);
	for (size_t i = 0; i < l->touched_count; i++) {
		const struct lag_node *n = &l->nodes[l->touched[i]];

		if (!n->is_left || l->touched[i] == hub)
			continue;
		r = clocks_left(c->clocks, hub, l->nodes[hub].left_ns, l->touched[i], n->left_ns);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}
