/* SPDX-License-Identifier: Apache-2.0 */
/* clocks.c - see clocks.h. Which nodes are tied and by which pairs is found anew with each solve: there
 * are about as many pairs as nodes, and a few rounds over them are enough. */
#include "blame/clocks.h"

#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "base/idmap.h"
#include "blame/clock_pair.h"

#define HALF_NS        INT64_C(30000000000) /* bounds of pushes are kept for one to two of these */
#define BLOCKED_NS     UINT64_C(100000)     /* who waited this long was there when it ended */
#define AT_ONCE_NS     UINT64_C(100000) /* likewise who did nothing for longer than this in between */
#define PUSH_ERROR_NS  UINT64_C(5000000) /* at least, of a node that only its pushes place */
#define PAIRS_PER_NODE 4
#define AGE_ERROR      20e-6 /* two clocks may part by so much more than their line says */
#define PUSHES_LEAST   4     /* before one can be odd */
#define PUSHES_ODD     3     /* in a row, over PUSHES_ODD_NS: then the clock was set */
#define PUSHES_ODD_NS  INT64_C(1000000000)
#define PUSH_ODD_NS                                                                                \
	INT64_C(2000000) /* that far out of bounds, and as far as these are wide, is odd */

struct clock {
	bool is_used;
	uint64_t key;
	int64_t half_ns;                      /* the present half began */
	int64_t least_ns[2], most_ns[2];      /* received less sent: present half, the one before */
	uint32_t pushes;                      /* in these bounds, as far as it matters */
	uint32_t odd;                         /* that were far out of them, in a row */
	int64_t odd_least_ns, odd_most_ns;    /* of these */
	int64_t odd_sent_ns, odd_received_ns; /* the first */
	uint64_t odd_told;                    /* of clocks.told, at the first */
	int64_t heard_ns;                     /* its newest push, its own clock */
	int64_t newest_ns;                    /* of its own times in pairs */
	/* From then on offsets hold, by its own clock and by the cluster's: before, it or one that it is
	 * compared with had another clock. INT64_MIN: always */
	int64_t set_ns, set_received_ns;
	/* solved */
	uint32_t root;
	bool is_tied;
	int64_t rel_ns; /* to the root's clock, at newest_ns */
	double drift;
	uint64_t distance; /* error along the way to the root */
	uint64_t met;
	int64_t offset_ns;
	uint64_t error_ns;
	uint64_t spread_ns; /* of the ends of its collectives: the widest of its pairs */
};

struct clocks {
	struct clock *nodes;
	uint32_t count, max;
	size_t room;
	struct idmap pairs;
	int64_t point_ns;
	uint64_t steps;
	uint64_t told;       /* pushes */
	int64_t received_ns; /* the last of them */
};

int clocks_new(uint32_t nodes_max, int64_t point_ns, struct clocks **ret)
{
	struct clocks *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->max = nodes_max;
	c->point_ns = point_ns;
	c->pairs = IDMAP_INIT((size_t)nodes_max * PAIRS_PER_NODE);
	*ret = c;
	return 0;
}

void clocks_free(struct clocks *c)
{
	struct clock_pair *p;
	size_t cursor = 0;

	while ((p = idmap_next(&c->pairs, &cursor, NULL)))
		free(p);
	idmap_done(&c->pairs);
	free(c->nodes);
	free(c);
}

static void bounds_reset(struct clock *n)
{
	for (int i = 0; i < 2; i++) {
		n->least_ns[i] = INT64_MAX;
		n->most_ns[i] = INT64_MIN;
	}
	n->pushes = n->odd = 0;
}

static int64_t least(const struct clock *n)
{
	return MIN(n->least_ns[0], n->least_ns[1]);
}

static int64_t most(const struct clock *n)
{
	return MAX(n->most_ns[0], n->most_ns[1]);
}

int clocks_add(struct clocks *c, uint32_t node, uint64_t key)
{
	int r = ARRAY_RESERVE(c->nodes, c->room, (size_t)node + 1, c->max);

	if (r < 0)
		return r;
	while (c->count <= node)
		c->nodes[c->count++] = (struct clock){0};
	c->nodes[node] = (struct clock){.is_used = true,
		.key = key,
		.root = node,
		.set_ns = INT64_MIN,
		.set_received_ns = INT64_MIN,
		.error_ns = UINT64_MAX};
	bounds_reset(&c->nodes[node]);
	return 0;
}

/* The pairs of @node that learned nothing since @told: how many. */
static uint64_t drop_pairs(struct clocks *c, uint32_t node, uint64_t told)
{
	struct clock_pair *p;
	uint64_t count = 0;
	size_t cursor = 0;

	while ((p = idmap_next(&c->pairs, &cursor, NULL)))
		if ((p->hub == node || p->node == node) && p->told < told) {
			free(idmap_take(&c->pairs, &cursor));
			count++;
		}
	return count;
}

void clocks_forget(struct clocks *c, uint32_t node)
{
	c->nodes[node].is_used = false;
	drop_pairs(c, node, UINT64_MAX);
}

static bool is_odd(const struct clock *n, int64_t way)
{
	int64_t limit;

	if (n->pushes < PUSHES_LEAST)
		return false;
	limit = MAX(PUSH_ODD_NS, most(n) - least(n));
	return way < least(n) - limit || way > most(n) + limit;
}

/* A push of @node is far from what those before it took. Several such in a row that agree are a clock that was
 * set, or a way that is another now: lines that nothing has confirmed meanwhile are not believed. True: not
 * several yet. */
static bool put_aside(struct clocks *c, uint32_t node, int64_t sent_ns, int64_t received_ns)
{
	struct clock *n = &c->nodes[node];
	int64_t way = received_ns - sent_ns, limit = MAX(PUSH_ODD_NS, most(n) - least(n));

	if (n->odd && MAX(n->odd_most_ns, way) - MIN(n->odd_least_ns, way) > limit)
		n->odd = 0;
	if (!n->odd++) {
		n->odd_least_ns = n->odd_most_ns = way;
		n->odd_sent_ns = sent_ns;
		n->odd_received_ns = received_ns;
		n->odd_told = c->told;
	}
	n->odd_least_ns = MIN(n->odd_least_ns, way);
	n->odd_most_ns = MAX(n->odd_most_ns, way);
	if (n->odd < PUSHES_ODD || received_ns - n->odd_received_ns < PUSHES_ODD_NS)
		return true;
	c->steps += drop_pairs(c, node, n->odd_told);
	n->set_ns = n->odd_sent_ns;
	n->set_received_ns = n->odd_received_ns;
	bounds_reset(n);
	n->least_ns[0] = n->odd_least_ns;
	n->most_ns[0] = n->odd_most_ns;
	n->pushes = PUSHES_ODD;
	return false;
}

void clocks_pushed(struct clocks *c, uint32_t node, int64_t sent_ns, int64_t received_ns)
{
	struct clock *n = &c->nodes[node];
	int64_t way = received_ns - sent_ns;

	c->told++;
	c->received_ns = received_ns;
	n->heard_ns = sent_ns;
	if (is_odd(n, way) && put_aside(c, node, sent_ns, received_ns))
		return;
	n->odd = 0;
	n->pushes = MIN(n->pushes + 1, (uint32_t)PUSHES_LEAST);
	if (received_ns - n->half_ns >= HALF_NS) {
		n->least_ns[1] = n->least_ns[0];
		n->most_ns[1] = n->most_ns[0];
		n->least_ns[0] = INT64_MAX;
		n->most_ns[0] = INT64_MIN;
		n->half_ns = received_ns;
	}
	n->least_ns[0] = MIN(n->least_ns[0], way);
	n->most_ns[0] = MAX(n->most_ns[0], way);
}

static struct clock_pair *pair_get(struct clocks *c, uint32_t hub, uint32_t node, int *ret_error)
{
	uint64_t id = (uint64_t)hub << 32 | node;
	struct clock_pair *p = idmap_get(&c->pairs, id);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	*ret_error = -ENOMEM;
	if (!p)
		return NULL;
	*p = CLOCK_PAIR_INIT(hub, node, c->point_ns);
	*ret_error = idmap_put(&c->pairs, id, p);
	if (*ret_error < 0) {
		free(p);
		return NULL;
	}
	return p;
}

int clocks_left(struct clocks *c, uint32_t hub, int64_t hub_ns, uint32_t node, int64_t node_ns)
{
	struct clock_pair *p;
	int r = 0;

	p = pair_get(c, hub, node, &r);
	if (!p)
		return r;
	c->nodes[hub].newest_ns = MAX(c->nodes[hub].newest_ns, hub_ns);
	c->nodes[node].newest_ns = MAX(c->nodes[node].newest_ns, node_ns);
	p->told = c->told;
	p->met++;
	if (p->odd_count == 0)
		p->odd_received_ns = c->received_ns;
	if (clock_pair_add(p, (struct clock_moment){hub_ns, hub_ns - node_ns})) {
		c->steps++;
		bounds_reset(&c->nodes[hub]); /* which of them was set is not known */
		bounds_reset(&c->nodes[node]);
		c->nodes[hub].newest_ns = hub_ns;
		c->nodes[node].newest_ns = node_ns;
		c->nodes[hub].set_ns = p->set.at_ns;
		c->nodes[node].set_ns = p->set.at_ns - p->set.apart_ns;
		c->nodes[hub].set_received_ns = c->nodes[node].set_received_ns = p->odd_received_ns;
	}
	return 0;
}

int clocks_sent(struct clocks *c, uint32_t from, int64_t sent_ns, uint32_t to, int64_t received_ns)
{
	int r = 0;
	struct clock_pair *p = pair_get(c, MIN(from, to), MAX(from, to), &r);

	if (!p)
		return r;
	clock_pair_sent(p, from < to, sent_ns, received_ns);
	return 0;
}

bool clocks_is_end(int64_t enter_ns, int64_t leave_ns, uint64_t wait_ns)
{
	return wait_ns != UINT64_MAX && leave_ns >= enter_ns &&
	       (wait_ns >= BLOCKED_NS ||
		       (uint64_t)leave_ns - (uint64_t)enter_ns - wait_ns <= AT_ONCE_NS);
}

static bool root_lower(const struct clocks *c, uint32_t a, uint32_t b)
{
	uint64_t x = c->nodes[a].key, y = c->nodes[b].key;

	return x != y ? x < y : a < b;
}

/* Everybody learns the lowest root that it is tied to. */
static void find_roots(struct clocks *c)
{
	struct clock_pair *p;
	bool changed = true;

	while (changed) {
		size_t cursor = 0;

		changed = false;
		while ((p = idmap_next(&c->pairs, &cursor, NULL))) {
			struct clock *a = &c->nodes[p->hub], *b = &c->nodes[p->node];

			if (!p->is_fitted || a->root == b->root)
				continue;
			if (root_lower(c, b->root, a->root))
				a->root = b->root;
			else
				b->root = a->root;
			changed = true;
		}
	}
}

/* The way from the root with the smallest error; @sign 1: from the hub to the node. A line that nothing
 * confirms grows worse, so that a way through a pair that still meets is better. */
static bool relax(const struct clocks *c, struct clock *from, struct clock *to,
	const struct clock_pair *p, int sign)
{
	const struct clock *hub = &c->nodes[p->hub];
	int64_t age_ns = MAX(hub->newest_ns - p->line.at_ns, INT64_C(0));
	int64_t unconfirmed_ns = MAX(hub->heard_ns - p->line.at_ns, age_ns);
	uint64_t error = p->error_ns + (uint64_t)(AGE_ERROR * (double)unconfirmed_ns);

	if (from->distance == UINT64_MAX || from->distance + error >= to->distance)
		return false;
	to->distance = from->distance + error;
	to->rel_ns =
		from->rel_ns + sign * (p->line.apart_ns + (int64_t)(p->slope * (double)age_ns));
	to->drift = from->drift + sign * p->slope;
	to->met = MIN(from->met, p->met);
	return true;
}

static void find_distances(struct clocks *c)
{
	struct clock_pair *p;
	bool changed = true;

	for (uint32_t i = 0; i < c->count; i++) {
		struct clock *n = &c->nodes[i];

		n->distance = n->root == i ? 0 : UINT64_MAX;
		n->rel_ns = 0;
		n->drift = 0;
		n->met = UINT64_MAX;
	}
	while (changed) {
		size_t cursor = 0;

		changed = false;
		while ((p = idmap_next(&c->pairs, &cursor, NULL))) {
			struct clock *hub = &c->nodes[p->hub], *node = &c->nodes[p->node];

			if (!p->is_fitted)
				continue;
			changed |= relax(c, hub, node, p, 1);
			changed |= relax(c, node, hub, p, -1);
		}
	}
}

/* The root's distance from the cluster's clock, kept in offset_ns of the root: the least bound of all
 * that are tied to it. */
static void find_offsets(struct clocks *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (c->nodes[i].root == i)
			c->nodes[i].offset_ns = INT64_MAX;
	for (uint32_t i = 0; i < c->count; i++) {
		struct clock *n = &c->nodes[i], *root = &c->nodes[n->root];

		if (n->is_used && least(n) != INT64_MAX)
			root->offset_ns = MIN(root->offset_ns, least(n) - n->rel_ns);
	}
	for (uint32_t i = 0; i < c->count; i++)
		if (c->nodes[i].root == i && c->nodes[i].offset_ns == INT64_MAX)
			c->nodes[i].offset_ns = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		struct clock *n = &c->nodes[i];

		if (n->root != i)
			n->offset_ns = c->nodes[n->root].offset_ns + n->rel_ns;
	}
}

static uint64_t bound_error(const struct clock *n)
{
	if (most(n) == INT64_MIN)
		return UINT64_MAX;
	return MAX(PUSH_ERROR_NS, (uint64_t)(most(n) - least(n)));
}

void clocks_solve(struct clocks *c)
{
	struct clock_pair *p;
	size_t cursor = 0;

	for (uint32_t i = 0; i < c->count; i++) {
		c->nodes[i].root = i;
		c->nodes[i].is_tied = false;
		c->nodes[i].spread_ns = 0;
	}
	while ((p = idmap_next(&c->pairs, &cursor, NULL))) {
		uint64_t spread;

		clock_pair_fit(p);
		if (!p->is_fitted)
			continue;
		spread = clock_pair_spread(p);
		c->nodes[p->hub].is_tied = c->nodes[p->node].is_tied = true;
		c->nodes[p->hub].spread_ns = MAX(c->nodes[p->hub].spread_ns, spread);
		c->nodes[p->node].spread_ns = MAX(c->nodes[p->node].spread_ns, spread);
	}
	find_roots(c);
	find_distances(c);
	find_offsets(c);
	for (uint32_t i = 0; i < c->count; i++) {
		struct clock *n = &c->nodes[i];

		n->error_ns = n->is_tied ? n->distance : bound_error(n);
	}
}

int64_t clocks_offset(const struct clocks *c, uint32_t node, int64_t at_ns)
{
	const struct clock *n = &c->nodes[node];

	if (n->drift == 0)
		return n->offset_ns;
	return n->offset_ns + (int64_t)(n->drift * (double)(at_ns - n->newest_ns));
}

bool clocks_holds(const struct clocks *c, uint32_t node, int64_t at_ns, int64_t received_ns)
{
	const struct clock *n = &c->nodes[node];

	return at_ns >= n->set_ns && received_ns >= n->set_received_ns;
}

uint64_t clocks_error(const struct clocks *c, uint32_t node)
{
	return c->nodes[node].error_ns;
}

uint64_t clocks_spread(const struct clocks *c, uint32_t node)
{
	return c->nodes[node].spread_ns;
}

uint32_t clocks_root(const struct clocks *c, uint32_t node)
{
	return c->nodes[node].root;
}

uint64_t clocks_met(const struct clocks *c, uint32_t node)
{
	return c->nodes[node].root == node ? 0 : c->nodes[node].met;
}

double clocks_drift_ppm(const struct clocks *c, uint32_t node)
{
	return c->nodes[node].drift * 1e6;
}

uint64_t clocks_steps(const struct clocks *c)
{
	return c->steps;
}

size_t clocks_bytes(const struct clocks *c)
{
	return c->room * sizeof(*c->nodes) + c->pairs.used * sizeof(struct clock_pair) +
	       c->pairs.capacity * 2 * sizeof(void *);
}
