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
#include <string.h>

#include "diagnose/thresholds.h"
#include "base/macros.h"
#include "base/search.h"
#include "stat/robust.h"

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

ORDER(by_value, double, COMPARE(*x, *y))

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

/* 
 * The moment is the one with the most telling ranks (Pettitt's). A ramp has such a moment as well, in its middle, and
 * a jump has a slope: whichever of the two, a step or a straight line through the logarithms, leaves less is what
 * it is. Values in the outermost fiftieths count as those at their border, so that single long ones tilt nothing. */

#define OUTERMOST 0.02
#define END_PARTS 8 /* the first and the last of so many say from where to where */

struct moment {
	size_t at; /* SIZE_MAX: there is none */
	double against; /* share of pairs of one before and one after it in which the earlier is longer */
	double beyond; /* chance, in standard deviations */
};

static int find_moment(const uint64_t *lengths, size_t n, struct moment *ret)
{
	_cleanup_free_ double *ranks = calloc(n + 1, sizeof(*ranks));
	double sum = 0, best = 0, best_sum = 0, before, pairs;
	size_t least_units = (size_t)THRESHOLD(SHIFT_UNITS);

	*ret = (struct moment){.at = SIZE_MAX};
	if (!ranks || rank_values(lengths, n, ranks) < 0)
		return -ENOMEM;
	for (size_t k = 1; k < n; k++) {
		double early;

		sum += ranks[k - 1];
		early = (double)k * (double)(n + 1) - 2 * sum; /* the first k are the short ones */
		if (k >= least_units && n - k >= least_units && early > best) {
			best = early;
			best_sum = sum;
			ret->at = k;
		}
	}
	if (ret->at == SIZE_MAX)
		return 0;
	before = (double)ret->at;
	pairs = before * (double)(n - ret->at);
	ret->against = (best_sum - before * (before + 1) / 2) / pairs;
	ret->beyond = (0.5 - ret->against) / sqrt((double)(n + 1) / (12 * pairs));
	return 0;
}

static uint64_t median_of(const uint64_t *lengths, size_t n, uint64_t *scratch)
{
	memcpy(scratch, lengths, n * sizeof(*scratch));
	return robust_median_of(scratch, n);
}

/* How many times as long those from @since on are. */
static double longer_since(const uint64_t *lengths, size_t n, size_t since, uint64_t *scratch)
{
	double before = (double)median_of(lengths, since, scratch);

	return (double)median_of(lengths + since, n - since, scratch) / MAX(before, 1.0);
}

/* Logarithms without what is far out. */
static void take_logs(const uint64_t *lengths, size_t n, uint64_t *scratch, double *logs)
{
	uint64_t low, high;

	memcpy(scratch, lengths, n * sizeof(*scratch));
	robust_sort(scratch, n);
	low = MAX(robust_quantile(scratch, n, OUTERMOST), UINT64_C(1));
	high = MAX(robust_quantile(scratch, n, 1 - OUTERMOST), low);
	for (size_t i = 0; i < n; i++)
		logs[i] = log((double)MIN(MAX(lengths[i], low), high));
}

struct line {
	double grown;   /* from its beginning to its end */
	double follows; /* correlation with time */
	double left;    /* sum of squares */
};

static struct line fit_line(const double *logs, size_t n)
{
	double mean = 0, x0 = ((double)n - 1) / 2, xx = 0, yy = 0, xy = 0;

	for (size_t i = 0; i < n; i++)
		mean += logs[i] / (double)n;
	for (size_t i = 0; i < n; i++) {
		double x = (double)i - x0, y = logs[i] - mean;

		xx += x * x;
		yy += y * y;
		xy += x * y;
	}
	if (!(xx > 0 && yy > 0))
		return (struct line){0};
	return (struct line){xy / xx * (double)n, xy / sqrt(xx * yy), yy - xy * xy / xx};
}

struct step_fit {
	size_t at;
	double left;
};

/* The step that leaves least. */
static struct step_fit fit_step(const double *logs, size_t n)
{
	struct step_fit best = {.left = INFINITY};
	double total = 0, square = 0, sum = 0;

	for (size_t i = 0; i < n; i++) {
		total += logs[i];
		square += logs[i] * logs[i];
	}
	for (size_t k = 1; k < n; k++) {
		double rest, left;

		sum += logs[k - 1];
		rest = total - sum;
		left = square - sum * sum / (double)k - rest * rest / (double)(n - k);
		if (left < best.left)
			best = (struct step_fit){k, left};
	}
	return best;
}

static bool is_drift(const double *logs, size_t n, double step_left)
{
	struct line line = fit_line(logs, n);

	return (double)n >= THRESHOLD(DRIFT_UNITS) && line.grown >= log(THRESHOLD(SLOW_RATIO)) &&
	       line.follows >= THRESHOLD(DRIFT_FOLLOWS) && line.left < step_left;
}

/* Whether nearly all are longer since @m; or lengths that vary much are by far, and there are enough of them to be sure. */
static bool is_change(
	const uint64_t *lengths, size_t n, const struct moment *m, bool is_split, uint64_t *scratch)
{
	double longer;

	if (m->at == SIZE_MAX)
		return false;
	longer = longer_since(lengths, n, m->at, scratch);
	if (m->against <= THRESHOLD(SHIFT_SURE) ||
		(!is_split && m->against <= THRESHOLD(SHIFT_AGAINST)))
		return longer >= THRESHOLD(SHIFT_RATIO);
	return !is_split && m->against <= THRESHOLD(PART) && m->beyond >= THRESHOLD(BEYOND) &&
	       longer >= THRESHOLD(MORE);
}

int trend_find(const uint64_t *lengths, size_t n, bool is_split, struct trend *ret)
{
	_cleanup_free_ uint64_t *scratch = calloc(n + 1, sizeof(*scratch));
	_cleanup_free_ double *logs = calloc(n + 1, sizeof(*logs));
	size_t end = n / END_PARTS, since, least = (size_t)THRESHOLD(SHIFT_UNITS);
	struct moment moment;
	struct step_fit step;

	*ret = (struct trend){.since = SIZE_MAX};
	if (!scratch || !logs || find_moment(lengths, n, &moment) < 0)
		return -ENOMEM;
	since = is_change(lengths, n, &moment, is_split, scratch) ? moment.at : SIZE_MAX;
	if (n < END_PARTS || (is_split && since == SIZE_MAX))
		return 0;
	take_logs(lengths, n, scratch, logs);
	step = fit_step(logs, n);
	if (!is_drift(logs, n, step.left)) {
		/* Ranks say that there is a moment, and are drawn to the middle; squares say when. */
		ret->since = since == SIZE_MAX || step.at < least || n - step.at < least ? since
											 : step.at;
		return 0;
	}
	ret->is_drift = true;
	ret->from_ns = median_of(lengths, end, scratch);
	ret->to_ns = median_of(lengths + n - end, end, scratch);
	return 0;
}
