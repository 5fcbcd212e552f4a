/* SPDX-License-Identifier: Apache-2.0 */
/* robust.c - nearest-rank order statistics over sorted arrays. No state, no allocation of its own.
 *
 * Sorting costs O(n log n) whatever the input (no quickselect whose worst case a hostile file could
 * ask for); everything else is O(n) or less. */
#include "stat/robust.h"

#include <math.h>
#include <string.h>

#include "base/search.h"
#include "base/hash.h"
#include "base/macros.h"

struct ranked {
	uint64_t value;
	size_t at;
};

ORDER(by_value, struct ranked, ASCENDING(value) ?: ASCENDING(at))

#define LOWEST_SHARE 0.05
#define HIGH_PARTS   4 /* the first of so many parts of the high ones has come */

double robust_on_the_way(const uint64_t *values, size_t n, uint64_t high, uint64_t *scratch)
{
	size_t highs = 0, between = 0;
	double low, all;

	if (!n)
		return 0;
	memcpy(scratch, values, n * sizeof(*scratch));
	robust_sort(scratch, n);
	low = (double)MAX(robust_quantile(scratch, n, LOWEST_SHARE), UINT64_C(1));
	all = log((double)high / low);
	for (size_t i = 0; i < n; i++)
		highs += log((double)MAX(values[i], UINT64_C(1)) / low) >= all * 3 / 4;
	for (size_t i = 0, seen = 0; i < n && seen * HIGH_PARTS <= highs; i++) {
		double grown = log((double)MAX(values[i], UINT64_C(1)) / low);

		seen += grown >= all * 3 / 4;
		between += grown > all / 4 && grown < all * 3 / 4;
	}
	return (double)between / (double)n;
}

int rank_values(const uint64_t *values, size_t n, double *ret)
{
	_cleanup_free_ struct ranked *order = calloc(n + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct ranked){values[i], i};
	SORT(order, n, by_value);
	for (size_t i = 0, to; i < n; i = to) {
		for (to = i + 1; to < n && order[to].value == order[i].value;)
			to++;
		for (size_t k = i; k < to; k++)
			ret[order[k].at] = (double)(i + 1 + to) / 2;
	}
	return 0;
}

int64_t select_kth(int64_t *v, size_t n, size_t k, uint64_t seed)
{
	size_t low = 0, high = n;

	while (high - low > 1) {
		int64_t pivot;
		size_t less = low, more = high, i = low;

		seed = hash_number(seed + 1);
		pivot = v[low + seed % (high - low)];
		while (i < more) { /* [low, less) smaller, [less, i) equal, [more, high) greater */
			int64_t x = v[i];

			if (x < pivot) {
				v[i++] = v[less];
				v[less++] = x;
			} else if (x > pivot) {
				v[i] = v[--more];
				v[more] = x;
			} else {
				i++;
			}
		}
		if (k >= less && k < more)
			return pivot;
		if (k < less)
			high = less;
		else
			low = more;
	}
	return v[low];
}

ORDER(compare, uint64_t, COMPARE(*x, *y))

void robust_sort(uint64_t *values, size_t n)
{
	SORT(values, n, compare);
}

/* A hair less than q: 0.07 * 100 is 7.000000000000001 in binary, and its rank is 7. */
static size_t nearest_rank(size_t n, double q)
{
	double rank = ceil(q * (1 - 1e-12) * (double)n);

	if (!(rank >= 1))
		return 1;
	return rank >= (double)n ? n : (size_t)rank;
}

uint64_t robust_quantile(const uint64_t *sorted, size_t n, double q)
{
	return n ? sorted[nearest_rank(n, q) - 1] : 0;
}

uint64_t robust_median(const uint64_t *sorted, size_t n)
{
	return robust_quantile(sorted, n, 0.5);
}

/* The distances grow outwards from the median on both sides, so the k-th smallest is found by
 * walking outwards k steps, each time on the nearer side. */
uint64_t robust_median_of(uint64_t *values, size_t n)
{
	robust_sort(values, n);
	return robust_median(values, n);
}

uint64_t robust_mad(const uint64_t *sorted, size_t n)
{
	uint64_t median = robust_median(sorted, n), distance = 0;
	size_t left, right, rank;

	if (!n)
		return 0;
	rank = nearest_rank(n, 0.5);
	left = rank; /* one past the next value to take on the left; the median itself first */
	right = rank;
	for (size_t k = 0; k < rank; k++) {
		uint64_t below = left > 0 ? median - sorted[left - 1] : UINT64_MAX;
		uint64_t above = right < n ? sorted[right] - median : UINT64_MAX;

		if (below <= above)
			left--;
		else
			right++;
		distance = MIN(below, above);
	}
	return distance;
}
