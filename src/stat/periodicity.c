/* SPDX-License-Identifier: Apache-2.0 */
/* periodicity.c - the period of a list of positions, with jitter and some of them missing.
 *
 * If at least half of the distances between neighbours are one period, the median distance is near
 * it: so there is one candidate and no search. A distance fits if it is within the tolerance (15 %
 * of the period, at least one unit from a period of 4 on) of one to four periods: up to three in a
 * row may be missing. It is a period if at least half of the distances are one period and 70 % fit.
 *
 * Chance: for things that happen at random the share of distances near any one length is largest
 * near their mean, 2 x tolerance / period / e: 11 %, and at most a third for short integer periods.
 * So one half cannot be reached but by few distances, and confidence allows for that:
 *   (fit - chance) / (1 - chance) x n / (n + 2) x held / n
 * with n distances, chance the share of all lengths that would fit, and held the share of places of
 * the grid that are taken. Below 0.3 nothing is said. A period of one unit is "always" and no
 * period. */
#include "stat/periodicity.h"

#include <math.h>

#include "base/macros.h"
#include "stat/robust.h"

#define LEAST_DISTANCES 3 /* three equal random distances: about one in a hundred */
#define MOST_POSITIONS  65536
#define LEAST_PERIOD    1.5
#define TOLERANCE       0.15
#define UNIT_FROM       4 /* shorter periods must be exact */
#define MULTIPLES       4
#define FIRST_SHARE     0.5
#define FIT_SHARE       0.7
#define LEAST_SURE      0.3
#define ROUNDS          3

struct fit {
	size_t first, any; /* distances of one period, of one to MULTIPLES */
	double first_sum;
	uint64_t places; /* of the grid that the fitting distances span */
	double grid;     /* places that all distances span, also those that do not fit */
};

static double tolerance(double period)
{
	double t = period * TOLERANCE;

	return period < UNIT_FROM ? 0.25 : MAX(t, 1.0);
}

static struct fit fit_of(const uint64_t *distances, size_t n, double period)
{
	struct fit f = {0};
	double allowed = tolerance(period);

	for (size_t i = 0; i < n; i++) {
		double d = (double)distances[i], times = floor(d / period + 0.5);

		f.grid += times;
		if (times < 1 || times > MULTIPLES || fabs(d - times * period) > allowed)
			continue;
		f.any++;
		f.places += (uint64_t)times;
		if (times == 1) {
			f.first++;
			f.first_sum += d;
		}
	}
	return f;
}

static double jitter_of(uint64_t *distances, size_t n, double period)
{
	for (size_t i = 0; i < n; i++) {
		double d = (double)distances[i], times = MAX(floor(d / period + 0.5), 1.0);

		distances[i] = (uint64_t)MIN(fabs(d - times * period) * 16, 1e18);
	}
	robust_sort(distances, n);
	return (double)robust_median(distances, n) / 16;
}

static uint64_t *distances_of(const uint64_t *positions, size_t n)
{
	uint64_t *d = calloc(n, sizeof(*d));

	for (size_t i = 0; d && i + 1 < n; i++)
		d[i] = positions[i + 1] - positions[i];
	return d;
}

bool periodicity_find(const uint64_t *positions, size_t n, struct periodicity *ret)
{
	_cleanup_free_ uint64_t *distances = NULL;
	double period, whole, chance, sure, count;
	struct fit f;

	n = MIN(n, (size_t)MOST_POSITIONS);
	if (n < LEAST_DISTANCES + 1)
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		if (positions[i + 1] <= positions[i])
			return false;
	distances = distances_of(positions, n);
	if (!distances)
		return false;
	n--;
	robust_sort(distances, n);
	period = (double)robust_median(distances, n);
	for (int i = 0; i < ROUNDS; i++) {
		f = fit_of(distances, n, period);
		if (f.first)
			period = f.first_sum / (double)f.first;
	}
	f = fit_of(distances, n, period);
	count = (double)n;
	if (period < LEAST_PERIOD || (double)f.first < FIRST_SHARE * count ||
		(double)f.any < FIT_SHARE * count)
		return false;
	chance = MIN(2 * tolerance(period) / period, 0.9);
	sure = ((double)f.any / count - chance) / (1 - chance) * count / (count + 2) *
	       (double)f.any / (double)f.places;
	if (sure < LEAST_SURE)
		return false;
	/* Over the whole range jitter does not add up. */
	whole = (double)(positions[n] - positions[0]) / MAX(f.grid, 1.0);
	*ret = (struct periodicity){
		.period = fabs(whole - period) <= tolerance(period) / 2 ? whole : period,
		.confidence = sure,
		.missed = f.places - f.any,
		.jitter = jitter_of(distances, n, period)};
	return true;
}
