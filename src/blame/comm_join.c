/* SPDX-License-Identifier: Apache-2.0 */
/* comm_join.c - see comm_join.h. Calls are sorted into streams; streams that may be of one communicator are compared two
 * by two (comm_join_fit.c), each with one that stands for its communicator:
 *
 *  - of a communicator with a name, a numbered stream, or else the first;
 *  - of those without, each named one of as many ranks, and each stream of the lowest rank among the nameless.
 *
 * A Send's stream is compared with those of Recvs at its other end. Of two streams of one rank that fit the same
 * communicator none is taken, unless one fits clearly better. */
#include "blame/comm_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "base/search.h"
#include "blame/clocks.h"
#include "blame/comm_join_fit.h"
#include "wire/ids.h"

#define SEEDS_MAX  256 /* communicators of one size that a nameless stream is tried with */
#define TRIES_MAX  16  /* streams of its own communicator that one with a name is tried with */
#define ROUNDS_MAX 8   /* ranks that stand for their communicators, the lowest first */
#define CLEARLY    2   /* times worse is the next communicator */

static bool is_pair(uint16_t op)
{
	return op == NCCL_SEND || op == NCCL_RECV;
}

static bool is_sane(const struct push_call *c)
{
	return c->nranks > 1 && c->rank >= 0 && c->rank < c->nranks && c->seq && c->enter_ns >= 0 &&
	       c->enter_ns <= INT64_C(1) << 62 && (c->seq <= INT64_MAX || -c->seq <= INT64_MAX) &&
	       (!is_pair(c->op) || (c->peer >= 0 && c->peer < c->nranks && c->peer != c->rank));
}

static uint64_t tag_of(const struct push_call *c)
{
	return c->comm ? 0 : -c->seq >> COMM_JOIN_TAG;
}

int64_t comm_join_number(const struct push_call *c)
{
	if (push_call_is_numbered(c))
		return (int64_t)c->seq;
	return (int64_t)(c->comm ? -c->seq : -c->seq & ((UINT64_C(1) << COMM_JOIN_TAG) - 1));
}

static struct comm_join_stream stream_of(const struct blame_call *b)
{
	bool pair = is_pair(b->c.op);

	return (struct comm_join_stream){.worker = b->worker,
		.comm = b->c.comm,
		.tag = push_call_is_numbered(&b->c) ? 0 : tag_of(&b->c),
		.rank = b->c.rank,
		.nranks = b->c.nranks,
		.peer = pair ? b->c.peer : -1,
		.is_send = b->c.op == NCCL_SEND};
}

/* In order: those of one size stand together, the nameless before the named; the named by communicator. */
static int compare_streams(const struct comm_join_stream *x, const struct comm_join_stream *y)
{
#define BY(field)                                                                                  \
	if (x->field != y->field)                                                                  \
	return x->field < y->field ? -1 : 1
	BY(nranks);
	BY(comm);
	BY(rank);
	BY(worker);
	BY(tag);
	BY(peer);
	BY(is_send);
#undef BY
	return 0;
}

static int by_stream(const void *a, const void *b)
{
	const struct blame_call *const *pa = a, *const *pb = b;
	const struct blame_call *x = *pa, *y = *pb;
	struct comm_join_stream sx = stream_of(x), sy = stream_of(y);
	bool numbered_x = push_call_is_numbered(&x->c), numbered_y = push_call_is_numbered(&y->c);
	int64_t nx = comm_join_number(&x->c), ny = comm_join_number(&y->c);
	int r = compare_streams(&sx, &sy);

	if (!r)
		r = (int)numbered_y - (int)numbered_x;
	return r ? r : (nx > ny) - (nx < ny);
}

struct group { /* a stream while it is joined */
	struct comm_join_stream s;
	bool is_numbered;
	bool is_twofold; /* numbers come twice: two communicators, or tracers, that cannot be told apart */
	struct join_side side;
	size_t seed;               /* of a nameless one, the stream it fits */
	bool has_seed, is_unclear; /* it fits several */
	bool is_early; /* it may be of a communicator that it has too few calls in common with yet, or whose numbers it
			* does not tell apart: of another, none is made */
};

struct joining {
	const struct blame_worker *workers;
	const struct blame_call **calls;
	struct join_point *points;
	struct group *groups;
	size_t count;
	uint64_t work, work_max;
};

static bool is_over(const struct joining *j)
{
	return j->work >= j->work_max;
}

static struct join_point point_of(const struct joining *j, const struct blame_call *b)
{
	int64_t offset = j->workers[b->worker].offset_ns;
	bool has_end = b->c.wait_ns != UINT64_MAX && b->c.leave_ns > 0;

	/* who sends mostly goes on before it is received */
	if (b->c.op == NCCL_SEND)
		has_end = has_end && clocks_is_end(b->c.enter_ns, b->c.leave_ns, b->c.wait_ns);
	/* a Send and its Recv are alike */
	return (struct join_point){.number = comm_join_number(&b->c),
		.what = hash_number(b->c.bytes ^ (is_pair(b->c.op) ? 0 : hash_number(b->c.op))),
		.enter_ns = b->c.enter_ns + offset,
		.leave_ns = MAX(b->c.leave_ns, b->c.enter_ns) + offset,
		.end_ns = has_end ? b->c.leave_ns + offset : JOIN_NO_END};
}

/* Makes the streams of the sorted calls. */
static void list_groups(struct joining *j, size_t calls)
{
	for (size_t i = 0; i < calls; i++) {
		struct comm_join_stream s = stream_of(j->calls[i]);
		bool is_numbered = push_call_is_numbered(&j->calls[i]->c);
		struct group *g = j->count ? &j->groups[j->count - 1] : NULL;

		if (!g || compare_streams(&g->s, &s) || g->is_numbered != is_numbered) {
			g = &j->groups[j->count++];
			*g = (struct group){.s = s, .is_numbered = is_numbered};
			g->side = (struct join_side){.points = &j->points[i],
				.error_ns = j->workers[s.worker].error_ns,
				.is_messages = s.peer >= 0,
				.node = j->workers[s.worker].node};
		}
		j->points[i] = point_of(j, j->calls[i]);
		g->is_twofold |= !is_numbered && g->side.count &&
				 j->points[i].number == j->points[i - 1].number;
		g->side.count++;
	}
}

/* May they be of one communicator, as two ranks of it or as two ends? */
static bool is_partner(const struct group *x, const struct group *y)
{
	if (x->s.nranks != y->s.nranks || x->s.worker == y->s.worker || x->is_twofold ||
		y->is_twofold)
		return false;
	if (x->s.comm && y->s.comm && x->s.comm != y->s.comm)
		return false;
	if (x->s.peer < 0 || y->s.peer < 0)
		return x->s.peer < 0 && y->s.peer < 0 && x->s.rank != y->s.rank;
	return x->s.is_send != y->s.is_send && x->s.rank == y->s.peer && x->s.peer == y->s.rank;
}

static uint64_t made_up_id(const struct joining *j, const struct group *g)
{
	const struct blame_worker *w = &j->workers[g->s.worker];
	uint64_t id = hash_bytes(w->node, strlen(w->node)) ^ hash_number(w->pid) ^
		      hash_number(g->s.tag + 1) ^ (uint64_t)g->s.nranks << 32;

	return hash_number(id) | 1;
}

/* The seed itself becomes joined with the first that fits it. */
static void join_to(struct joining *j, struct group *g, struct group *seed, int64_t shift)
{
	if (!seed->s.is_joined && !seed->is_numbered) {
		seed->s.is_joined = true;
		seed->s.id = seed->s.comm ? seed->s.comm : made_up_id(j, seed);
		seed->s.shift = COMM_JOIN_MADE_UP * (int64_t)(seed - j->groups + 1);
	}
	g->s.is_joined = true;
	g->s.id = seed->is_numbered ? seed->s.comm : seed->s.id;
	g->s.shift = shift + (seed->is_numbered ? 0 : seed->s.shift);
}

/* Those of @end - @begin groups, which have one communicator with a name. */
static int join_named(struct joining *j, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		struct group *g = &j->groups[i];
		struct join_fit fit;
		int r = 0;

		if (is_over(j))
			return 0;
		if (g->is_numbered)
			continue;
		/* numbered ones and those that are joined already first */
		for (unsigned pass = 0, tried = 0; pass < 2 && !g->s.is_joined; pass++)
			for (size_t k = begin; k < end && !g->s.is_joined && tried < TRIES_MAX;
				k++) {
				struct group *seed = &j->groups[k];
				bool is_firm = seed->is_numbered || seed->s.is_joined;

				j->work++;
				if (k == i || is_firm == (pass == 1) || (pass == 1 && k > i) ||
					!is_partner(g, seed))
					continue;
				tried++;
				r = join_fit_find(&seed->side, &g->side, true, &j->work, &fit);
				if (r == -ENOMEM)
					return r;
				if (r == 0)
					join_to(j, g, seed, fit.shift);
			}
	}
	return 0;
}

static bool is_seed(const struct group *g, const struct group *x, int32_t lowest)
{
	if (x->s.comm)
		return x->is_numbered || x->s.is_joined;
	return g->s.peer < 0 ? x->s.rank == lowest && g->s.rank != lowest
			     : x->s.is_send && !g->s.is_send;
}

/* Whether another worker is known to have @g's place in the communicator of @x, which has a name. */
static bool is_taken(struct joining *j, const struct group *x, const struct group *g)
{
	const struct comm_join_stream place = {
		.nranks = x->s.nranks, .comm = x->s.comm, .rank = g->s.rank, .peer = INT32_MIN};
	size_t i = LOWER_BOUND(k, j->count, compare_streams(&j->groups[k].s, &place) < 0);

	j->work += 16; /* of the search */
	for (; i < j->count && j->groups[i].s.nranks == place.nranks &&
		j->groups[i].s.comm == place.comm && j->groups[i].s.rank == place.rank;
		i++, j->work++)
		if (j->groups[i].s.worker != g->s.worker)
			return true;
	return false;
}

/* The communicator that @g fits clearly better than any other. -E2BIG: that takes too long. */
static int find_seed(struct joining *j, size_t begin, size_t end, int32_t lowest, size_t at,
	struct join_fit *ret)
{
	struct group *g = &j->groups[at];
	uint64_t next = UINT64_MAX, comm = 0; /* whose streams are tried */
	size_t tried = 0, tried_comm = 0;
	bool fits_comm = false, may_fit = false;

	ret->error_ns = UINT64_MAX;
	for (size_t k = begin; k < end; k++) {
		struct group *x = &j->groups[k];
		struct join_fit fit;
		int r;

		j->work++;
		if (k == at || x->is_unclear || (x->is_early && !x->s.comm) || !is_partner(g, x) ||
			!is_seed(g, x, lowest) || (x->s.comm && is_taken(j, x, g)))
			continue;
		if (x->s.comm != comm) {
			comm = x->s.comm;
			tried_comm = 0;
			fits_comm = false;
		}
		if (comm && (fits_comm || tried_comm++ >= TRIES_MAX))
			continue; /* one of it has said so */
		if (++tried > SEEDS_MAX)
			break;
		if (is_over(j))
			return -E2BIG;
		r = join_fit_find(&x->side, &g->side, false, &j->work, &fit);
		if (r == -ENOMEM)
			return r;
		g->is_early |= r == -EAGAIN;
		may_fit |= r == -ENOTUNIQ;
		if (r < 0)
			continue;
		fits_comm = true;
		if (fit.error_ns < ret->error_ns) {
			bool is_same =
				g->has_seed && x->s.comm && x->s.comm == j->groups[g->seed].s.comm;

			next = is_same ? next : ret->error_ns;
			*ret = fit;
			g->seed = k;
			g->has_seed = true;
		} else if (!x->s.comm || x->s.comm != j->groups[g->seed].s.comm) {
			next = MIN(next, fit.error_ns);
		}
	}
	g->is_unclear = ret->error_ns != UINT64_MAX && next != UINT64_MAX &&
			next / CLEARLY <= ret->error_ns;
	g->has_seed &= !g->is_unclear && tried <= SEEDS_MAX;
	g->is_early |= may_fit && !g->has_seed;
	return 0;
}

static bool is_one_comm(const struct joining *j, size_t x, size_t y)
{
	return x == y || (j->groups[x].s.comm && j->groups[x].s.comm == j->groups[y].s.comm);
}

/* Does another of its rank claim the same place, and fit nearly as well? */
static bool is_contested(
	struct joining *j, size_t begin, size_t end, const struct join_fit *fits, size_t at)
{
	const struct group *g = &j->groups[at];

	j->work += end - begin;
	for (size_t k = begin; k < end; k++) {
		const struct group *x = &j->groups[k];

		if (k != at && x->has_seed && is_one_comm(j, x->seed, g->seed) &&
			x->s.rank == g->s.rank && x->s.peer == g->s.peer &&
			fits[k - begin].error_ns / CLEARLY <= fits[at - begin].error_ns)
			return true;
	}
	return false;
}

/* One round: the streams of rank @lowest stand for their communicators. If it takes too long it is that of the ranks of
 * which all streams were looked at. */
static int join_with_lowest(
	struct joining *j, size_t begin, size_t end, int32_t lowest, struct join_fit *fits)
{
	size_t to = begin;
	int r = 0;

	for (; to < end && !j->groups[to].s.comm; to++) {
		if (!j->groups[to].s.is_joined && !j->groups[to].is_unclear)
			r = find_seed(j, begin, end, lowest, to, &fits[to - begin]);
		if (r == -ENOMEM)
			return r;
		if (r == -E2BIG)
			break;
	}
	while (r == -E2BIG && to > begin && j->groups[to - 1].s.rank == j->groups[to].s.rank)
		to--;
	for (size_t i = begin; i < to; i++) {
		struct group *g = &j->groups[i];

		if (g->s.is_joined || !g->has_seed ||
			(g->is_early && !j->groups[g->seed].s.comm &&
				!j->groups[g->seed].s.is_joined))
			continue;
		g->is_unclear = is_contested(j, begin, end, fits, i);
		if (!g->is_unclear)
			join_to(j, g, &j->groups[g->seed], fits[i - begin].shift);
	}
	return 0;
}

/* The nameless of the groups of one size, which stand before the named. A communicator's lowest rank may not be traced:
 * then the next one stands for it. */
static int join_nameless(struct joining *j, size_t begin, size_t end)
{
	_cleanup_free_ struct join_fit *fits = calloc(end - begin + 1, sizeof(*fits));
	int32_t lowest = -1;

	if (!fits)
		return -ENOMEM;
	for (unsigned round = 0; round < ROUNDS_MAX && !is_over(j); round++) {
		int32_t next = INT32_MAX;

		for (size_t i = begin; i < end && !j->groups[i].s.comm; i++)
			if (!j->groups[i].s.is_joined && j->groups[i].s.rank > lowest)
				next = MIN(next, j->groups[i].s.rank);
		if (next == INT32_MAX)
			return 0;
		lowest = next;
		if (join_with_lowest(j, begin, end, lowest, fits) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int join_groups(struct joining *j)
{
	size_t end, size_end;
	int r = 0;

	for (size_t i = 0; r == 0 && i < j->count; i = size_end) {
		for (size_end = i; size_end < j->count &&
				   j->groups[size_end].s.nranks == j->groups[i].s.nranks;)
			size_end++;
		for (size_t k = i; r == 0 && k < size_end; k = end) {
			for (end = k;
				end < size_end && j->groups[end].s.comm == j->groups[k].s.comm;)
				end++;
			if (j->groups[k].s.comm)
				r = join_named(j, k, end);
		}
		if (r == 0 && !j->groups[i].s.comm)
			r = join_nameless(j, i, size_end);
	}
	return r;
}

static int list_joined(const struct joining *j, struct comm_join *ret)
{
	ret->streams = calloc(j->count + 1, sizeof(*ret->streams));
	if (!ret->streams)
		return -ENOMEM;
	for (size_t i = 0; i < j->count; i++) {
		const struct group *g = &j->groups[i];

		if (g->is_numbered)
			continue;
		ret->streams[ret->count++] = g->s;
		ret->joined += g->s.is_joined ? g->side.count : 0;
		ret->unknown += g->s.is_joined ? 0 : g->side.count;
	}
	return 0;
}

int comm_join_run(const struct blame_worker *workers, const struct blame_call *calls, size_t count,
	uint64_t work_max, struct comm_join *ret)
{
	_cleanup_free_ const struct blame_call **sorted = calloc(count + 1, sizeof(*sorted));
	_cleanup_free_ struct join_point *points = calloc(count + 1, sizeof(*points));
	_cleanup_free_ struct group *groups = calloc(count + 1, sizeof(*groups));
	struct joining j = {.workers = workers,
		.calls = sorted,
		.points = points,
		.groups = groups,
		.work_max = work_max};
	size_t n = 0, unnumbered = 0;
	int r;

	*ret = (struct comm_join){0};
	if (!sorted || !points || !groups)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		bool numbered = push_call_is_numbered(&calls[i].c);

		unnumbered += !numbered;
		if (is_sane(&calls[i].c))
			sorted[n++] = &calls[i];
		else
			ret->unknown += !numbered;
	}
	if (!unnumbered)
		return 0;
	qsort(sorted, n, sizeof(*sorted), by_stream);
	list_groups(&j, n);
	r = join_groups(&j);
	return r < 0 ? r : list_joined(&j, ret);
}

void comm_join_done(struct comm_join *j)
{
	free(j->streams);
	*j = (struct comm_join){0};
}

bool comm_join_is_of(const struct comm_join_stream *s, uint32_t worker, const struct push_call *c)
{
	struct comm_join_stream own = stream_of(&(struct blame_call){.worker = worker, .c = *c});

	return !push_call_is_numbered(c) && is_sane(c) && compare_streams(s, &own) == 0;
}

void comm_join_name(const struct comm_join_stream *s, struct push_call *c)
{
	c->seq = (uint64_t)(comm_join_number(c) + s->shift);
	c->comm = s->id;
}

static int by_key(const void *key, const void *item)
{
	return compare_streams(key, item);
}

size_t comm_join_apply(const struct comm_join *j, struct blame_call *calls, size_t count)
{
	size_t named = 0;

	for (size_t i = 0; i < count && j->count; i++) {
		struct comm_join_stream key = stream_of(&calls[i]);
		const struct comm_join_stream *s;

		if (push_call_is_numbered(&calls[i].c) || !is_sane(&calls[i].c))
			continue;
		s = bsearch(&key, j->streams, j->count, sizeof(*j->streams), by_key);
		if (!s || !s->is_joined)
			continue;
		comm_join_name(s, &calls[i].c);
		named++;
	}
	return named;
}
