/* SPDX-License-Identifier: Apache-2.0 */
/* blame_clock.c - how far the workers' clocks are apart, by what they did together (blame/clocks.h).
 *
 * Workers of one node have one clock; one whose node is not known has its own. Offsets as the caller has them are used where they are exact to SURE_NS; the others are
 * set by the ends of collectives, which come for all at once, and by messages. */
#include "blame/blame_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "blame/clock_pair.h"
#include "blame/clocks.h"

#define SURE_NS 500000

struct aligning {
	struct job *j;
	uint32_t *node_of; /* by worker */
	uint32_t node_count;
	uint32_t *
		best; /* by node: the worker whose offset is known best; JOB_NONE: none has calls */
	uint32_t *anchor;       /* by root */
	struct blame_tie *ties; /* by worker; NULL: nobody asks */
	struct clocks *clocks;
};

static bool is_sure(const struct aligning *a, uint32_t node)
{
	return a->best[node] != JOB_NONE && a->j->error_ns[a->best[node]] <= SURE_NS;
}

static int list_nodes(struct aligning *a)
{
	_cleanup_(idmap_done) struct idmap numbers = IDMAP_INIT(BLAME_WORKERS_MAX);
	const struct job *j = a->j;

	for (uint32_t w = 0; w < j->worker_count; w++) {
		const char *name = j->workers[w].node ? j->workers[w].node : "";
		uint64_t key = hash_number(*name ? hash_bytes(name, strlen(name)) : w) | 1;
		size_t n = (size_t)(uintptr_t)idmap_get(&numbers, key);

		if (!n) {
			n = a->node_count + 1;
			if (idmap_put(&numbers, key, (void *)(uintptr_t)n) < 0)
				return -ENOMEM;
			a->best[a->node_count++] = JOB_NONE;
		}
		a->node_of[w] = (uint32_t)n - 1;
		if (j->first[w] != j->first[w + 1] &&
			(a->best[n - 1] == JOB_NONE ||
				j->error_ns[w] < j->error_ns[a->best[n - 1]]))
			a->best[n - 1] = w;
	}
	return 0;
}

static bool is_end(const struct job *j, const struct job_item *t)
{
	const struct push_call *c = &j->calls[t->call].c;

	return clocks_is_end(c->enter_ns, c->leave_ns, c->wait_ns);
}

/* All that take part wait for each other: of Broadcast and the like some leave before others have come. Ranks that call
 * different operations have no end in common. */
static bool is_common(const struct job *j, const struct job_match *m)
{
	uint16_t op = j->items[j->members[m->first]].op;

	for (uint32_t k = 1; k < m->count; k++)
		if (j->items[j->members[m->first + k]].op != op)
			return false;
	return op == NCCL_ALL_REDUCE || op == NCCL_ALL_GATHER || op == NCCL_REDUCE_SCATTER ||
	       op == NCCL_ALL_TO_ALL;
}

/* The collective ended for all at once: each node's first to leave, against the first node's. @left: by node, INT64_MAX. */
static int tell_collective(struct aligning *a, const struct job_match *m, int64_t *left)
{
	const struct job *j = a->j;
	uint32_t hub = JOB_NONE;
	int r = 0;

	for (uint32_t k = 0; k < m->count; k++) {
		const struct job_item *t = &j->items[j->members[m->first + k]];
		uint32_t node = a->node_of[t->worker];

		if (!is_end(j, t))
			continue;
		left[node] = MIN(left[node], t->leave_ns);
		if (hub == JOB_NONE || is_sure(a, node) > is_sure(a, hub) ||
			(is_sure(a, node) == is_sure(a, hub) && node < hub))
			hub = node;
	}
	for (uint32_t k = 0; k < m->count; k++) {
		uint32_t node = a->node_of[j->items[j->members[m->first + k]].worker];

		if (node == hub || left[node] == INT64_MAX)
			continue;
		if (r == 0)
			r = clocks_left(a->clocks, hub, left[hub], node, left[node]);
		r = r == -ENOBUFS ? 0 : r;
		left[node] = INT64_MAX;
	}
	if (hub != JOB_NONE)
		left[hub] = INT64_MAX;
	return r;
}

/* A message, whose receiver waited for it: it arrived when the wait ended. */
static int tell_message(struct aligning *a, const struct job_match *m)
{
	const struct job *j = a->j;
	const struct job_item *x = &j->items[j->members[m->first]],
			      *y = &j->items[j->members[m->first + 1]];
	const struct job_item *send = x->op == NCCL_SEND ? x : y, *receive = send == x ? y : x;
	uint32_t from = a->node_of[send->worker], to = a->node_of[receive->worker];
	int r = 0;

	if (from != to && is_end(j, receive))
		r = clocks_sent(a->clocks, from, send->enter_ns, to, receive->leave_ns);
	return r == -ENOBUFS ? 0 : r;
}

static int tell_all(struct aligning *a)
{
	_cleanup_free_ int64_t *left = calloc(a->node_count + 1, sizeof(*left));
	const struct job *j = a->j;
	int r = left ? 0 : -ENOMEM;

	for (uint32_t n = 0; r == 0 && n < a->node_count; n++) {
		left[n] = INT64_MAX;
		r = clocks_add(a->clocks, n, n);
	}
	for (int messages = 0; messages < 2; messages++)
		for (size_t i = 0; r == 0 && i < j->match_count; i++) {
			const struct job_match *m = &j->matches[i];

			if (m->count < 2)
				continue;
			if (blame_is_pair(j->items[j->members[m->first]].op))
				r = messages ? tell_message(a, m) : 0;
			else if (!messages && is_common(j, m))
				r = tell_collective(a, m, left);
		}
	return r;
}

/* Of the nodes that are tied to each root, the one that the others are set by. */
static void find_anchors(struct aligning *a)
{
	for (uint32_t n = 0; n < a->node_count; n++)
		a->anchor[n] = n;
	for (uint32_t n = 0; n < a->node_count; n++) {
		uint32_t *anchor = &a->anchor[clocks_root(a->clocks, n)];

		if (is_sure(a, n) && !is_sure(a, *anchor))
			*anchor = n;
	}
}

static void move_items(struct aligning *a, uint32_t worker, uint32_t node, int64_t base_ns)
{
	struct job *j = a->j;

	for (size_t i = j->first[worker]; i < j->first[worker + 1]; i++) {
		struct job_item *t = &j->items[i];
		int64_t by = clocks_offset(a->clocks, node, t->enter_ns) - base_ns;

		t->enter_ns += by;
		t->start_ns += by;
		t->leave_ns += by;
	}
}

/* The solver's errors are those from its root. One whose clock is known is as far from those that are set as the anchor is
 * from there. */
static void use_clocks(struct aligning *a)
{
	struct job *j = a->j;

	for (uint32_t w = 0; w < j->worker_count; w++) {
		uint32_t node = a->node_of[w], anchor;
		int64_t base;

		if (j->first[w] == j->first[w + 1])
			continue;
		anchor = a->anchor[clocks_root(a->clocks, node)];
		if (clocks_error(a->clocks, node) == UINT64_MAX)
			continue;
		if (j->error_ns[w] <= SURE_NS) {
			j->error_ns[w] += clocks_error(a->clocks, anchor);
			continue;
		}
		if (a->ties)
			a->ties[w] =
				(struct blame_tie){a->best[anchor], clocks_met(a->clocks, node)};
		base = clocks_offset(a->clocks, anchor, j->items[j->first[w]].enter_ns);
		j->offset_ns[w] =
			clocks_offset(a->clocks, node, j->items[j->first[w]].enter_ns) - base;
		j->error_ns[w] = clocks_error(a->clocks, node);
		move_items(a, w, node, base);
	}
}

static int align(struct job *j, struct aligning *a)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	int r = list_nodes(a);

	for (size_t i = 0; i < j->item_count; i++) {
		first = MIN(first, j->items[i].enter_ns);
		last = MAX(last, j->items[i].enter_ns);
	}
	if (r < 0 || a->node_count < 2)
		return r;
	r = clocks_new(
		a->node_count, MAX((last - first) / CLOCK_POINTS, (int64_t)NS_PER_S), &a->clocks);
	r = r < 0 ? r : tell_all(a);
	if (r < 0)
		return r;
	clocks_solve(a->clocks);
	find_anchors(a);
	use_clocks(a);
	return 0;
}

/* Sets the clocks of those whose offset is not known well enough. */
static int set_unsure_clocks(struct job *j, struct blame_tie *ties)
{
	_cleanup_free_ uint32_t *node_of = calloc(j->worker_count + 1, sizeof(*node_of));
	_cleanup_free_ uint32_t *best = calloc(j->worker_count + 1, sizeof(*best));
	_cleanup_free_ uint32_t *anchor = calloc(j->worker_count + 1, sizeof(*anchor));
	struct aligning a = {
		.j = j, .node_of = node_of, .best = best, .anchor = anchor, .ties = ties};
	size_t unsure = 0;
	int r;

	for (size_t w = 0; w < j->worker_count; w++)
		unsure += j->error_ns[w] > SURE_NS && j->first[w] != j->first[w + 1];
	if (!unsure)
		return 0;
	r = node_of && best && anchor ? align(j, &a) : -ENOMEM;
	if (a.clocks)
		clocks_free(a.clocks);
	return r;
}

/* Who came last to each match, and when the job begins and ends: times are final. */
static void find_last(struct job *j)
{
	for (size_t i = 0; i < j->match_count; i++) {
		struct job_match *m = &j->matches[i];

		for (uint32_t k = 0; m->count > 1 && k < m->count; k++) {
			uint32_t item = j->members[m->first + k];

			if (k && j->items[item].enter_ns <= m->arrival_ns)
				continue;
			m->last = item;
			m->arrival_ns = j->items[item].enter_ns;
		}
	}
	j->begin_ns = j->item_count ? INT64_MAX : 0;
	j->end_ns = j->item_count ? INT64_MIN : 0;
	for (size_t i = 0; i < j->item_count; i++) {
		j->begin_ns = MIN(j->begin_ns, j->items[i].enter_ns);
		j->end_ns = MAX(j->end_ns, j->items[i].leave_ns);
	}
}

int blame_clocks(struct job *j)
{
	int r = set_unsure_clocks(j, NULL);

	if (r == 0)
		find_last(j);
	return r;
}

int blame_align(struct blame_worker *workers, size_t worker_count, const struct blame_call *ends,
	size_t end_count, struct blame_tie *ret)
{
	_cleanup_(blame_job_done) struct job j = {.workers = workers,
		.calls = ends,
		.worker_count = worker_count,
		.call_count = end_count};
	int r = blame_load(&j);

	for (size_t w = 0; ret && w < worker_count; w++)
		ret[w] = (struct blame_tie){.by = UINT32_MAX};
	r = r < 0 ? r : blame_match(&j);
	r = r < 0 ? r : set_unsure_clocks(&j, ret);
	for (size_t w = 0; r == 0 && w < worker_count; w++) {
		workers[w].offset_ns += j.offset_ns[w];
		workers[w].error_ns = j.error_ns[w];
	}
	return r;
}
