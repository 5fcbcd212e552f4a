/* SPDX-License-Identifier: Apache-2.0 */
/* probe_cost.c - see probe_cost.h.
 *
 * Each stretch of probed steps is compared with the few steps before and after it, so that a job that
 * becomes slower meanwhile does not look like the cost of probes; the median of the stretches counts,
 * so that a stretch in which something else happened does not either. */
#include "diagnose/contrasts/probe_cost.h"

#include <errno.h>
#include <stdlib.h>

#include "diagnose/thresholds.h"
#include "base/macros.h"
#include "stat/robust.h"

#define PARTS 1000000 /* ratios are sorted as integers */

static bool is_probed(const struct step_facts *s)
{
	return s->class != STEP_OTHER && s->probed > THRESHOLD(PROBED);
}

static bool is_plain(const struct step_facts *s)
{
	return s->class != STEP_OTHER && s->probed < THRESHOLD(FEW);
}

/* The median length of the steps in [from, to) that are probed, or of those that are not; 0: there are
 * none. */
static uint64_t median_of(
	const struct step_facts *steps, size_t from, size_t to, bool probed, uint64_t *scratch)
{
	size_t n = 0;

	for (size_t i = from; i < to; i++)
		if (probed ? is_probed(&steps[i]) : is_plain(&steps[i]))
			scratch[n++] = steps[i].dur_ns;
	robust_sort(scratch, n);
	return n ? robust_median(scratch, n) : 0;
}

/* The probed steps in [from, to) as a multiple of those beside them, in parts; 0: nothing to compare
 * with on one side. */
static uint64_t ratio_at(
	const struct step_facts *steps, size_t n, size_t from, size_t to, uint64_t *scratch)
{
	size_t first = from, last = to, near = (size_t)THRESHOLD(PROBED_NEAR);
	uint64_t before, after, here;

	while (first > 0 && from - first < near && !is_probed(&steps[first - 1]))
		first--;
	while (last < n && last - to < near && !is_probed(&steps[last]))
		last++;
	before = median_of(steps, first, from, false, scratch);
	after = median_of(steps, to, last, false, scratch);
	here = median_of(steps, from, to, true, scratch);
	if (!before || !after)
		return 0;
	return (uint64_t)(2.0 * (double)here / ((double)before + (double)after) * PARTS);
}

int probe_cost_find(const struct step_facts *steps, size_t n, double *ret)
{
	_cleanup_free_ uint64_t *scratch = calloc(n + 1, sizeof(*scratch));
	_cleanup_free_ uint64_t *ratios = calloc(n + 1, sizeof(*ratios));
	size_t count = 0, to;
	double cost;

	if (!scratch || !ratios)
		return -ENOMEM;
	*ret = 1;
	for (size_t i = 0; i < n; i = to) {
		uint64_t ratio;

		to = i + 1;
		if (!is_probed(&steps[i]))
			continue;
		while (to < n && (is_probed(&steps[to]) || steps[to].class == STEP_OTHER))
			to++;
		ratio = ratio_at(steps, n, i, to, scratch);
		if (ratio)
			ratios[count++] = ratio;
	}
	if ((double)count < THRESHOLD(LEAST))
		return 0;
	robust_sort(ratios, count);
	cost = (double)robust_median(ratios, count) / PARTS;
	*ret = MIN(MAX(cost, 1.0), THRESHOLD(HALF_MORE));
	return 0;
}
