/* SPDX-License-Identifier: Apache-2.0 */
/* blame_steps.c - where a job's steps begin: at a communication that comes once in each.
 *
 * One worker is looked at, the one with the most matched calls. Its calls are of kinds: same
 * communicator, operation, peer and (for collectives) size. A kind is a good beginning of steps if the
 * other kinds come equally often between any two of it: the sizes of a step's buckets do, whatever
 * their number, and so do the micro-batches of a pipeline. What comes rarely, a checkpoint's barrier or
 * an evaluation, divides the job evenly too: so of the kinds that are about as good as the best one the
 * most frequent is taken. A kind weighs as the logarithm of its calls, so that those of each layer do
 * not outvote the one that comes once in a step.
 *
 * A job that goes on with other communicators goes on with its steps. Calls that are all alike may be several a
 * step (blame_round.c).
 *
 * A job that has just begun has made the calls of its layers often and those of its steps once or twice:
 * as long as kinds have come less than LEAST times that may come again within YOUNG_NS, it is not known
 * what a step is, and no step is told.
 *
 * The stages of a pipeline begin their steps at different times: each has its own cuts, so that what
 * delays a worker once lies in one step. */
#include "blame/blame_job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "stat/robust.h"

#define LEAST         4   /* communications that make three steps */
#define KINDS_MAX     256 /* the first ones */
#define CANDIDATES    32
#define ABOUT_AS_GOOD 0.92
#define SAME_SHARE    0.7 /* of the steps that must have the same number of a kind */
#define BURST         20  /* part of their mean distance in which cuts are one */
#define COUNTED_MAX   64  /* of a kind in a step; more are as many */
#define YOUNG_NS      INT64_C(10000000000)
#define STEADY        0.9 /* evenness of the messages of whole steps */
#define AGAIN         2 /* times the time until it came first: what has not come again by then is rare */
#define LONGEST_NS    INT64_C(60000000000) /* of steps */

struct kind {
	uint64_t key;
	uint64_t alike; /* the same but for the communicator */
	size_t count;
	size_t first; /* item of the worker */
	int64_t first_ns, last_ns;
	double even;  /* what evenness() said; 0: it was not asked */
	bool is_even; /* likewise: of messages alone it is */
	bool pair;
};

struct kinds {
	struct kind list[KINDS_MAX];
	size_t count;
	uint16_t *of; /* by item of the worker; KINDS_MAX: none */
};

static uint64_t kind_key(const struct job *j, uint32_t item, bool with_bytes)
{
	const struct push_call *c = job_call(j, item);
	uint64_t key = hash_number(c->comm ^ (uint64_t)c->op << 48);

	if (blame_is_pair(c->op))
		return hash_number(key ^ (uint32_t)c->peer);
	return with_bytes ? hash_number(key ^ c->bytes) : key;
}

static uint64_t alike_key(const struct job *j, uint32_t item, bool with_bytes)
{
	const struct push_call *c = job_call(j, item);
	uint64_t key = hash_number((uint64_t)c->op << 48);

	if (blame_is_pair(c->op))
		return hash_number(key ^ (uint32_t)c->peer);
	return with_bytes ? hash_number(key ^ c->bytes) : key;
}

/* A job that goes on with other communicators, because it has restarted or its size has changed, makes the same
 * calls in them: a kind that begins when one like it has ended, and has gone on for a while, is that one. */
static void join_successors(struct kinds *s, size_t n)
{
	uint16_t now[KINDS_MAX + 1];
	bool any = false;

	for (size_t k = 0; k <= s->count; k++)
		now[k] = (uint16_t)k;
	now[KINDS_MAX] = KINDS_MAX;
	for (size_t k = 1; k < s->count; k++) {
		struct kind *y = &s->list[k];

		for (size_t i = 0; i < k; i++) {
			struct kind *x = &s->list[i];

			if (now[i] != i || x->alike != y->alike || x->last_ns >= y->first_ns ||
				y->last_ns - x->last_ns < YOUNG_NS)
				continue;
			x->count += y->count;
			x->last_ns = y->last_ns;
			y->count = 0;
			now[k] = (uint16_t)i;
			any = true;
			break;
		}
	}
	for (size_t i = 0; any && i < n; i++)
		s->of[i] = now[s->of[i]];
}

/* How many kinds come only once. */
static size_t find_kinds(
	const struct job *j, size_t first, size_t end, bool with_bytes, struct kinds *ret)
{
	size_t single = 0;

	ret->count = 0;
	for (size_t i = first; i < end; i++) {
		uint64_t key = kind_key(j, (uint32_t)i, with_bytes);
		size_t k = 0;

		ret->of[i - first] = KINDS_MAX;
		if (j->items[i].match == JOB_NONE)
			continue;
		while (k < ret->count && ret->list[k].key != key)
			k++;
		if (k == KINDS_MAX)
			continue;
		if (k == ret->count)
			ret->list[ret->count++] = (struct kind){.key = key,
				.alike = alike_key(j, (uint32_t)i, with_bytes),
				.first = i - first,
				.first_ns = j->items[i].enter_ns,
				.pair = blame_is_pair(j->items[i].op)};
		ret->list[k].count++;
		ret->list[k].last_ns = j->items[i].enter_ns;
		ret->of[i - first] = (uint16_t)k;
	}
	if (with_bytes)
		join_successors(ret, end - first);
	for (size_t k = 0; k < ret->count; k++)
		single += ret->list[k].count == 1;
	return single;
}

/* Weight of the kinds that come equally often between any two calls of kind @at, as a share of all. */
static double evenness(
	struct kinds *s, size_t n, size_t at, uint32_t (*counted)[COUNTED_MAX], uint32_t *now)
{
	size_t spans = 0;
	double good[2] = {0}, all[2] = {0}; /* of collectives, of messages */
	bool inside = false;

	memset(counted, 0, s->count * sizeof(*counted));
	memset(now, 0, s->count * sizeof(*now));
	for (size_t i = 0; i < n; i++) {
		if (s->of[i] == KINDS_MAX)
			continue;
		if (s->of[i] == at) {
			for (size_t k = 0; inside && k < s->count; k++)
				counted[k][MIN(now[k], (uint32_t)COUNTED_MAX - 1)]++;
			spans += inside;
			memset(now, 0, s->count * sizeof(*now));
			inside = true;
		}
		now[s->of[i]]++;
	}
	for (size_t k = 0; k < s->count; k++) {
		uint32_t most = 0;
		double weight = log2(1 + (double)s->list[k].count);

		if (s->list[k].count < LEAST)
			continue;
		for (size_t c = 1; c < COUNTED_MAX; c++)
			most = MAX(most, counted[k][c]);
		all[s->list[k].pair] += weight;
		good[s->list[k].pair] += most >= SAME_SHARE * (double)spans ? weight : 0;
	}
	s->list[at].is_even = good[1] >= STEADY * all[1];
	return all[0] + all[1] > 0 ? (good[0] + good[1]) / (all[0] + all[1]) : 0;
}

/* The kind that begins steps; KINDS_MAX: none. */
static size_t best_kind(struct kinds *s, size_t n)
{
	_cleanup_free_ uint32_t(*counted)[COUNTED_MAX] = calloc(KINDS_MAX, sizeof(*counted));
	_cleanup_free_ uint32_t *now = calloc(KINDS_MAX, sizeof(*now));
	double best = 0;
	size_t chosen = KINDS_MAX, tried = 0;
	bool any_collective = false;

	if (!counted || !now)
		return KINDS_MAX;
	for (size_t k = 0; k < s->count; k++)
		any_collective |= !s->list[k].pair && s->list[k].count >= LEAST;
	for (size_t k = 0; k < s->count; k++) {
		bool again = false;

		s->list[k].even = 0;
		for (size_t i = 0; i < k; i++)
			again |= s->list[i].even > 0 && s->list[i].count == s->list[k].count;
		if (s->list[k].count < LEAST || again || (any_collective && s->list[k].pair) ||
			tried++ >= CANDIDATES)
			continue;
		s->list[k].even = evenness(s, n, k, counted, now);
		best = MAX(best, s->list[k].even);
	}
	for (size_t k = 0; k < s->count; k++)
		if (s->list[k].even > 0 && s->list[k].even >= ABOUT_AS_GOOD * best &&
			(chosen == KINDS_MAX || s->list[k].count > s->list[chosen].count))
			chosen = k;
	return chosen;
}

/* Whether @x, which has come once or in one burst, did so lately: it is not known when it will again. */
static bool is_new(const struct job *j, const struct kind *x)
{
	return j->end_ns - x->last_ns <= AGAIN * (x->first_ns - j->begin_ns);
}

/* Whether @x, which has hardly come yet, may come as often as steps of up to @most_ns do: what came a few times in
 * a row and never again does not. */
static bool may_be_step(const struct job *j, const struct kind *x, int64_t most_ns)
{
	int64_t apart = j->end_ns - j->begin_ns;

	if (x->count > 1)
		apart = (x->last_ns - x->first_ns) / (int64_t)(x->count - 1);
	else if (!is_new(j, x))
		return false;
	return apart < most_ns && x->first_ns - j->begin_ns <= 2 * apart &&
	       j->end_ns - x->last_ns <= 2 * apart;
}

/* Whether a kind that has hardly come yet may be the one that steps begin with, and not @chosen. What came
 * before @chosen's first call belongs to the start of the job. */
static bool is_too_young(const struct job *j, const struct kinds *s, size_t chosen)
{
	for (size_t k = 0; k < s->count; k++) {
		const struct kind *x = &s->list[k];

		if (x->count && x->count < LEAST && !x->pair && x->first > s->list[chosen].first &&
			may_be_step(j, x, YOUNG_NS))
			return true;
	}
	return false;
}

/* Likewise, of steps as long as they get, @x having come as often as it likes. */
static bool may_come_again(const struct job *j, const struct kind *x)
{
	if (AGAIN * (x->last_ns - x->first_ns) < x->first_ns - j->begin_ns)
		return is_new(j, x);
	return x->count < LEAST && may_be_step(j, x, LONGEST_NS);
}

/* Whether steps that begin with @chosen are whole ones: in the first step of a job its parts, layers and
 * micro-batches, come again and again as well. Then messages do not come equally often in each or have
 * hardly come, or another collective has come for the first time just now. Of messages alone it is not known. */
static bool is_steady(const struct job *j, const struct kinds *s, size_t chosen)
{
	if (s->list[chosen].pair || !s->list[chosen].is_even)
		return false;
	for (size_t k = 0; k < s->count; k++) {
		const struct kind *x = &s->list[k];

		if (x->pair ? x->count < LEAST && j->end_ns - j->begin_ns < LONGEST_NS
			    : x->count && x->first > s->list[chosen].first && may_come_again(j, x))
			return false;
	}
	return true;
}

/* The worker with the most matched calls, of @group or of all (JOB_NONE). */
static size_t busiest_worker(const struct job *j, uint32_t group)
{
	size_t best = 0, most = 0;

	for (size_t w = 0; w < j->worker_count; w++) {
		size_t n = 0;

		if (group != JOB_NONE && j->group[w] != group)
			continue;

		for (size_t i = j->first[w]; i < j->first[w + 1]; i++)
			n += j->items[i].match != JOB_NONE;
		if (n > most) {
			most = n;
			best = w;
		}
	}
	return best;
}

/* Collectives of one kind may come in bursts, as buckets of one size do: a burst begins one step. How many of the
 * @n cuts are left. */
static size_t join_bursts(int64_t *cuts, size_t n)
{
	int64_t apart = n > 1 ? (cuts[n - 1] - cuts[0]) / (int64_t)(n - 1) / BURST : 0;
	int64_t before = INT64_MIN / 2;
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t now = cuts[i];

		if (now - before >= apart)
			cuts[left++] = now;
		before = now;
	}
	return left;
}

/* The cuts that begin steps, where several alike calls make one: how many. */
static int keep_rounds(
	const struct job *j, size_t worker, const uint32_t *matches, int64_t *cuts, size_t *n)
{
	size_t round, first, kept = 0;
	int r = blame_round(j, matches, cuts, *n, j->workers[worker].step_ns, &round, &first);

	for (size_t i = first; r == 0 && round > 1 && i < *n; i += round)
		cuts[kept++] = cuts[i];
	if (r == 0 && round > 1)
		*n = kept;
	return r;
}

/* Times at which @worker had got past a communication that begins a step: *ret_cuts is the caller's.
 * How many; 0: none can be told. */
static int find_cuts(
	const struct job *j, size_t worker, int64_t **ret_cuts, size_t *ret_count, bool *ret_steady)
{
	size_t first = j->first[worker], end = j->first[worker + 1], kind, n = 0;
	_cleanup_free_ struct kinds *s = calloc(1, sizeof(*s));
	_cleanup_free_ uint16_t *of = calloc(end - first + 1, sizeof(*of));
	_cleanup_free_ uint32_t *matches = NULL;
	_cleanup_free_ int64_t *cuts = NULL;
	bool by_length;
	int r;

	*ret_count = 0;
	*ret_steady = false;
	if (!s || !of)
		return -ENOMEM;
	s->of = of;
	/* Where sizes change with every step they tell nothing. */
	if (find_kinds(j, first, end, true, s) * 2 > s->count)
		find_kinds(j, first, end, false, s);
	kind = best_kind(s, end - first);
	if (kind == KINDS_MAX || is_too_young(j, s, kind))
		return 0;
	*ret_steady = is_steady(j, s, kind);
	cuts = calloc(s->list[kind].count + 1, sizeof(*cuts));
	matches = calloc(s->list[kind].count + 1, sizeof(*matches));
	if (!cuts || !matches)
		return -ENOMEM;
	/* The micro-batches of a pipeline are alike: that they are several a step can be told only by its length. They may
	 * all end with one wait. */
	by_length = s->list[kind].pair && j->workers[worker].step_ns;
	for (size_t i = first; i < end; i++) {
		int64_t at = by_length ? j->items[i].enter_ns : j->items[i].leave_ns;

		if (of[i - first] == kind && (!n || at > cuts[n - 1])) {
			matches[n] = j->items[i].match;
			cuts[n++] = at;
		}
	}
	r = s->list[kind].pair && !by_length ? 0 : keep_rounds(j, worker, matches, cuts, &n);
	*ret_cuts = TAKE(cuts);
	*ret_count = join_bursts(*ret_cuts, n);
	return r;
}

int blame_steps(struct job *j)
{
	size_t most = JOB_CELLS_MAX / MAX(j->worker_count, (size_t)1), n, skip;
	_cleanup_free_ uint64_t *lengths = NULL;
	int r;

	free(TAKE(j->cuts));
	j->step_count = 0;
	if (!j->worker_count)
		return 0;
	r = find_cuts(j, busiest_worker(j, JOB_NONE), &j->cuts, &n, &j->is_steady);
	if (r < 0 || n < LEAST)
		return r;
	lengths = calloc(n, sizeof(*lengths));
	if (!lengths)
		return -ENOMEM;
	skip = n - 1 > most ? n - 1 - most : 0;
	memmove(j->cuts, j->cuts + skip, (n - skip) * sizeof(*j->cuts));
	j->step_count = n - 1 - skip;
	for (size_t i = 0; i < j->step_count; i++)
		lengths[i] = (uint64_t)(j->cuts[i + 1] - j->cuts[i]);
	robust_sort(lengths, j->step_count);
	j->step_ns = robust_median(lengths, j->step_count);
	return 0;
}

/* Puts each of a group's own cuts next to the job's that it is nearest to; false: they are not the same
 * steps. */
static bool align_cuts(const struct job *j, const int64_t *cuts, size_t n, int64_t *ret)
{
	size_t near = 0;

	for (size_t i = 0; i <= j->step_count; i++) {
		while (near + 1 < n &&
			llabs(cuts[near + 1] - j->cuts[i]) <= llabs(cuts[near] - j->cuts[i]))
			near++;
		if ((uint64_t)llabs(cuts[near] - j->cuts[i]) > j->step_ns / 2 + 1)
			ret[i] = i ? MAX(j->cuts[i], ret[i - 1]) : j->cuts[i];
		else
			ret[i] = cuts[near];
		if (i && ret[i] <= ret[i - 1])
			return false;
	}
	return true;
}

int blame_group_cuts(struct job *j)
{
	j->group_cuts =
		calloc(((size_t)j->group_count + 1) * (j->step_count + 1), sizeof(*j->group_cuts));
	if (!j->group_cuts)
		return -ENOMEM;
	for (uint32_t g = 0; g < j->group_count; g++) {
		_cleanup_free_ int64_t *cuts = NULL;
		int64_t *row = j->group_cuts + (size_t)g * (j->step_count + 1);
		size_t n = 0;
		bool steady;
		int r = j->stage_count > 1 ? find_cuts(j, busiest_worker(j, g), &cuts, &n, &steady)
					   : 0;

		if (r < 0)
			return r;
		if (!n || !align_cuts(j, cuts, n, row))
			memcpy(row, j->cuts, (j->step_count + 1) * sizeof(*row));
	}
	return 0;
}
