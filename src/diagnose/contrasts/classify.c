/* SPDX-License-Identifier: Apache-2.0 */
/* classify.c - see classify.h.
 *
 * Other: steps with another number of backward passes or batches than most (an evaluation between two
 * steps), and slow ones before the first ordinary one (warm-up). One more batch that was asked for is the end
 * of an epoch, after which the next one begins: still the same work.
 *
 * Where the GPU is waited for once in k steps, the host runs ahead in between: k steps are one unit,
 * and only units are compared, by their length per step. Steps in which the tracer probed launches are
 * compared without what that costs (probe_cost.h).
 *
 * Units fall into two classes if their lengths do: the best split (Otsu's, of logarithms) must leave
 * medians apart by 15 % and by 3 times the spread of the shorter class. One bell of lengths, however
 * wide, has no such split. Where there is none, steps may still have become slower at one moment, by
 * 12 % at least: then all since are slow. Where nearly all since are longer than nearly all before, that
 * moment is a better border than any length. */
#include "diagnose/contrasts/classify.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diagnose/contrasts/probe_cost.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"
#include "stat/rank.h"
#include "stat/robust.h"

#define GROUP_MAX 64
#define MAD_SIGMA 1.4826

struct unit {
	size_t first, count;
	uint64_t per_step_ns;
};

static uint64_t phase_of(const struct step_facts *s)
{
	return (uint64_t)s->backwards << 32 | s->loads;
}

static int mark_phases(struct step_facts *steps, size_t n)
{
	_cleanup_free_ uint64_t *phases = calloc(n + 1, sizeof(*phases));
	size_t best = 0, run = 0;
	uint64_t usual = 0;

	if (!phases)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		phases[i] = phase_of(&steps[i]);
	robust_sort(phases, n);
	for (size_t i = 0; i < n; i++) {
		run = i && phases[i] == phases[i - 1] ? run + 1 : 1;
		if (run > best) {
			best = run;
			usual = phases[i];
		}
	}
	if ((double)best < THRESHOLD(PHASE_SHARE) * (double)n)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (phase_of(&steps[i]) != usual && phase_of(&steps[i]) != usual + 1)
			steps[i].class = STEP_OTHER;
	return 0;
}

static uint64_t median_of(const struct step_facts *steps, size_t n, uint64_t *scratch)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (steps[i].class != STEP_OTHER)
			scratch[k++] = steps[i].dur_ns;
	robust_sort(scratch, k);
	return k ? robust_median(scratch, k) : 0;
}

static void mark_warmup(struct step_facts *steps, size_t n, uint64_t median)
{
	size_t last = 0;

	for (size_t i = 0; i < MIN(n / 5, (size_t)THRESHOLD(WARMUP_STEPS)); i++)
		if ((double)steps[i].dur_ns > THRESHOLD(WARMUP_RATIO) * (double)median)
			last = i + 1;
		else if (i >= last + 2)
			break;
	for (size_t i = 0; i < last; i++)
		steps[i].class = STEP_OTHER;
}

/* A step that waits for what the steps before it have queued. */
static bool is_long_wait(const struct step_facts *s, uint64_t mean, uint64_t median_wait)
{
	return s->class != STEP_OTHER &&
	       (double)s->wait_ns > THRESHOLD(WAIT_SHARE) * (double)mean &&
	       (double)s->wait_ns > THRESHOLD(WAIT_RATIO) * (double)median_wait;
}

static uint32_t find_group(
	const struct step_facts *steps, size_t n, uint64_t mean, uint64_t median_wait)
{
	size_t counts[GROUP_MAX + 1] = {0}, last = SIZE_MAX, waits = 0, best = 1;

	for (size_t i = 0; i < n; i++) {
		if (!is_long_wait(&steps[i], mean, median_wait))
			continue;
		if (last != SIZE_MAX && i - last <= GROUP_MAX)
			counts[i - last]++;
		last = i;
		waits++;
	}
	for (size_t k = 1; k <= GROUP_MAX; k++)
		if (counts[k] > counts[best])
			best = k;
	if ((double)waits < THRESHOLD(GROUP_WAITS) ||
		(double)counts[best] < THRESHOLD(GROUP_SHARE) * (double)(waits - 1))
		return 1;
	return (uint32_t)best;
}

/* Units end with a long wait, or after as many steps as there usually are between two. */
static size_t make_units(const struct step_facts *steps, size_t n, uint32_t group, uint64_t mean,
	uint64_t median_wait, double cost, struct unit *units)
{
	struct unit u = {0};
	uint64_t sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (steps[i].class == STEP_OTHER) {
			u = (struct unit){0};
			sum = 0;
			continue;
		}
		if (!u.count)
			u.first = i;
		u.count++;
		sum += (uint64_t)((double)steps[i].dur_ns / (1 + (cost - 1) * steps[i].probed));
		if (u.count < group && !is_long_wait(&steps[i], mean, median_wait))
			continue;
		u.per_step_ns = sum / u.count;
		units[count++] = u;
		u = (struct unit){0};
		sum = 0;
	}
	return count;
}

/* The best place to cut @sorted in two: how many are in the lower class. */
static size_t split_of(const uint64_t *sorted, size_t n)
{
	double total = 0, low = 0, best = -1;
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		total += log((double)MAX(sorted[i], UINT64_C(1)));
	for (size_t i = 1; i < n; i++) {
		double mean_low, mean_high, between;

		low += log((double)MAX(sorted[i - 1], UINT64_C(1)));
		mean_low = low / (double)i;
		mean_high = (total - low) / (double)(n - i);
		between = (double)i * (double)(n - i) * (mean_high - mean_low) *
			  (mean_high - mean_low);
		if (between > best) {
			best = between;
			at = i;
		}
	}
	return at;
}

/* The length from which on a unit is slow; 0: none is. */
static uint64_t slow_limit(const struct unit *units, size_t n, uint64_t *scratch)
{
	size_t low;
	uint64_t median_low, median_high, spread;

	for (size_t i = 0; i < n; i++)
		scratch[i] = units[i].per_step_ns;
	robust_sort(scratch, n);
	low = split_of(scratch, n);
	if (low < MAX((size_t)THRESHOLD(ORDINARY_UNITS),
			  (size_t)(THRESHOLD(ORDINARY_SHARE) * (double)n)) ||
		low >= n)
		return 0;
	median_low = robust_median(scratch, low);
	median_high = robust_median(scratch + low, n - low);
	spread = robust_mad(scratch, low);
	if ((double)median_high < THRESHOLD(SLOW_RATIO) * (double)median_low ||
		(double)(median_high - median_low) <
			THRESHOLD(SLOW_SPREAD) * MAD_SIGMA * (double)spread)
		return 0;
	return scratch[low];
}

static void sum_up(struct step_facts *steps, size_t n, struct classification *ret)
{
	uint64_t ordinary_ns = 0, slow_ns = 0, even;

	for (size_t i = 0; i < n; i++) {
		ret->slow += steps[i].class == STEP_SLOW;
		ret->ordinary += steps[i].class == STEP_ORDINARY;
		ret->other += steps[i].class == STEP_OTHER;
		ordinary_ns += steps[i].class == STEP_ORDINARY ? steps[i].dur_ns : 0;
		slow_ns += steps[i].class == STEP_SLOW ? steps[i].dur_ns : 0;
	}
	if (!ret->slow || !ret->ordinary)
		return;
	even = (uint64_t)((double)ordinary_ns / (double)ret->ordinary * (double)ret->slow);
	ret->lost_ns = slow_ns > even ? slow_ns - even : 0;
}

/* The unit from which on they are longer, where that is so of @least of the pairs of one before and one
 * after it: the split with the most telling ranks (Pettitt's). SIZE_MAX: there is none. */
static int find_shift(const struct unit *units, size_t n, double least, size_t *ret)
{
	_cleanup_free_ uint64_t *values = calloc(n + 1, sizeof(*values));
	_cleanup_free_ double *ranks = calloc(n + 1, sizeof(*ranks));
	double sum = 0, best = 0, best_sum = 0, after;
	size_t least_units = (size_t)THRESHOLD(SHIFT_UNITS);

	*ret = SIZE_MAX;
	if (!values || !ranks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		values[i] = units[i].per_step_ns;
	if (rank_values(values, n, ranks) < 0)
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
	after = (best_sum - (double)*ret * (double)(*ret + 1) / 2) /
		((double)*ret * (double)(n - *ret)); /* pairs in which the earlier is longer */
	if (1 - after < least)
		*ret = SIZE_MAX;
	return 0;
}

static uint64_t median_between(const struct unit *units, size_t from, size_t to, uint64_t *scratch)
{
	for (size_t i = from; i < to; i++)
		scratch[i - from] = units[i].per_step_ns;
	robust_sort(scratch, to - from);
	return robust_median(scratch, to - from);
}

int classify_steps(struct step_facts *steps, size_t n, struct classification *ret)
{
	_cleanup_free_ uint64_t *scratch = calloc(n + 1, sizeof(*scratch));
	_cleanup_free_ struct unit *units = calloc(n + 1, sizeof(*units));
	uint64_t mean = 0, median_wait, limit;
	size_t count, since = SIZE_MAX;
	double cost;

	*ret = (struct classification){.group = 1};
	if (!scratch || !units)
		return -ENOMEM;
	if (mark_phases(steps, n) < 0)
		return -ENOMEM;
	mark_warmup(steps, n, median_of(steps, n, scratch));
	for (size_t i = 0; i < n; i++) {
		mean += steps[i].dur_ns / n;
		scratch[i] = steps[i].wait_ns;
	}
	robust_sort(scratch, n);
	median_wait = n ? robust_median(scratch, n) : 0;
	ret->group = find_group(steps, n, mean, median_wait);
	if (probe_cost_find(steps, n, &cost) < 0)
		return -ENOMEM;
	count = make_units(steps, n, ret->group, mean, median_wait, cost, units);
	limit = count >= 2 ? slow_limit(units, count, scratch) : 0;
	if (find_shift(units, count, limit ? THRESHOLD(SHIFT_SURE) : THRESHOLD(SHIFT_PAIRS),
		    &since) < 0)
		return -ENOMEM;
	if (since != SIZE_MAX &&
		(double)median_between(units, since, count, scratch) <
			THRESHOLD(SHIFT_RATIO) * (double)median_between(units, 0, since, scratch))
		since = SIZE_MAX;
	if (since != SIZE_MAX)
		limit = 0;
	for (size_t u = 0; u < count; u++)
		for (size_t i = 0; i < units[u].count; i++)
			if ((limit && units[u].per_step_ns >= limit) || u >= since)
				steps[units[u].first + i].class = STEP_SLOW;
	sum_up(steps, n, ret);
	return 0;
}
