/* SPDX-License-Identifier: Apache-2.0 */
/* spread.c - see spread.h.
 *
 * The median of the distances from the median (MAD), times 1.4826, is the standard deviation of many
 * normal values. Of few it is too small on average and itself uncertain: with three nodes, 8 % of the
 * healthy would be below median - 2 * 1.4826 * MAD instead of 2.3 %. The factors below put that right.
 * They come from 4e7 normal values for each row: the quantile of (median - x) / (1.4826 MAD) at the
 * normal distribution's tail beyond k, divided by k. Even and odd numbers differ, because the median of
 * an even number is a mean. Beyond 16 values their logarithm falls as 1/n (to 0.5 % at k = 4). */
#include "cluster/detect/spread.h"

#include <math.h>

#include "base/search.h"
#include "base/macros.h"

#define NORMAL       1.4826 /* standard deviation over MAD of normal values */
#define FACTOR_FIRST 3      /* of how many values the first row is */
#define FACTOR_LAST  16
#define FACTOR_STEP  0.5 /* of k, from 1 to 4 */

static const double factors[][7] = {
	{0.7365, 1.6049, 3.9181, 11.856, 45.904, 234.39, 1513.9},
	{1.0251, 1.1137, 1.6834, 2.7711, 5.1148, 10.697, 25.813},
	{0.9059, 1.2875, 1.9275, 3.1831, 5.9094, 12.491, 29.787},
	{0.9673, 1.1371, 1.4761, 2.0211, 2.9693, 4.7275, 8.2553},
	{0.9466, 1.1868, 1.5342, 2.1062, 3.1079, 4.9609, 8.5631},
	{0.9600, 1.1164, 1.3499, 1.6984, 2.2424, 3.1230, 4.6305},
	{0.9636, 1.1380, 1.3741, 1.7289, 2.2895, 3.1937, 4.7354},
	{0.9642, 1.0971, 1.2751, 1.5285, 1.9005, 2.4769, 3.3962},
	{0.9731, 1.1099, 1.2876, 1.5435, 1.9243, 2.4977, 3.3989},
	{0.9704, 1.0829, 1.2256, 1.4226, 1.7036, 2.1073, 2.6946},
	{0.9784, 1.0910, 1.2329, 1.4294, 1.7114, 2.1195, 2.7332},
	{0.9757, 1.0726, 1.1920, 1.3521, 1.5748, 1.8847, 2.3225},
	{0.9821, 1.0778, 1.1960, 1.3567, 1.5799, 1.8957, 2.3407},
	{0.9794, 1.0641, 1.1665, 1.3012, 1.4840, 1.7360, 2.0781},
};
STATIC_ASSERT(ARRAY_SIZE(factors) == FACTOR_LAST - FACTOR_FIRST + 1);

double spread_factor(size_t n, double k)
{
	const double *row;
	double at, part;
	size_t column;

	if (n < FACTOR_FIRST)
		return 1;
	row = factors[MIN(n, (size_t)FACTOR_LAST) - FACTOR_FIRST];
	at = (fmin(fmax(k, 1), 4) - 1) / FACTOR_STEP;
	column = MIN((size_t)at, ARRAY_SIZE(factors[0]) - 2);
	part = at - (double)column;
	/* between columns the logarithm is nearly straight */
	at = log(row[column]) * (1 - part) + log(row[column + 1]) * part;
	return exp(n > FACTOR_LAST ? at * FACTOR_LAST / (double)n : at);
}

/* Abramowitz and Stegun 26.2.23, exact to 4.5e-4. */
double spread_z(double p)
{
	double t = sqrt(-2 * log(p));

	return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

ORDER(by_value, double, COMPARE(*x, *y))

void spread_sort(double *values, size_t n)
{
	SORT(values, n, by_value);
}

double spread_median(const double *sorted, size_t n)
{
	if (!n)
		return 0;
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* The distances from @median come in order if one walks away from it to both sides at once. */
static double mad_of(const double *sorted, size_t n, double median)
{
	size_t right = n / 2, left = right, taken = 0;
	double before = 0, distance = 0;

	while (taken <= n / 2) {
		before = distance;
		if (right >= n || (left > 0 && median - sorted[left - 1] <= sorted[right] - median))
			distance = median - sorted[--left];
		else
			distance = sorted[right++] - median;
		taken++;
	}
	return n % 2 ? distance : (before + distance) / 2;
}

struct spread spread_of(const double *sorted, size_t n, double k, double mad_floor)
{
	struct spread s = {.count = n};

	if (!n)
		return s;
	s.median = spread_median(sorted, n);
	s.mad = mad_of(sorted, n, s.median);
	s.sigma = NORMAL * spread_factor(n, k) * fmax(s.mad, mad_floor);
	return s;
}

/* The upper half of normal values has its median at 0.674 and a MAD of 0.400 standard deviations.
 * Where the upper half is of one kind, this finds its standard deviation whatever the lower half is
 * like, and 3.5 of them below the whole's median is no kin of it. */
#define UPPER_MEDIAN 0.674
#define UPPER_MAD    0.400
#define KIN          3.5

bool spread_is_split(const double *sorted, size_t n, double mad_floor)
{
	size_t half = (n + 1) / 2, bad = 0;
	struct spread upper = spread_of(sorted + (n - half), half, 2, 0);
	double sigma = fmax(upper.mad / UPPER_MAD, NORMAL * mad_floor);
	double limit = upper.median - (UPPER_MEDIAN + KIN) * sigma;

	while (bad < n && sorted[bad] < limit)
		bad++;
	return n >= SPREAD_MIN && 2 * bad >= n;
}
