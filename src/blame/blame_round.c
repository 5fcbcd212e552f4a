/* SPDX-License-Identifier: Apache-2.0 */
/* blame_round.c - how many calls that are all alike make one step: the buckets of a model whose layers have one
 * size, or the layers of one that is sharded.
 *
 * They are told from steps by what all workers do: between the last call of a step and the first of the next each
 * of them is busy for far longer than between two calls of one step, again and again after the same number of
 * calls. The least that any worker computes counts, so that one who is late every so many steps makes no round of
 * them. Where the engine knows how long a step is, that decides. */
#include "blame/blame_job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_MAX    16
#define ROUND_TOLD   64   /* likewise, where the length of a step is known */
#define ROUNDS_LEAST 4    /* that must have been seen */
#define FAR_LONGER   4.0  /* than any other distance of a round */
#define KEPT_SHARE   0.85 /* of the distances that are as the round says */
#define TOLD_NEAR    0.2  /* of a step's length */
#define WALK_MAX     4096 /* calls between two of these */

/* What @item's worker computes from there until it comes to @match; negative: it does not. */
static float own_until(const struct job *j, uint32_t item, uint32_t match)
{
	const struct job_item *t = &j->items[item];
	size_t end = MIN(j->first[t->worker + 1], (size_t)item + WALK_MAX);
	int64_t at = t->leave_ns, own = 0;

	for (size_t i = (size_t)item + 1; i < end; i++) {
		const struct job_item *x = &j->items[i];
		int64_t until = x->match == match ? x->enter_ns : x->start_ns;

		own += MAX(until - at, INT64_C(0));
		if (x->match == match)
			return (float)own;
		at = MAX(at, x->leave_ns);
	}
	return -1;
}

/* From the match before to this one: the least of all workers. */
static float least_own(const struct job *j, uint32_t from, uint32_t to)
{
	const struct job_match *m = &j->matches[from];
	float least = -1;

	for (uint32_t k = 0; k < m->count; k++) {
		float own = own_until(j, j->members[m->first + k], to);

		if (own >= 0 && (least < 0 || own < least))
			least = own;
	}
	return MAX(least, 0.0F);
}

/* Median of each phase of rounds of @m. */
static void phase_medians(const float *own, size_t n, size_t m, float *room, float *ret)
{
	for (size_t p = 0; p < m; p++) {
		size_t count = 0;

		for (size_t i = p; i < n; i += m)
			room[count++] = own[i];
		ret[p] = blame_median(room, count);
	}
}

/* Whether every @m-th distance, and no other, is far longer; *ret_long is its phase. */
static bool is_round(const float *own, size_t n, size_t m, float *room, size_t *ret_long)
{
	float medians[ROUND_TOLD], next = 0, limit;
	size_t longest = 0, kept = 0;

	phase_medians(own, n, m, room, medians);
	for (size_t p = 1; p < m; p++)
		if (medians[p] > medians[longest])
			longest = p;
	for (size_t p = 0; p < m; p++)
		next = p == longest ? next : MAX(next, medians[p]);
	if (medians[longest] <= 0 || (double)medians[longest] < FAR_LONGER * (double)next)
		return false;
	limit = medians[longest] / 2;
	for (size_t i = 0; i < n; i++)
		kept += (own[i] > limit) == (i % m == longest);
	*ret_long = longest;
	return (double)kept >= KEPT_SHARE * (double)n;
}

/* The longest phase of rounds of @m, whether the others are much shorter or not. */
static size_t longest_phase(const float *own, size_t n, size_t m, float *room)
{
	float medians[ROUND_TOLD];
	size_t longest = 0;

	phase_medians(own, n, m, room, medians);
	for (size_t p = 1; p < m; p++)
		if (medians[p] > medians[longest])
			longest = p;
	return longest;
}

/* How many of the cuts come in @step_ns: 0: none do. */
static size_t round_of_length(const int64_t *cuts, size_t n, uint64_t step_ns, float *room)
{
	double best = TOLD_NEAR;
	size_t round = 0;

	for (size_t m = 1; m <= ROUND_TOLD && m * ROUNDS_LEAST < n; m++) {
		double off;

		for (size_t i = 0; i + m < n; i++)
			room[i] = (float)(cuts[i + m] - cuts[i]);
		off = fabs((double)blame_median(room, n - m) / (double)step_ns - 1);
		if (off < best) {
			best = off;
			round = m;
		}
	}
	return round;
}

int blame_round(const struct job *j, const uint32_t *matches, const int64_t *cuts, size_t n,
	uint64_t step_ns, size_t *ret_round, size_t *ret_first)
{
	_cleanup_free_ float *own = calloc(2 * n + 2, sizeof(*own));
	float *room = own ? own + n + 1 : NULL;
	size_t told, longest = 0;

	*ret_round = 1;
	*ret_first = 0;
	if (!own)
		return -ENOMEM;
	told = step_ns ? round_of_length(cuts, n, step_ns, room) : 0;
	if (told == 1 || n < 2 * ROUNDS_LEAST)
		return 0;
	for (size_t i = 0; i + 1 < n; i++)
		own[i] = least_own(j, matches[i], matches[i + 1]);
	if (told) {
		*ret_round = told;
		*ret_first = (longest_phase(own, n - 1, told, room) + 1) % told;
		return 0;
	}
	for (size_t m = 2; m <= ROUND_MAX && m * ROUNDS_LEAST < n; m++) {
		if (!is_round(own, n - 1, m, room, &longest))
			continue;
		*ret_round = m;
		*ret_first = (longest + 1) % m;
		break;
	}
	return 0;
}
