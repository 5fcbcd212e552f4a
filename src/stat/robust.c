/* SPDX-License-Identifier: Apache-2.0 */
/* robust.c - nearest-rank order statistics over sorted arrays. No state, no allocation of its own.
 *
 * Sorting costs O(n log n) whatever the input (no quickselect whose worst case a hostile file could
 * ask for); everything else is O(n) or less. */
#include "stat/robust.h"

#include <math.h>
#include <stdlib.h>

#include "base/macros.h"

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void robust_sort(uint64_t *values, size_t n)
{
	if (n > 1)
		qsort(values, n, sizeof(*values), compare);
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
