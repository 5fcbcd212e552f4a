/* SPDX-License-Identifier: Apache-2.0 */
/* separate.c - see separate.h.
 *
 * Two cuts are tried: the best one by Otsu (least variance within both sides), and the one beyond the bulk, which
 * finds few long ones among many that vary. One bell, one ramp or one block of lengths has an Otsu cut as well, in
 * its middle, so that a cut is not yet two groups. They are
 *  - sure if the long ones are far away, measured by how far the short ones reach to their own shorter side (to the
 *    longer side they reach as far as the cut lets them). An exponential tail, the longest that ordinary jitter has,
 *    comes to 6.5;
 *  - sure if there is a valley: hardly any in the middle third of the way between the medians, compared with as
 *    wide a window around each. Of one bell, ramp or block the middle has as many as either;
 *  - possible if the medians are apart by three standard deviations of the short ones. */
#include "diagnose/contrasts/separate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diagnose/thresholds.h"
#include "base/macros.h"
#include "base/search.h"

#define MAD_SIGMA   1.4826 /* of a normal distribution: standard deviation by MAD, */
#define TENTH_SIGMA 1.2816 /* and how many of them its lowest tenth is away */

/* Of @n ascending values; nearest rank. */
static double quantile(const double *sorted, size_t n, double q)
{
	size_t rank = (size_t)ceil(q * (double)n);

	return sorted[rank ? rank - 1 : 0];
}

static size_t count_below(const double *sorted, size_t n, double limit)
{
	return LOWER_BOUND(i, n, sorted[i] < limit);
}

static size_t count_within(const double *sorted, size_t n, double from, double to)
{
	size_t below = count_below(sorted, n, from), upto = count_below(sorted, n, to);

	return upto > below ? upto - below : 0;
}

static size_t cut_of(const double *sorted, size_t n)
{
	double total = 0, low = 0, best = -1;
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		total += sorted[i];
	for (size_t i = 1; i < n; i++) {
		double apart, between;

		low += sorted[i - 1];
		apart = (total - low) / (double)(n - i) - low / (double)i;
		between = (double)i * (double)(n - i) * apart * apart;
		if (between > best) {
			best = between;
			at = i;
		}
	}
	return at;
}

/* The standard deviation of @n ascending values, by the half below their median. */
static double spread_below(const double *sorted, size_t n)
{
	return (quantile(sorted, n, 0.5) - quantile(sorted, n, 0.1)) / TENTH_SIGMA;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double spread_around(const double *sorted, size_t n, double *scratch)
{
	double median = quantile(sorted, n, 0.5);

	for (size_t i = 0; i < n; i++)
		scratch[i] = fabs(sorted[i] - median);
	qsort(scratch, n, sizeof(*scratch), by_value);
	return MAD_SIGMA * quantile(scratch, n, 0.5);
}

static bool has_valley(const double *sorted, size_t n, size_t low, double from, double to)
{
	double third = (to - from) / 3;
	size_t middle = count_within(sorted, n, from + third, to - third);
	size_t ends = MIN(count_within(sorted, n, from - third / 2, from + third / 2),
		count_within(sorted, n, to - third / 2, to + third / 2));

	/* One more, as few may be missing there by chance. */
	return (double)MIN(low, n - low) >= THRESHOLD(IN_A_ROW) &&
	       (double)(middle + 1) <= THRESHOLD(VALLEY) * (double)ends;
}

/* What a cut that leaves @low below it is worth. */
static struct separation judge(const double *sorted, size_t n, size_t low, double *scratch)
{
	struct separation none = {0}, found = {.low = low};
	double from, to, around;

	if (low >= n || (double)low < MAX(THRESHOLD(LEAST), THRESHOLD(FEW) * (double)n))
		return none;
	from = quantile(sorted, low, 0.5);
	to = quantile(sorted + low, n - low, 0.5);
	around = spread_around(sorted, low, scratch);
	if (to - from < log(THRESHOLD(SLOW_RATIO)) || to - from < THRESHOLD(SLOW_SPREAD) * around)
		return none;
	found.is_sure = has_valley(sorted, n, low, from, to) ||
			to - from >= THRESHOLD(FAR) * MAX(spread_below(sorted, low), around);
	return found;
}

int separate_find(const uint64_t *sorted, size_t n, struct separation *ret)
{
	_cleanup_free_ double *logs = calloc(n + 1, sizeof(*logs));
	_cleanup_free_ double *scratch = calloc(n + 1, sizeof(*scratch));
	struct separation beyond;
	double bulk;

	*ret = (struct separation){0};
	if (!logs || !scratch)
		return -ENOMEM;
	if (n < 2)
		return 0;
	for (size_t i = 0; i < n; i++)
		logs[i] = log((double)MAX(sorted[i], UINT64_C(1)));
	*ret = judge(logs, n, cut_of(logs, n), scratch);
	if (ret->is_sure)
		return 0;
	bulk = quantile(logs, n, 0.5) + THRESHOLD(BEYOND) * spread_below(logs, n);
	beyond = judge(logs, n, count_below(logs, n, bulk), scratch);
	if (beyond.is_sure || !ret->low)
		*ret = beyond;
	return 0;
}
