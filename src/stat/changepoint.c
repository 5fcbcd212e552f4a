/* SPDX-License-Identifier: Apache-2.0 */
/* changepoint.c - one dominant shift of level, by ranks, so that wild values weigh no more than
 * others.
 *
 * First the split with the largest sum of centred ranks before it (Pettitt's statistic, whose
 * chance is about 2 exp(-6 K^2 / (n^3 + n^2))). Then, twice: the medians of both sides, the middle
 * between them, and the split that puts the most values on their own side of the middle. It is a
 * shift if
 *   chance is below one in ten thousand (in 400 values, each side needs some 26 for that);
 *   both sides have at least 8 values, so a spike or a few are none;
 *   the medians differ by twice the median distance of the values from their own side's median;
 *   at least 80 % of each side are on their side of the middle: a drift or a mixture of two levels
 *   is none;
 *   the last quarter of the later side is still on its side: what went back is no lasting shift.
 * Confidence = (1 - sqrt(chance)) x (how far the shares on their own side are from a half, 0..1).
 * Neighbouring values are taken as independent, which errs towards finding: the other conditions
 * make up for it. */
#include "stat/changepoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "stat/rank.h"
#include "stat/robust.h"

#define MOST_VALUES  65536
#define LEAST_SIDE   8
#define CHANCE       1e-4
#define NOISE_FACTOR 2
#define OWN_SIDE     0.8
#define REFINEMENTS  2
#define LAST_PART    4 /* one quarter */

/* The split by ranks, and how likely chance alone makes one as strong. */
static double split_by_rank(const uint64_t *values, size_t n, size_t *ret_index)
{
	_cleanup_free_ double *ranks = calloc(n, sizeof(*ranks));
	double sum = 0, best = 0, size = (double)n;

	if (!ranks || rank_values(values, n, ranks) < 0)
		return 1;
	for (size_t i = 0; i + 1 < n; i++) {
		sum += 2 * ranks[i] - (size + 1);
		if (fabs(sum) > best) {
			best = fabs(sum);
			*ret_index = i + 1;
		}
	}
	return MIN(2 * exp(-6 * best * best / (size * size * size + size * size)), 1.0);
}

static uint64_t median_of(const uint64_t *values, size_t n, uint64_t *scratch)
{
	memcpy(scratch, values, n * sizeof(*scratch));
	robust_sort(scratch, n);
	return robust_median(scratch, n);
}

static bool is_low(uint64_t v, uint64_t middle)
{
	return v <= middle;
}

/* The split with the most values on their own side of @middle. */
static size_t split_by_level(const uint64_t *values, size_t n, uint64_t middle, bool low_first)
{
	int64_t right = 0, best = INT64_MIN;
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (i >= LEAST_SIDE && n - i >= LEAST_SIDE && right > best) {
			best = right;
			at = i;
		}
		right += is_low(values[i], middle) == low_first ? 1 : -1;
	}
	return at;
}

static double share_low(const uint64_t *values, size_t n, uint64_t middle)
{
	size_t low = 0;

	for (size_t i = 0; i < n; i++)
		low += is_low(values[i], middle);
	return (double)low / (double)n;
}

static uint64_t middle_of(const struct changepoint *c)
{
	uint64_t low = MIN(c->before, c->after), high = MAX(c->before, c->after);

	return low + (high - low) / 2;
}

static void medians(const uint64_t *values, size_t n, struct changepoint *c, uint64_t *scratch)
{
	c->before = median_of(values, c->index, scratch);
	c->after = median_of(values + c->index, n - c->index, scratch);
}

static bool is_above_noise(
	const uint64_t *values, size_t n, const struct changepoint *c, uint64_t *scratch)
{
	uint64_t shift = MAX(c->before, c->after) - MIN(c->before, c->after);

	for (size_t i = 0; i < n; i++) {
		uint64_t own = i < c->index ? c->before : c->after;

		scratch[i] = MAX(values[i], own) - MIN(values[i], own);
	}
	robust_sort(scratch, n);
	return shift > 0 && shift / NOISE_FACTOR >= robust_median(scratch, n);
}

static bool find(const uint64_t *values, size_t n, uint64_t *scratch, struct changepoint *ret)
{
	struct changepoint c = {0};
	double chance = split_by_rank(values, n, &c.index), before, after, last;
	bool low_first;
	size_t tail;

	if (chance > CHANCE)
		return false;
	for (int i = 0; i < REFINEMENTS; i++) {
		medians(values, n, &c, scratch);
		c.index = split_by_level(values, n, middle_of(&c), c.before < c.after);
	}
	if (c.index < LEAST_SIDE || n - c.index < LEAST_SIDE)
		return false;
	medians(values, n, &c, scratch);
	low_first = c.before < c.after;
	tail = MAX((n - c.index) / LAST_PART, (size_t)1);
	before = share_low(values, c.index, middle_of(&c));
	after = share_low(values + c.index, n - c.index, middle_of(&c));
	last = share_low(values + n - tail, tail, middle_of(&c));
	if (!low_first)
		before = 1 - before;
	else {
		after = 1 - after;
		last = 1 - last;
	}
	if (before < OWN_SIDE || after < OWN_SIDE || last < OWN_SIDE ||
		!is_above_noise(values, n, &c, scratch))
		return false;
	c.confidence = (1 - sqrt(chance)) * (before + after - 1);
	*ret = c;
	return true;
}

bool changepoint_find(const uint64_t *values, size_t n, struct changepoint *ret)
{
	size_t every = (n + MOST_VALUES - 1) / MOST_VALUES, kept = every ? n / every : 0;
	_cleanup_free_ uint64_t *copy = NULL, *scratch = NULL;

	if (kept < 2 * LEAST_SIDE)
		return false;
	copy = calloc(kept, sizeof(*copy));
	scratch = calloc(kept, sizeof(*scratch));
	if (!copy || !scratch)
		return false;
	for (size_t i = 0; i < kept; i++)
		copy[i] = values[i * every];
	if (!find(copy, kept, scratch, ret))
		return false;
	ret->index *= every;
	return true;
}
