/* SPDX-License-Identifier: Apache-2.0 */
/* classify.c - see classify.h.
 *
 * Other: steps with another number of backward passes or batches than most (an evaluation between two
 * steps), slow ones before the first ordinary one (warm-up), and those that were mostly spent with making code, unless
 * that goes on. One more batch that was asked for is the end
 * of an epoch, after which the next one begins: still the same work.
 *
 * Where the GPU is waited for once in k steps, the host runs ahead in between: k steps are one unit,
 * and only units are compared, by their length per step. Steps in which the tracer probed launches are
 * compared without what that costs (probe_cost_find()).
 *
 * Units fall into two classes if their lengths do by more than they vary anyway (separate.h), or did at one
 * moment (trend_find()): where nearly all since are longer than nearly all before, that moment is a better border than any
 * length. Units that became longer little by little are a drift: the first quarter is what was ordinary. */
#include "diagnose/contrasts/classify.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diagnose/contrasts/rhythm.h"
#include "diagnose/contrasts/separate.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"
#include "stat/robust.h"

#define GROUP_MAX      64
#define DRIFT_ORDINARY 4
#define MISSED_PARTS   4 /* units of set-up for each that samples miss */

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
	if ((double)best < THRESHOLD(MOST) * (double)n)
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
	return robust_median_of(scratch, k);
}

static void mark_warmup(struct step_facts *steps, size_t n, uint64_t median)
{
	size_t last = 0;

	for (size_t i = 0; i < MIN(n / 5, (size_t)THRESHOLD(WARMUP_STEPS)); i++)
		if ((double)steps[i].dur_ns > THRESHOLD(HALF_MORE) * (double)median)
			last = i + 1;
		else if (i >= last + 2)
			break;
	for (size_t i = 0; i < last; i++)
		steps[i].class = STEP_OTHER;
}

static bool has_making(const struct step_facts *s, enum code_making how)
{
	return (double)s->made_ns[how] > THRESHOLD(LITTLE) * (double)s->dur_ns;
}

struct making { /* of a row of units */
	double all_ns, made_ns, units, makers;
	double stretches; /* of makers, with others between them */
};

static struct making sum_making(
	const struct step_facts *steps, size_t from, size_t to, enum code_making how)
{
	struct making m = {.units = (double)(to - from)};

	for (size_t i = from; i < to; i++) {
		m.all_ns += (double)steps[i].dur_ns;
		m.made_ns += (double)steps[i].made_ns[how];
		m.makers += has_making(&steps[i], how);
		m.stretches += has_making(&steps[i], how) &&
			       (i == from || !has_making(&steps[i - 1], how));
	}
	return m;
}

/* The first unit of the last part of the time, or of the units, since code was first made. */
static size_t late_unit(const struct step_facts *steps, size_t n, double all_ns)
{
	double late = 0;
	size_t i = n;

	while (i && late < THRESHOLD(COMPILE_LATE) * all_ns)
		late += (double)steps[--i].dur_ns;
	return i;
}

/* Too few units have it to say whether they get rarer: whether it takes most of the time, and does to the end, though units
 * without it have come between. */
static bool is_mostly_making(const struct making *all, const struct making *late)
{
	return all->makers < THRESHOLD(LEAST) && all->stretches >= 2 &&
	       all->made_ns >= THRESHOLD(CHAIN_MOST) * all->all_ns &&
	       late->made_ns >= THRESHOLD(CHAIN_MOST) * late->all_ns;
}

/* Whether stretches of it come every so many units, to the end: of few that are near each other, chance may be that regular. */
static bool is_making_regularly(const struct step_facts *steps, size_t n)
{
	size_t least = SIZE_MAX, most = 0, count = 0, last = 0;

	for (size_t i = 0; i < n; i++) {
		if (!has_making(&steps[i], MAKING_CODE) ||
			(i && has_making(&steps[i - 1], MAKING_CODE)))
			continue;
		if (count++) {
			least = MIN(least, i - last);
			most = MAX(most, i - last);
		}
		last = i;
	}
	return (double)count >= THRESHOLD(LEAST) && (double)least >= THRESHOLD(RARELY) &&
	       (double)MAX(most, n - last) <= THRESHOLD(HALF_MORE) * (double)least;
}

/* Whether as much code is made at the end as since it was first made, by the time and by the number of units that have it. What
 * each kernel needs once, or each new size of the work, gets rarer. Plans of libraries may be for many sizes: what
 * is over within a minute is no complaint. */
static bool making_goes_on(const struct step_facts *steps, size_t n, enum code_making how)
{
	size_t first = 0;
	struct making all, by_time, by_units;

	while (first < n && !has_making(&steps[first], how))
		first++;
	all = sum_making(steps, first, n, how);
	if (how == MAKING_MODEL) /* what nearly every unit does is its own */
		return all.makers * THRESHOLD(RARELY) > (double)n;
	by_time = sum_making(steps, late_unit(steps, n, all.all_ns), n, how);
	by_units = sum_making(
		steps, n - (size_t)(THRESHOLD(COMPILE_LATE) * (double)(n - first)), n, how);
	if (how == MAKING_CODE &&
		(is_mostly_making(&all, &by_time) || is_making_regularly(steps, n)))
		return true;
	return all.makers >= THRESHOLD(LEAST) && by_time.makers * 2 >= THRESHOLD(LEAST) &&
	       by_time.made_ns * all.all_ns >=
		       THRESHOLD(CHAIN_MOST) * all.made_ns * by_time.all_ns &&
	       by_units.makers * all.units >= THRESHOLD(CHAIN_MOST) * all.makers * by_units.units &&
	       (how != MAKING_PLANS || all.all_ns >= THRESHOLD(PLANS_NS));
}

/* Units are taken without what was set-up; those that were mostly that are compared with nothing. */
static void leave_out_making(struct step_facts *steps, size_t n, enum code_making how)
{
	for (size_t i = 0; i < n; i++) {
		if (steps[i].made_ns[how] * 2 > steps[i].dur_ns)
			steps[i].class = STEP_OTHER;
		steps[i].dur_ns -= MIN(steps[i].made_ns[how], steps[i].dur_ns);
	}
}

static uint64_t full_ns(const struct step_facts *s)
{
	uint64_t ns = s->dur_ns;

	for (int how = MAKING_PLANS; how < MAKINGS; how++)
		ns += s->made_ns[how];
	return ns;
}

/* Where most long units are set-up, a few others that are as long are that, too: samples miss some of it. */
static int leave_out_missed(struct step_facts *steps, size_t n, const bool is_setup[MAKINGS])
{
	_cleanup_free_ uint64_t *setup = calloc(n + 1, sizeof(*setup));
	size_t count = 0, slow = 0;
	uint64_t from, to;

	if (!setup)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		slow += steps[i].class == STEP_SLOW;
		for (int how = MAKING_PLANS; how < MAKINGS; how++)
			if (is_setup[how] && steps[i].class == STEP_OTHER &&
				steps[i].made_ns[how] > steps[i].dur_ns) {
				setup[count++] = full_ns(&steps[i]);
				break;
			}
	}
	if (!slow || slow * MISSED_PARTS > count)
		return 0;
	robust_sort(setup, count);
	from = robust_quantile(setup, count, 1.0 / MISSED_PARTS);
	to = robust_quantile(setup, count, 1 - 1.0 / MISSED_PARTS);
	for (size_t i = 0; i < n; i++)
		if (steps[i].class == STEP_SLOW && steps[i].dur_ns >= from / 2 &&
			steps[i].dur_ns <= to * 2)
			steps[i].class = STEP_OTHER;
	return 0;
}

/* A step that waits for what the steps before it have queued. */
static bool is_long_wait(const struct step_facts *s, uint64_t mean, uint64_t median_wait)
{
	return s->class != STEP_OTHER &&
	       (double)s->wait_ns > THRESHOLD(WAIT_SHARE) * (double)mean &&
	       (double)s->wait_ns > THRESHOLD(FAR_MORE) * (double)median_wait;
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
	if ((double)waits < THRESHOLD(LEAST) ||
		(double)counts[best] < THRESHOLD(MOST) * (double)(waits - 1))
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

static void set_class(struct step_facts *steps, const struct unit *units, size_t from, size_t to,
	enum step_class class)
{
	for (size_t u = from; u < to; u++)
		for (size_t i = 0; i < units[u].count; i++)
			steps[units[u].first + i].class = class;
}

/* Beside a difference that most units have, what happened to a few of them only is another matter: they are compared with
 * nothing. What they took beyond the others. */
static double leave_out_few(struct step_facts *steps, const struct unit *units, size_t from,
	size_t to, uint64_t *scratch)
{
	double limit, median, beyond = 0;
	size_t far = 0;

	for (size_t u = from; u < to; u++)
		scratch[u - from] = units[u].per_step_ns;
	median = (double)robust_median_of(scratch, to - from);
	limit = THRESHOLD(FAR_MORE) * median;
	for (size_t u = from; u < to; u++)
		far += (double)units[u].per_step_ns > limit;
	if ((double)far >= THRESHOLD(LEAST))
		return 0;
	for (size_t u = from; u < to; u++)
		if ((double)units[u].per_step_ns > limit) {
			set_class(steps, units, u, u + 1, STEP_OTHER);
			beyond += (double)units[u].per_step_ns - median;
		}
	return beyond;
}

/* Slow are the units from a length on. */
static void set_long(struct step_facts *steps, const struct unit *units, size_t n, uint64_t limit,
	enum step_class class)
{
	for (size_t u = 0; u < n; u++)
		if (units[u].per_step_ns >= limit)
			set_class(steps, units, u, u + 1, class);
}

/* Whether slow units follow each other more often than by chance: by the number of changes between the two
 * classes (Wald and Wolfowitz), in standard deviations. */
static bool is_in_runs(const struct unit *units, size_t n, uint64_t limit)
{
	double slow = 0, runs = 1, expected, deviation;

	for (size_t u = 0; u < n; u++) {
		bool is_slow = units[u].per_step_ns >= limit;

		slow += is_slow;
		runs += u && is_slow != (units[u - 1].per_step_ns >= limit);
	}
	expected = 2 * slow * ((double)n - slow) / (double)n + 1;
	deviation = sqrt((expected - 1) * (expected - 2) / ((double)n - 1));
	return expected > 2 && expected - runs >= THRESHOLD(BEYOND) * deviation;
}

/* Units fall into two classes by their lengths, and where these are not far apart only if the slow ones come
 * every so many steps or one after the other. */
static int mark_slow(struct step_facts *steps, size_t step_count, const struct unit *units,
	size_t n, const uint64_t *sorted, const struct separation *found, uint32_t group)
{
	uint64_t limit = sorted[found->low];
	bool is_regular = false;

	set_long(steps, units, n, limit, STEP_SLOW);
	if (found->is_sure || is_in_runs(units, n, limit))
		return 0;
	if (rhythm_is_regular(steps, step_count, group, &is_regular) < 0)
		return -ENOMEM;
	if (!is_regular)
		set_long(steps, units, n, limit, STEP_ORDINARY);
	return 0;
}

/* Slow are the units since @from, but for those few that something else happened to. Whether that is more than what they
 * all took longer. */
static bool mark_change(struct step_facts *steps, const struct unit *units, size_t from, size_t n,
	uint64_t *scratch)
{
	double beyond, before, after, longer = 0;

	set_class(steps, units, from, n, STEP_SLOW);
	beyond = leave_out_few(steps, units, 0, from, scratch);
	before = (double)robust_median(scratch, from);
	after = leave_out_few(steps, units, from, n, scratch);
	for (size_t u = from; u < n; u++)
		longer += (double)units[u].per_step_ns - before;
	return beyond + after > longer - after;
}

/* Slow is what is longer, by its length or since a moment; of a drift all after the first quarter. */
static int mark_units(struct step_facts *steps, size_t step_count, const struct unit *units,
	size_t n, struct classification *ret)
{
	_cleanup_free_ uint64_t *lengths = calloc(n + 1, sizeof(*lengths));
	_cleanup_free_ uint64_t *sorted = calloc(n + 1, sizeof(*sorted));
	struct separation found;
	size_t from;

	if (!lengths || !sorted)
		return -ENOMEM;
	for (size_t u = 0; u < n; u++)
		sorted[u] = lengths[u] = units[u].per_step_ns;
	robust_sort(sorted, n);
	if (separate_find(sorted, n, &found) < 0 ||
		trend_find(lengths, n, found.low && found.is_sure, &ret->trend) < 0)
		return -ENOMEM;
	from = ret->trend.is_drift ? n / DRIFT_ORDINARY : ret->trend.since;
	if (from != SIZE_MAX) {
		if (!mark_change(steps, units, from, n, lengths) || !found.low)
			return 0;
		ret->trend = (struct trend){.since = SIZE_MAX};
		set_class(steps, units, 0, n, STEP_ORDINARY);
	}
	return found.low ? mark_slow(steps, step_count, units, n, sorted, &found, ret->group) : 0;
}

int classify_steps(struct step_facts *steps, size_t n, struct classification *ret)
{
	_cleanup_free_ uint64_t *scratch = calloc(n + 1, sizeof(*scratch));
	_cleanup_free_ struct unit *units = calloc(n + 1, sizeof(*units));
	uint64_t mean = 0, median_wait;
	size_t count;
	double cost;

	*ret = (struct classification){.group = 1};
	if (!scratch || !units)
		return -ENOMEM;
	if (mark_phases(steps, n) < 0)
		return -ENOMEM;
	for (enum code_making how = MAKING_PLANS; how < MAKINGS; how++) {
		ret->is_setup[how] = !making_goes_on(steps, n, how);
		if (ret->is_setup[how])
			leave_out_making(steps, n, how);
	}
	mark_warmup(steps, n, median_of(steps, n, scratch));
	for (size_t i = 0; i < n; i++) {
		mean += steps[i].dur_ns / n;
		scratch[i] = steps[i].wait_ns;
	}
	median_wait = robust_median_of(scratch, n);
	ret->group = find_group(steps, n, mean, median_wait);
	if (probe_cost_find(steps, n, &cost) < 0)
		return -ENOMEM;
	count = make_units(steps, n, ret->group, mean, median_wait, cost, units);
	if (mark_units(steps, n, units, count, ret) < 0 ||
		leave_out_missed(steps, n, ret->is_setup) < 0)
		return -ENOMEM;
	sum_up(steps, n, ret);
	return 0;
}

/* 
 * Each stretch of probed steps is compared with the few steps before and after it, so that a job that
 * becomes slower meanwhile does not look like the cost of probes; the median of the stretches counts,
 * so that a stretch in which something else happened does not either. */

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
static uint64_t probe_median_of(
	const struct step_facts *steps, size_t from, size_t to, bool probed, uint64_t *scratch)
{
	size_t n = 0;

	for (size_t i = from; i < to; i++)
		if (probed ? is_probed(&steps[i]) : is_plain(&steps[i]))
			scratch[n++] = steps[i].dur_ns;
	return robust_median_of(scratch, n);
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
	before = probe_median_of(steps, first, from, false, scratch);
	after = probe_median_of(steps, to, last, false, scratch);
	here = probe_median_of(steps, from, to, true, scratch);
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
	cost = (double)robust_median_of(ratios, count) / PARTS;
	*ret = MIN(MAX(cost, 1.0), THRESHOLD(HALF_MORE));
	return 0;
}
