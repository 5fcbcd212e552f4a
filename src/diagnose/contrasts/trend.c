/* SPDX-License-Identifier: Apache-2.0 */
/* trend.c - see trend.h.
 *
 * The moment is the one with the most telling ranks (Pettitt's). A ramp has such a moment as well, in its middle, and
 * a jump has a slope: whichever of the two, a step or a straight line through the logarithms, leaves less is what
 * it is. Values in the outermost fiftieths count as those at their border, so that single long ones tilt nothing. */
#include "diagnose/contrasts/trend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/thresholds.h"
#include "base/macros.h"
#include "stat/robust.h"

#define OUTERMOST 0.02
#define END_PARTS 8 /* the first and the last of so many say from where to where */

/* The best moment, where at most @most of the pairs of one before and one after it are not in order. */
static int find_moment(const uint64_t *lengths, size_t n, double most, size_t *ret)
{
	_cleanup_free_ double *ranks = calloc(n + 1, sizeof(*ranks));
	double sum = 0, best = 0, best_sum = 0, against;
	size_t least_units = (size_t)THRESHOLD(SHIFT_UNITS);

	*ret = SIZE_MAX;
	if (!ranks || rank_values(lengths, n, ranks) < 0)
		return -ENOMEM;
	for (size_t k = 1; k < n; k++) {
		double early;

		sum += ranks[k - 1];
		early = (double)k * (double)(n + 1) - 2 * sum; /* the first k are the short ones */
		if (k >= least_units && n - k >= least_units && early > best) {
			best = early;
			best_sum = sum;
			*ret = k;
		}
	}
	if (*ret == SIZE_MAX)
		return 0;
	against = (best_sum - (double)*ret * (double)(*ret + 1) / 2) /
		  ((double)*ret * (double)(n - *ret)); /* pairs in which the earlier is longer */
	if (against > most)
		*ret = SIZE_MAX;
	return 0;
}

static uint64_t median_of(const uint64_t *lengths, size_t n, uint64_t *scratch)
{
	memcpy(scratch, lengths, n * sizeof(*scratch));
	robust_sort(scratch, n);
	return robust_median(scratch, n);
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

int trend_find(const uint64_t *lengths, size_t n, bool is_split, struct trend *ret)
{
	_cleanup_free_ uint64_t *scratch = calloc(n + 1, sizeof(*scratch));
	_cleanup_free_ double *logs = calloc(n + 1, sizeof(*logs));
	size_t end = n / END_PARTS, since, least = (size_t)THRESHOLD(SHIFT_UNITS);
	struct step_fit step;

	*ret = (struct trend){.since = SIZE_MAX};
	if (!scratch || !logs ||
		find_moment(lengths, n, is_split ? THRESHOLD(SHIFT_SURE) : THRESHOLD(SHIFT_AGAINST),
			&since) < 0)
		return -ENOMEM;
	if (since != SIZE_MAX &&
		(double)median_of(lengths + since, n - since, scratch) <
			THRESHOLD(SHIFT_RATIO) * (double)median_of(lengths, since, scratch))
		since = SIZE_MAX;
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
