/* SPDX-License-Identifier: Apache-2.0 */
/* blame_roles.c - which workers do the same work: the stages of a pipeline, and who is whose peer.
 *
 * Stages come from Send and Recv. Workers that exchange messages are neighbours; a pipeline is a chain
 * of them (with interleaved stages a ring), while experts and rings of attention send to all, or all at
 * once. A step begins with a Send on the first stage's side of a link and with a Recv on the other:
 * what follows a collective that comes once in a step votes for the direction. Without any the ranks do, if one
 * side of a link is ahead by several micro-batches at times: neighbours that exchange what borders on them never are.
 * A chain that lacks a worker takes the stages of those it reduces gradients with.
 *
 * Peers are the workers of one stage. Without a pipeline they are those that communicators bring
 * together, save a communicator that only few workers have one of (the first and last stage's common
 * embedding) and one that hardly any bytes go through (the clipping of gradients): neither says that
 * its members do the same work. */
#include "blame/blame_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define RUNS_A_STEP 2.5 /* of a communicator that is used at the end of steps; with overlap two */
#define RUNS_LEAST  0.5 /* likewise: what comes less often tells too little */
#define RUNS_FACTOR                                                                                \
	1.4 /* a communicator with so many more runs than another is used within steps */
#define COMMON_SHARE  0.7  /* of the workers that must have a communicator of a size */
#define BYTES_SHARE   0.01 /* of a worker's bytes */
#define NEIGHBOURS    8    /* remembered of a worker; who has more is no stage */
#define CHAINED_SHARE 0.5  /* of the workers that send, that must be in chains */

struct link { /* between a worker and one it sends to or receives from */
	uint32_t peer;
	int32_t sends_first; /* steps that begin with a Send, less those that begin with a Recv */
	int32_t ahead, least, most; /* Sends less Recvs until now, and their extremes */
};

struct place {
	struct link links[NEIGHBOURS];
	uint32_t count; /* NEIGHBOURS + 1: more */
	int32_t chain;  /* -1: none yet */
};

static uint32_t find_root(uint32_t *parent, uint32_t w)
{
	while (parent[w] != w)
		w = parent[w] = parent[parent[w]];
	return w;
}

static struct link *link_to(struct place *p, uint32_t peer)
{
	for (uint32_t i = 0; i < MIN(p->count, (uint32_t)NEIGHBOURS); i++)
		if (p->links[i].peer == peer)
			return &p->links[i];
	if (p->count >= NEIGHBOURS) {
		p->count = NEIGHBOURS + 1;
		return NULL;
	}
	p->links[p->count] = (struct link){.peer = peer};
	return &p->links[p->count++];
}

static uint32_t other_end(const struct job *j, uint32_t item)
{
	const struct job_match *m = &j->matches[j->items[item].match];
	uint32_t a = j->members[m->first];

	return job_item_worker(j, a == item ? j->members[m->first + 1] : a);
}

struct runs { /* of a worker's collectives in one communicator, between its Sends and Recvs */
	uint32_t count, last; /* last: the Send or Recv before it, counted */
};

static void count_runs(const struct job *j, uint32_t worker, struct runs *runs)
{
	uint32_t pairs = 1;

	for (size_t i = j->first[worker]; i < j->first[worker + 1]; i++)
		runs[j->items[i].comm] = (struct runs){0};
	for (size_t i = j->first[worker]; i < j->first[worker + 1]; i++) {
		struct runs *r = &runs[j->items[i].comm];

		if (blame_is_pair(j->items[i].op)) {
			pairs++;
		} else if (r->last != pairs) {
			r->last = pairs;
			r->count++;
		}
	}
}

/* The most runs of a communicator that is used at the end of steps. That of a stage's tensors comes to two
 * runs a step, if there are two micro-batches: the one with the fewest decides. */
static double runs_at_end(const struct job *j, uint32_t worker, const struct runs *runs)
{
	double steps = (double)(j->step_count + 1), least = RUNS_A_STEP * steps;

	for (size_t i = j->first[worker]; i < j->first[worker + 1]; i++) {
		double n = runs[j->items[i].comm].count;

		if (!blame_is_pair(j->items[i].op) && n >= RUNS_LEAST * steps)
			least = MIN(least, n * RUNS_FACTOR);
	}
	return least;
}

/* Links of @worker, with the votes of what follows the collectives at the end of a step. */
static void find_links(const struct job *j, uint32_t worker, struct place *p, struct runs *runs)
{
	bool begins = false;
	double most;

	count_runs(j, worker, runs);
	most = runs_at_end(j, worker, runs);
	for (size_t i = j->first[worker]; i < j->first[worker + 1]; i++) {
		struct link *l;

		if (!blame_is_pair(j->items[i].op)) {
			begins |= (double)runs[j->items[i].comm].count <= most;
			continue;
		}
		if (j->items[i].match == JOB_NONE)
			continue;
		l = link_to(p, other_end(j, (uint32_t)i));
		if (l) {
			int32_t one = j->items[i].op == NCCL_SEND ? 1 : -1;

			l->sends_first += begins ? one : 0;
			l->ahead += one;
			l->least = MIN(l->least, l->ahead);
			l->most = MAX(l->most, l->ahead);
		}
		begins = false;
	}
}

static int32_t direction(const struct place *places, uint32_t a, uint32_t b)
{
	int32_t votes = 0;

	for (uint32_t i = 0; i < MIN(places[a].count, (uint32_t)NEIGHBOURS); i++)
		if (places[a].links[i].peer == b)
			votes += places[a].links[i].sends_first;
	for (uint32_t i = 0; i < MIN(places[b].count, (uint32_t)NEIGHBOURS); i++)
		if (places[b].links[i].peer == a)
			votes -= places[b].links[i].sends_first;
	return votes;
}

/* In the communicator that it sends and receives in. */
static int32_t rank_of(const struct job *j, uint32_t worker)
{
	return job_call(j, (uint32_t)j->first[worker])->rank;
}

/* Whether one side of a link of @list's @n workers is ahead of the other at times. */
static bool is_staggered(const struct place *places, const uint32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < places[list[i]].count; k++)
			if (places[list[i]].links[k].most - places[list[i]].links[k].least >= 2)
				return true;
	return false;
}

/* The worker after @at, coming from @from; JOB_NONE: the end. */
static uint32_t next_of(const struct place *places, uint32_t at, uint32_t from)
{
	for (uint32_t i = 0; i < places[at].count; i++)
		if (places[at].links[i].peer != from)
			return places[at].links[i].peer;
	return JOB_NONE;
}

/* The chain that begins at @end (a worker with one neighbour): its workers in @list; 0: it is none. */
static size_t follow(struct place *places, uint32_t end, uint32_t *list, size_t most)
{
	uint32_t from = JOB_NONE, at = end;
	size_t n = 0;

	while (at != JOB_NONE && n < most) {
		uint32_t next;

		if (places[at].count > 2)
			return 0;
		list[n++] = at;
		next = next_of(places, at, from);
		from = at;
		at = next;
		if (at == end)
			break;
	}
	return n;
}

/* A ring is a pipeline with interleaved stages if one worker alone begins the steps with a Send. */
static bool begin_ring(const struct place *places, uint32_t *list, size_t n)
{
	size_t begins = n, found = 0;

	for (size_t i = 0; i < n; i++) {
		int32_t votes = 0;

		for (uint32_t k = 0; k < places[list[i]].count; k++)
			votes += places[list[i]].links[k].sends_first;
		if (votes > 0) {
			begins = i;
			found++;
		}
	}
	if (found != 1 || n < 3)
		return false;
	for (size_t turned = 0; turned < begins; turned++) {
		uint32_t first = list[0];

		memmove(list, list + 1, (n - 1) * sizeof(*list));
		list[n - 1] = first;
	}
	/* The second stage is the one that the first sends to. */
	if (direction(places, list[0], list[1]) < direction(places, list[0], list[n - 1])) {
		for (size_t a = 1, b = n - 1; a < b; a++, b--) {
			uint32_t t = list[a];

			list[a] = list[b];
			list[b] = t;
		}
	}
	return true;
}

/* Numbers the workers of a chain; its length, or 0. */
static size_t number_chain(struct job *j, struct place *places, uint32_t end, uint32_t *list)
{
	size_t n = follow(places, end, list, j->worker_count);
	int64_t forward = 0;
	bool ring = places[end].count == 2;

	for (size_t i = 0; i < n; i++)
		places[list[i]].chain = (int32_t)end;
	if (n < 2 || (ring && !begin_ring(places, list, n)))
		return 0;
	for (size_t i = 0; !ring && i + 1 < n; i++)
		forward += direction(places, list[i], list[i + 1]);
	if (!ring && forward == 0) {
		if (!is_staggered(places, list, n))
			return 0; /* both at once: an exchange */
		forward = rank_of(j, list[n - 1]) - rank_of(j, list[0]);
	}
	for (size_t i = 0; i < n; i++)
		j->stage[list[i]] = (int32_t)(forward < 0 ? n - 1 - i : i);
	return n;
}

/* Stages of all chains of the greatest length; shorter ones lack a worker. */
static int find_chains(struct job *j, struct place *places)
{
	_cleanup_free_ uint32_t *list = calloc(j->worker_count + 1, sizeof(*list));
	_cleanup_free_ uint32_t *length = calloc(j->worker_count + 1, sizeof(*length));
	size_t longest = 0, chained = 0, linked = 0;

	if (!list || !length)
		return -ENOMEM;
	for (uint32_t neighbours = 1; neighbours <= 2; neighbours++) {
		for (uint32_t w = 0; w < j->worker_count; w++) {
			size_t n;

			if (places[w].count != neighbours || places[w].chain >= 0)
				continue;
			n = number_chain(j, places, w, list);
			for (size_t i = 0; i < n; i++)
				length[list[i]] = (uint32_t)n;
			longest = MAX(longest, n);
		}
	}
	for (uint32_t w = 0; w < j->worker_count; w++) {
		linked += places[w].count > 0;
		if (length[w] != longest || longest < 2)
			j->stage[w] = -1;
		else
			chained++;
	}
	j->stage_count = 1;
	if ((double)chained >= CHAINED_SHARE * (double)linked && longest >= 2)
		j->stage_count = (int32_t)longest;
	else
		memset(j->stage, 0xff, j->worker_count * sizeof(*j->stage));
	return 0;
}

/* Workers of broken chains have the stage of those they reduce with, if all of these agree. */
static int adopt_stages(struct job *j)
{
	_cleanup_free_ int32_t *of = calloc(j->comm_count + 1, sizeof(*of)); /* + 1; -1: several */

	if (!of)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->item_count; i++) {
		int32_t stage = j->stage[job_item_worker(j, i)] + 1;
		int32_t *s = &of[j->items[i].comm];

		if (!stage || blame_is_pair(j->items[i].op))
			continue;
		*s = *s == 0 || *s == stage ? stage : -1;
	}
	for (uint32_t i = 0; i < j->item_count; i++) {
		uint32_t w = job_item_worker(j, i);

		if (j->stage[w] < 0 && of[j->items[i].comm] > 0 && !blame_is_pair(j->items[i].op))
			j->stage[w] = of[j->items[i].comm] - 1;
	}
	return 0;
}

struct size { /* of communicators, and how many members all of that size have */
	uint32_t nranks;
	size_t have;
};

ORDER(by_nranks, struct size, ASCENDING(nranks))

/* Sizes that most workers have a communicator of: *ret of them in @list, in order. */
static void find_common(const struct job *j, struct size *list, size_t *ret)
{
	size_t n = 0, kept = 0, end;

	for (size_t i = 0; i < j->comm_count; i++)
		if (j->comms[i].collectives)
			list[n++] = (struct size){j->comms[i].nranks, j->comms[i].members};
	SORT(list, n, by_nranks);
	for (size_t i = 0; i < n; i = end) {
		struct size all = {list[i].nranks, 0};

		for (end = i; end < n && list[end].nranks == all.nranks; end++)
			all.have += list[end].have;
		if ((double)all.have >= COMMON_SHARE * (double)j->worker_count)
			list[kept++] = all;
	}
	*ret = kept;
}

static bool is_common(const struct job_comm *c, const struct size *common, size_t count)
{
	const struct size key = {.nranks = c->nranks};

	return bsearch(&key, common, count, sizeof(*common), by_nranks);
}

static int join_by_comms(struct job *j)
{
	_cleanup_free_ uint32_t *parent = calloc(j->worker_count + 1, sizeof(*parent));
	_cleanup_free_ uint32_t *one = calloc(j->comm_count + 1, sizeof(*one));
	_cleanup_free_ struct size *common = calloc(j->comm_count + 1, sizeof(*common));
	uint64_t most = 0;
	size_t sizes;

	if (!parent || !one || !common)
		return -ENOMEM;
	find_common(j, common, &sizes);
	for (uint32_t w = 0; w < j->worker_count; w++)
		parent[w] = w;
	for (size_t i = 0; i < j->comm_count; i++)
		if (j->comms[i].members)
			most = MAX(most, j->comms[i].bytes / j->comms[i].members);
	for (size_t i = 0; i < j->comm_count; i++) {
		const struct job_comm *c = &j->comms[i];
		bool tells = c->collectives && c->members &&
			     (double)(c->bytes / c->members) >= BYTES_SHARE * (double)most &&
			     is_common(c, common, sizes);

		one[i] = tells ? JOB_NONE : JOB_NONE - 1;
	}
	for (uint32_t i = 0; i < j->item_count; i++) {
		uint32_t w = job_item_worker(j, i), *o = &one[j->items[i].comm];

		if (*o == JOB_NONE - 1)
			continue;
		if (*o == JOB_NONE)
			*o = w;
		else
			parent[find_root(parent, w)] = find_root(parent, *o);
	}
	for (uint32_t w = 0; w < j->worker_count; w++)
		j->group[w] = find_root(parent, w);
	return 0;
}

/* Who has no stage has no peers. */
static int join_by_stages(struct job *j)
{
	_cleanup_free_ uint32_t *one = calloc((size_t)j->stage_count, sizeof(*one)); /* + 1 */

	if (!one)
		return -ENOMEM;
	for (uint32_t w = 0; w < j->worker_count; w++) {
		int32_t s = j->stage[w];

		if (s >= 0 && !one[s])
			one[s] = w + 1;
		j->group[w] = s < 0 ? w : one[s] - 1;
	}
	return 0;
}

/* Groups numbered from 0, and each worker's place in its group, by rank. */
static int number_groups(struct job *j)
{
	_cleanup_free_ uint32_t *number = calloc(j->worker_count + 1, sizeof(*number));
	_cleanup_free_ int32_t *members = calloc(j->worker_count + 1, sizeof(*members));

	if (!number || !members)
		return -ENOMEM;
	for (uint32_t w = 0; w < j->worker_count; w++) {
		uint32_t g = j->group[w];

		if (!number[g])
			number[g] = ++j->group_count;
	}
	for (uint32_t w = 0; w < j->worker_count; w++)
		j->group[w] = number[j->group[w]] - 1;
	for (uint32_t w = 0; w < j->worker_count; w++)
		j->replica[w] = members[j->group[w]]++;
	return 0;
}

int blame_roles(struct job *j)
{
	_cleanup_free_ struct place *places = calloc(j->worker_count + 1, sizeof(*places));
	_cleanup_free_ struct runs *runs = calloc(j->comm_count + 1, sizeof(*runs));
	int r;

	j->stage = calloc(j->worker_count + 1, sizeof(*j->stage));
	j->replica = calloc(j->worker_count + 1, sizeof(*j->replica));
	j->group = calloc(j->worker_count + 1, sizeof(*j->group));
	if (!places || !runs || !j->stage || !j->replica || !j->group)
		return -ENOMEM;
	for (uint32_t w = 0; w < j->worker_count; w++) {
		places[w].chain = j->stage[w] = -1;
		find_links(j, w, &places[w], runs);
	}
	r = find_chains(j, places);
	if (r == 0 && j->stage_count > 1)
		r = adopt_stages(j);
	if (r == 0)
		r = j->stage_count > 1 ? join_by_stages(j) : join_by_comms(j);
	return r < 0 ? r : number_groups(j);
}
