/* SPDX-License-Identifier: Apache-2.0 */
/* calls_blame.c - the calls in the window, the newest and not more than BLAME_CALLS_MAX, as blame wants them.
 * Offsets stand with the workers; what a clock drifts within the window, or jumped, stands with the calls. */

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cluster/detect/calls_core.h"
#include "blame/call_rhythm.h"
#include "wire/ids.h"

/* 80 bytes and 0.7 us each: blame takes a third of a second at most. */
#define BLAME_CALLS_MAX (512u << 10)

#define BESIDE_MAX (128u << 10)               /* calls that late ones are compared with */
#define BESIDE_NS  ((int64_t)(10 * NS_PER_S)) /* so much later than others a rank's calls may come */

#define PATIENCE_NS    (5 * NS_PER_S) /* for a call that others made, too; likewise */
#define PATIENCE_STEPS 2              /* if that is longer */
#define PASSED_NS                                                                                  \
	NS_PER_S /* likewise, for one of a rank that was seen in later ones: its agent came after it */

struct gathering {
	int64_t end_ns; /* later calls are left out: not all that were made by then have come */
	struct blame_call *items;
	size_t count, room;
	uint32_t *place;        /* of a worker in blame's table, by id */
	const uint32_t *job_of; /* NULL: all jobs together */
	uint32_t job;
	bool is_whole; /* beyond the window, too */
};

static bool is_of_job(const struct gathering *g, uint32_t worker)
{
	return !g->job_of || g->job_of[worker] == g->job;
}

/* The members of a communicator are all of one job. */
static bool is_wanted(const struct gathering *g, const struct collective *x)
{
	return !g->job_of || is_of_job(g, x->first_worker);
}

static struct blame_worker worker_of(const struct calls *c, const struct worker *w)
{
	return (struct blame_worker){
		.rank = w->world_rank,
		.node = c->senders.items[w->node]->name,
		.pid = w->pid,
		.offset_ns = clocks_offset(c->clocks, w->node, w->enter_ns),
		.error_ns = clocks_error(c->clocks, w->node),
	};
}

static size_t gather_workers(
	const struct calls *c, const struct gathering *g, struct blame_worker *out, uint32_t *place)
{
	uint32_t node = UINT32_MAX;
	bool one_node = true;
	size_t n = 0;

	for (uint32_t i = 0; i < c->workers.count; i++) {
		const struct worker *w = c->workers.items[i];

		if (!w || !is_of_job(g, i))
			continue;
		place[i] = (uint32_t)n;
		out[n++] = worker_of(c, w);
		one_node &= w->node == node || node == UINT32_MAX;
		node = w->node;
	}
	/* Workers of one node have one clock. How wrong that is does not matter to them. */
	for (size_t i = 0; one_node && i < n; i++)
		out[i].error_ns = 0;
	return n;
}

/* The call of the rank in @slot. A pair keeps one operation for both of its ends. */
static struct push_call call_of(const struct collective *x, uint32_t slot)
{
	const struct comm *m = x->comm;
	const struct member *who = &m->members[slot];
	const struct arrival *a = &x->arrivals[slot];
	struct push_call call = {
		.comm = m->comm,
		.seq = x->seq,
		.bytes = x->bytes,
		.enter_ns = a->enter_ns,
		.leave_ns = a->leave_ns,
		.wait_ns = a->wait_ns,
		.rank = who->rank,
		.nranks = m->nranks,
		.peer = -1,
		.op = x->op,
		.datatype = x->datatype,
	};

	if (comms_is_pair(m)) {
		call.op = who->place ? NCCL_RECV : NCCL_SEND;
		call.peer = who->place ? m->src : m->dst;
	}
	return call;
}

/* Messages are late now and then. What is known of one rank and not yet of another would look like time
 * of its own. */
static int find_end(const struct calls *c, struct gathering *g)
{
	const struct collective *x;

	g->end_ns = INT64_MAX;
	TAILQ_FOREACH_REVERSE(x, &c->comms.by_age, collective_list, age)
	{
		int r;

		if (c->now_ns - x->first_ns >
			calls_lasting(c, (int64_t)PATIENCE_NS, PATIENCE_STEPS))
			break;
		if (x->state != COLLECTIVE_OPEN || !is_wanted(g, x) ||
			(c->now_ns - x->first_ns > (int64_t)PASSED_NS && hangs_is_passed(x)))
			continue;
		r = lags_align(c, x);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < x->room; i++)
			if (c->lags->arrivals[i] != INT64_MIN)
				g->end_ns = MIN(g->end_ns, c->lags->arrivals[i]);
	}
	return 0;
}

static int gather_collective(const struct calls *c, const struct collective *x,
	const struct blame_worker *workers, struct gathering *g)
{
	int r = lags_align(c, x);

	if (r < 0)
		return r;
	if (!c->lags->is_comparable) {
		g->count =
			0; /* what is known of some ranks only would look like time of their own */
		return 0;
	}
	r = ARRAY_RESERVE(g->items, g->room, g->count + x->have, SIZE_MAX / 2);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < x->room; i++) {
		const struct member *m = &x->comm->members[i];
		const struct worker *w;
		struct push_call call;
		int64_t shift;

		if (x->arrivals[i].enter_ns == INT64_MIN || x->arrivals[i].leave_ns == 0)
			continue;
		w = c->workers.items[m->worker];
		call = call_of(x, i);
		shift = lags_shift(c, m->node, call.enter_ns);
		if (call.enter_ns + shift >= g->end_ns)
			continue;
		call.pid = w->pid;
		call.world_rank = w->world_rank;
		g->items[g->count++] = (struct blame_call){
			g->place[w->id], call, shift - workers[g->place[w->id]].offset_ns};
	}
	return 0;
}

/* Calls whose communicator is not known yet: who is in one waits, for whom nobody knows. Left out, that would look like
 * time of its own. */
static int gather_held(
	const struct calls *c, const struct blame_worker *workers, struct gathering *g)
{
	for (size_t i = 0; i < c->joins.count; i++) {
		struct blame_call b = c->joins.held[i].b;
		const struct worker *w = c->workers.items[b.worker];
		int64_t shift;

		if (!w || !is_of_job(g, b.worker) || b.c.leave_ns == 0)
			continue;
		shift = lags_shift(c, w->node, b.c.enter_ns);
		if (b.c.enter_ns + shift >= g->end_ns)
			continue;
		if (ARRAY_RESERVE(g->items, g->room, g->count + 1, SIZE_MAX / 2) < 0)
			return -ENOMEM;
		b.worker = g->place[b.worker];
		b.shift_ns = shift - workers[b.worker].offset_ns;
		b.c.comm = hash_number(hash_number(b.c.seq) ^ b.worker) | 1; /* it has no partner */
		g->items[g->count++] = b;
	}
	return 0;
}

/* Where the newest BLAME_CALLS_MAX calls begin: from there on they come in the order of their times, or
 * nearly, which is how blame wants them. */
static const struct collective *oldest_of(const struct calls *c, const struct gathering *g)
{
	const struct collective *x, *oldest = NULL;
	size_t count = 0;

	TAILQ_FOREACH_REVERSE(x, &c->comms.by_age, collective_list, age)
	{
		if (!g->is_whole && c->now_ns - x->received_ns > calls_window(c))
			break;
		if (!is_wanted(g, x))
			continue;
		count += x->have;
		if (count > BLAME_CALLS_MAX)
			break;
		oldest = x;
	}
	return oldest;
}

static int blame_gathered(const struct calls *c, struct gathering *g,
	struct blame_worker **ret_workers, size_t *ret_count, struct blame *ret)
{
	size_t n = MAX(c->workers.count, (size_t)1);
	_cleanup_free_ struct blame_worker *workers = calloc(n, sizeof(*workers));
	_cleanup_free_ uint32_t *place = calloc(n, sizeof(*place));
	_cleanup_free_ struct blame_call *items = NULL;
	const struct collective *x;
	int r;

	if (!workers || !place)
		return -ENOMEM;
	g->place = place;
	r = find_end(c, g);
	n = gather_workers(c, g, workers, place);
	for (x = oldest_of(c, g); r == 0 && x; x = TAILQ_NEXT(x, age))
		if (is_wanted(g, x))
			r = gather_collective(c, x, workers, g);
	r = r < 0 ? r : call_rhythm_set(workers, n, g->items, g->count);
	r = r < 0 || !g->count ? r : gather_held(c, workers, g);
	items = g->items;
	if (r < 0)
		return r;
	r = blame_find(workers, n, items, g->count, ret);
	if (r < 0)
		return r;
	*ret_workers = TAKE(workers);
	*ret_count = n;
	return 0;
}

/* Numbered calls that late ones may be of the same collective as: of the time since the oldest of these was made. */
static int gather_beside(const struct calls *c, struct gathering *g)
{
	const struct collective *x;

	TAILQ_FOREACH_REVERSE(x, &c->comms.by_age, collective_list, age)
	{
		if (x->received_ns < c->joins.held[0].received_ns - BESIDE_NS ||
			g->count + x->have > BESIDE_MAX)
			break;
		if (ARRAY_RESERVE(g->items, g->room, g->count + x->have, SIZE_MAX / 2) < 0)
			return -ENOMEM;
		for (uint32_t i = 0; i < x->room; i++)
			if (x->arrivals[i].enter_ns != INT64_MIN && x->arrivals[i].leave_ns)
				g->items[g->count++] = (struct blame_call){
					.worker = x->comm->members[i].worker, .c = call_of(x, i)};
	}
	return 0;
}

int calls_late(struct calls *c, struct held_call **ret, size_t *ret_count)
{
	_cleanup_free_ struct blame_worker *workers =
		calloc(MAX(c->workers.count, (size_t)1), sizeof(*workers));
	_cleanup_free_ struct blame_call *beside = NULL;
	struct gathering g = {0};
	int r = workers ? gather_beside(c, &g) : -ENOMEM;

	beside = g.items;
	for (uint32_t i = 0; r == 0 && i < c->workers.count; i++) {
		const struct worker *w = c->workers.items[i];

		workers[i] = w ? worker_of(c, w) : (struct blame_worker){.node = ""};
	}
	return r < 0 ? r
		     : joins_try(&c->joins, workers, beside, g.count, c->now_ns,
			       c->now_ns - calls_window(c), ret, ret_count);
}

int calls_blame(const struct calls *c, struct blame_worker **ret_workers, size_t *ret_count,
	struct blame *ret)
{
	struct gathering g = {0};

	return blame_gathered(c, &g, ret_workers, ret_count, ret);
}

int calls_blame_job(const struct calls *c, const struct calls_jobs *jobs, uint32_t job,
	bool is_whole, struct blame_worker **ret_workers, size_t *ret_count, struct blame *ret)
{
	struct gathering g = {.job_of = jobs->of, .job = job, .is_whole = is_whole};

	return blame_gathered(c, &g, ret_workers, ret_count, ret);
}
