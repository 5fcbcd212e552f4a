/* SPDX-License-Identifier: Apache-2.0 */
/* rhythm.c - see rhythm.h.
 *
 * Periodic: short stretches of slow steps begin at one distance more often than they would by chance. Where
 * each step is slow with the same chance, whatever the one before it was, stretches and the gaps between them
 * have geometric lengths: the share of distances that such an order has is set against the share that is found.
 * A long stretch is a state, which nothing that happens every so many steps explains.
 *
 * Varied: steps become slow again and again, from the beginning on, and there is no gap between ordinary and
 * slow ones. What is done to a job, or by it every so many steps, costs about the same each time and leaves
 * such a gap; and what goes wrong at some moment does not before it.
 *
 * Proportional: launches, waits or copied bytes of a step go with its length, one by one and on the whole. */
#include "diagnose/contrasts/rhythm.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diagnose/thresholds.h"
#include "base/macros.h"
#include "stat/robust.h"

struct order {
	size_t *starts; /* of slow stretches */
	size_t stretches, slow;
	size_t first, last; /* slow steps */
};

static bool is_slow(const struct step_facts *f)
{
	return f->class == STEP_SLOW;
}

static struct order order_of(const struct step_facts *facts, size_t n, size_t *starts)
{
	struct order o = {.starts = starts};

	for (size_t i = 0; i < n; i++) {
		if (!is_slow(&facts[i]))
			continue;
		if (!o.slow++)
			o.first = i;
		o.last = i;
		if (i && !is_slow(&facts[i - 1]))
			o.starts[o.stretches++] = i;
	}
	return o;
}

/* How often, by chance, a stretch begins @distance steps after the one before it, give or take @about, where a
 * step is slow with chance @slow. */
static double chance_of(size_t distance, size_t about, double slow)
{
	double ways = 1, ordinary = 1,
	       sum = 0; /* of a distance of 2: one slow step, one ordinary */

	for (size_t d = 2; d <= distance + about; d++) {
		if (d + about >= distance)
			sum += slow * (1 - slow) * ways;
		ordinary *= 1 - slow;
		ways = slow * ways + ordinary;
	}
	return sum;
}

/* How likely it is that at least @hits of @n are what each is with @chance: logarithms, as most are tiny. */
static double tail_of(size_t n, size_t hits, double chance)
{
	double term = (double)n * log1p(-chance), odds = log(chance) - log1p(-chance), sum = 0;

	for (size_t k = 0; k <= n; k++) {
		if (k >= hits)
			sum += exp(term);
		if (k < n)
			term += log((double)(n - k) / (double)(k + 1)) + odds;
	}
	return sum;
}

static size_t count_near(const uint64_t *distances, size_t n, uint64_t usual, uint64_t about)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += distances[i] + about >= usual && distances[i] <= usual + about;
	return count;
}

/* Whether @same of @n distances would be near @usual in any order of as many slow steps. */
static bool is_by_chance(
	const struct order *o, size_t n, size_t usual, size_t about, size_t same, double chance)
{
	double slow = (double)o->slow / (double)(o->last - o->first + 1);

	return tail_of(n, same, chance_of(usual, about, slow)) >= chance;
}

static int find_period(const struct order *o, uint32_t group, double chance, struct rhythm *ret)
{
	_cleanup_free_ uint64_t *distances = calloc(o->stretches + 1, sizeof(*distances));
	size_t n = o->stretches ? o->stretches - 1 : 0, same;
	double stretch;
	uint64_t usual;

	if (!distances)
		return -ENOMEM;
	if ((double)n < THRESHOLD(AGAIN))
		return 0;
	for (size_t i = 0; i < n; i++)
		distances[i] = o->starts[i + 1] - o->starts[i];
	usual = robust_median_of(distances, n);
	stretch = (double)o->slow / (double)o->stretches;
	if (usual <= 2 || (stretch > THRESHOLD(IN_A_ROW) * group &&
				  stretch > THRESHOLD(PART) * (double)usual))
		return 0;
	same = count_near(distances, n, usual, 1);
	if ((double)same < THRESHOLD(MOST) * (double)n ||
		(is_by_chance(o, n, usual, 0, count_near(distances, n, usual, 0), chance) &&
			is_by_chance(o, n, usual, 1, same, chance)))
		return 0;
	ret->period_steps = (uint32_t)usual;
	ret->period_confidence = (double)same / (double)n;
	return 0;
}

static uint64_t median_of(
	const struct step_facts *facts, size_t n, enum step_class class, uint64_t *scratch)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (facts[i].class == class)
			scratch[k++] = MAX(facts[i].dur_ns, UINT64_C(1));
	return robust_median_of(scratch, k);
}

static bool is_of_both_halves(const struct step_facts *facts, size_t n)
{
	size_t slow[2] = {0};

	for (size_t i = 0; i < n; i++)
		slow[i >= n / 2] += is_slow(&facts[i]);
	return (double)MAX(slow[0], slow[1]) <=
	       THRESHOLD(VARIED_HALVES) * (double)MIN(slow[0], slow[1]);
}

/* Whether there are steps where a gap would be: in the middle third of the way from ordinary to slow ones. */
static int find_gap(const struct step_facts *facts, size_t n, bool *ret)
{
	_cleanup_free_ uint64_t *scratch = calloc(n + 1, sizeof(*scratch));
	size_t between = 0, compared = 0;
	uint64_t ordinary, slow;
	double third;

	if (!scratch)
		return -ENOMEM;
	ordinary = median_of(facts, n, STEP_ORDINARY, scratch);
	slow = median_of(facts, n, STEP_SLOW, scratch);
	if (!ordinary || slow <= ordinary)
		return 0;
	third = cbrt((double)slow / (double)ordinary);
	for (size_t i = 0; i < n; i++) {
		double length = (double)facts[i].dur_ns;

		compared += facts[i].class != STEP_OTHER;
		between += facts[i].class != STEP_OTHER && length > (double)ordinary * third &&
			   length * third < (double)slow;
	}
	*ret = (double)between < THRESHOLD(FEW) * (double)compared;
	return 0;
}

/* Whether they have come to be as long as slow ones little by little, or in several stages. */
static int find_stages(const struct step_facts *facts, size_t n, bool *ret)
{
	_cleanup_free_ uint64_t *lengths = calloc(2 * n + 1, sizeof(*lengths));
	uint64_t slow;
	size_t count = 0;

	if (!lengths)
		return -ENOMEM;
	slow = median_of(facts, n, STEP_SLOW, lengths);
	for (size_t i = 0; i < n; i++)
		if (facts[i].class != STEP_OTHER)
			lengths[count++] = facts[i].dur_ns;
	*ret = slow && robust_on_the_way(lengths, count, slow, lengths + count) >= THRESHOLD(FEW);
	return 0;
}

enum work { WORK_LAUNCHES, WORK_WAITS, WORK_BYTES, WORKS };

static double work_of(const struct step_span *s, enum work w)
{
	return (double)(w == WORK_LAUNCHES ? s->launches
			: w == WORK_WAITS  ? s->waits
					   : s->copy_bytes);
}

/* Steps in which launches were not probed have none. */
static bool is_counted(const struct step_span *s, const struct step_facts *f, enum work w)
{
	return f->class != STEP_OTHER && (w != WORK_LAUNCHES || s->launches);
}

static bool follows(
	const struct step_span *spans, const struct step_facts *facts, size_t n, enum work w)
{
	double count[2] = {0}, work[2] = {0}, length[2] = {0}; /* by enum step_class */
	double x = 0, y = 0, xx = 0, yy = 0, xy = 0, all, grown, longer;

	for (size_t i = 0; i < n; i++) {
		double a = work_of(&spans[i], w), b = (double)facts[i].dur_ns;

		if (!is_counted(&spans[i], &facts[i], w))
			continue;
		count[facts[i].class]++;
		work[facts[i].class] += a;
		length[facts[i].class] += b;
		x += a;
		y += b;
		xx += a * a;
		yy += b * b;
		xy += a * b;
	}
	all = count[STEP_ORDINARY] + count[STEP_SLOW];
	if (MIN(count[STEP_ORDINARY], count[STEP_SLOW]) < THRESHOLD(WORK_UNITS) ||
		work[STEP_ORDINARY] <= 0)
		return false;
	if (all * xy - x * y <
		THRESHOLD(WORK_FOLLOWS) * sqrt((all * xx - x * x) * (all * yy - y * y)))
		return false;
	grown = work[STEP_SLOW] / count[STEP_SLOW] / (work[STEP_ORDINARY] / count[STEP_ORDINARY]) -
		1;
	longer = length[STEP_SLOW] / count[STEP_SLOW] /
			 (length[STEP_ORDINARY] / count[STEP_ORDINARY]) -
		 1;
	return grown >= THRESHOLD(WORK_LEAST) * longer && grown <= THRESHOLD(WORK_MOST) * longer;
}

int rhythm_find(const struct step_span *spans, const struct step_facts *facts, size_t n,
	uint32_t group, struct rhythm *ret)
{
	_cleanup_free_ size_t *starts = calloc(n + 1, sizeof(*starts));
	bool has_gap = true;
	struct order o;

	*ret = (struct rhythm){0};
	if (!starts)
		return -ENOMEM;
	o = order_of(facts, n, starts);
	if (find_period(&o, group, THRESHOLD(CHANCE), ret) < 0)
		return -ENOMEM;
	/* Steps of a group differ, as the last of them waits for all. */
	if (group == 1 && (double)o.stretches >= THRESHOLD(AGAIN) && is_of_both_halves(facts, n) &&
		find_gap(facts, n, &has_gap) < 0)
		return -ENOMEM;
	if (find_stages(facts, n, &ret->is_staged) < 0)
		return -ENOMEM;
	ret->is_varied = !has_gap;
	for (int w = 0; ret->is_varied && w < WORKS; w++)
		ret->is_proportional |= follows(spans, facts, n, (enum work)w);
	return 0;
}

int rhythm_is_regular(const struct step_facts *facts, size_t n, uint32_t group, bool *ret)
{
	_cleanup_free_ size_t *starts = calloc(n + 1, sizeof(*starts));
	struct rhythm found = {0};
	struct order o;

	if (!starts)
		return -ENOMEM;
	o = order_of(facts, n, starts);
	if (find_period(&o, group, THRESHOLD(CHANCE_SURE), &found) < 0)
		return -ENOMEM;
	*ret = found.period_steps > 0;
	return 0;
}
