/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - see compare.h. */
#include "stat/compare.h"

#include <math.h>

#include "base/search.h"
#include "base/macros.h"

#define PAIRED_MIN 8 /* below this an interval says nothing */

/* Hodges and Lehmann's estimate with Wilcoxon's interval. The means of all pairs of
 * differences (each with itself too) are put in order: the one in the middle is the estimate, and
 * the interval leaves out as many at both ends as chance would put there. A few wild differences
 * move neither far, and on normal data it needs only 5 % more pairs than the mean. */

#define MEANS_MAX (PAIRED_MAX * (PAIRED_MAX + 1) / 2)
#define NORMAL_95 1.96

ORDER(ascending, double, COMPARE(*x, *y))

/* How many of the means are left out at either end: the signed-rank statistic is nearly normal, with
 * mean n(n+1)/4 and variance n(n+1)(2n+1)/24; from 8 pairs on the result is that of the tables. */
static size_t left_out(size_t n)
{
	double count = (double)n;
	double mean = count * (count + 1) / 4;
	double deviation = sqrt(count * (count + 1) * (2 * count + 1) / 24);

	return (size_t)(mean - NORMAL_95 * deviation) - 1;
}

int paired_estimate(const double *differences, size_t n, struct paired *ret)
{
	double means[MEANS_MAX];
	size_t count = 0, out;

	if (n < PAIRED_MIN || n > PAIRED_MAX)
		return -ERANGE;
	for (size_t i = 0; i < n; i++)
		for (size_t j = i; j < n; j++)
			means[count++] = (differences[i] + differences[j]) / 2;
	SORT(means, count, ascending);
	out = left_out(n);
	*ret = (struct paired){.middle = (means[(count - 1) / 2] + means[count / 2]) / 2,
		.low = means[out],
		.high = means[count - 1 - out]};
	return 0;
}

#define NORMAL_99 2.5758
#define CLIP_MIN  8
#define BEYOND    2.0 /* times what the other set has at most */

/* Student's t at 99 % by Cornish and Fisher's series: right to 4 % with two degrees of freedom, to 0.1 % from
 * five on. */
static double student_99(double degrees)
{
	double z = NORMAL_99, z2 = z * z, v = degrees;

	return z * (1 + (z2 + 1) / (4 * v) + ((5 * z2 + 16) * z2 + 3) / (96 * v * v) +
			   (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * v * v * v) +
			   ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) /
				   (92160 * v * v * v * v));
}

struct compared compare_sets(const struct compare_set *a, const struct compare_set *b, double least)
{
	struct compared c = {.difference = b->mean - a->mean};
	double x, y, degrees;

	if (a->count < COMPARE_MIN || b->count < COMPARE_MIN)
		return c;
	x = a->variance / a->count;
	y = b->variance / b->count;
	if (x + y > 0) {
		degrees = (x + y) * (x + y) / (x * x / (a->count - 1) + y * y / (b->count - 1));
		c.margin = student_99(MAX(degrees, COMPARE_MIN - 1.0)) * sqrt(x + y);
	}
	if (fabs(c.difference) <= c.margin || fabs(c.difference) < least || c.difference == 0)
		c.verdict = COMPARE_NOISE;
	else
		c.verdict = c.difference > 0 ? COMPARE_MORE : COMPARE_LESS;
	return c;
}

static struct compare_set set_of(double *values, size_t n)
{
	struct compare_set s = {.count = (double)n};

	SORT(values, n, ascending);
	if (n >= CLIP_MIN) {
		values[0] = values[1];
		values[n - 1] = values[n - 2];
	}
	for (size_t i = 0; i < n; i++)
		s.mean += values[i] / (double)n;
	for (size_t i = 0; n > 1 && i < n; i++)
		s.variance += (values[i] - s.mean) * (values[i] - s.mean) / (double)(n - 1);
	return s;
}

/* How far the number of pairs in which the second is larger is from what chance would give, in standard deviations.
 * With five values on either side 2.58 is reached only if they do not overlap, with fewer never. */
static double order_of(const double *a, size_t n, const double *b, size_t m)
{
	double pairs = (double)n * (double)m, larger = 0;
	size_t below = 0, up_to = 0;

	for (size_t i = 0; i < m; i++) {
		while (below < n && a[below] < b[i])
			below++;
		while (up_to < n && a[up_to] <= b[i])
			up_to++;
		larger += (double)(below + up_to) / 2;
	}
	return (larger - pairs / 2) / sqrt(pairs * (double)(n + m + 1) / 12);
}

struct compared compare_values(double *a, size_t n, double *b, size_t m, double least)
{
	struct compare_set x = set_of(a, n), y = set_of(b, m);
	struct compared c = compare_sets(&x, &y, least);
	double order;

	if (c.verdict != COMPARE_NOISE || c.difference == 0 || fabs(c.difference) < least)
		return c;
	/* A typical value must have moved, too: else order speaks of a trifle and the mean of a few wild ones. */
	order = fabs(b[m / 2] - a[n / 2]) >= least ? order_of(a, n, b, m) : 0;
	if (fabs(order) >= NORMAL_99 && (order > 0) == (c.difference > 0))
		c.verdict = order > 0 ? COMPARE_MORE : COMPARE_LESS;
	return c;
}

static double mean_of(const double *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum / (double)n;
}

static bool lies_beyond(const double *a, size_t n, const double *b, size_t m, double least)
{
	return b[m - 2] >= BEYOND * a[n - 1] + least && mean_of(b, m) >= BEYOND * mean_of(a, n);
}

enum compare_verdict compare_part(
	const double *a, size_t n, const double *b, size_t m, double least)
{
	if (n < COMPARE_MIN || m < COMPARE_MIN)
		return COMPARE_UNKNOWN;
	if (lies_beyond(a, n, b, m, least))
		return COMPARE_MORE;
	return lies_beyond(b, m, a, n, least) ? COMPARE_LESS : COMPARE_NOISE;
}
