/* SPDX-License-Identifier: Apache-2.0 */
/* time_finding.c - see time_finding.h.
 *
 * Slow units: what grew from ordinary to slow ones is what they lost their time to; each cause that has a quarter
 * of the growth, or is one by itself and has a tenth that costs 5 % of the time, is a finding with its share of the
 * lost time. What the program does by itself every so many units, from the beginning on, is as good as in all units,
 * and judged as that.
 *
 * All units: what is waste by any standard and takes 15 % of every one is a finding, whether there was anything to
 * compare with or not; so is host code that does not drive the GPU, from 50 % on, from 40 % if the GPU is
 * hardly ever waited for, or from 15 % if it is known what a library does in it. What is both is told once: as a difference
 * if it more than doubles. What only shortens the wait for the GPU is not lost.
 *
 * Confidence = how often such evidence is right (fitted to tests/corpus) x that of the units x n/(n+2) of them x the share
 * of what slow ones lost that is known x completeness. */
#include "diagnose/findings/time_finding.h"

#include <math.h>
#include <string.h>

#include "diagnose/chains/chain.h"
#include "diagnose/chains/delay_weight.h"
#include "diagnose/chains/whole.h"
#include "diagnose/findings/pattern.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"

static uint64_t observed_ns(const struct step_account *a)
{
	return (uint64_t)MAX(a->last.ns - a->first.ns, INT64_C(1));
}

/* What slow units lost is judged by the time around them, and no less than somebody who watches sees: hours without a
 * fault do not make the minutes with it any better. */
static double judged_ns(const struct step_account *a)
{
	int64_t around = a->slow_last.ns - a->slow_first.ns;

	return MIN((double)observed_ns(a), MAX((double)around, THRESHOLD(JUDGED_NS)));
}

/* Rows with lengths that make no sense give units that overlap: nothing is to be learnt from those. */
static bool adds_up(const struct step_account *a)
{
	uint64_t sum = 0;

	for (int l = 0; l < ACCOUNT_LINES; l++)
		sum += a->total_ns[l];
	return sum <= observed_ns(a);
}

/* How often such evidence is right: that somebody else had what was waited for is seen; that a call or a wait took its
 * time is measured, but may be how the program works; of the program's own code it is least known whether it had to run. */
static double evidence_of(const struct delay *d)
{
	enum resource_evidence by = resource_rows[d->end.resource].evidence;
	bool is_guess = d->end.resource == RESOURCE_GPU_PROCESS && !d->end.count;

	if (d->end.resource == RESOURCE_GPU_PERHAPS)
		return THRESHOLD(UNKNOWN_MOST) * (d->end.is_doubtful ? THRESHOLD(DOUBT) : 1);
	if (by != EVIDENCE_KIND)
		return by == EVIDENCE_OWN || is_guess ? THRESHOLD(SURE_OWN) : THRESHOLD(SURE_SEEN);
	switch (d->kind) {
	case DELAY_BY_GPU:
	case DELAY_BY_HOST:
	case DELAY_BY_LAUNCH:
	case DELAY_BY_CALL:
	case DELAY_BY_GRAPH:
	case DELAY_BY_SYNC:
	case DELAY_BY_LOCK:
	case DELAY_BY_COMPILE: return THRESHOLD(SURE_OWN);
	default: return THRESHOLD(SURE_MEASURED);
	}
}

/* Units that are cut wrongly blur a difference, they do not make one: half of their doubt counts. Those that are taken
 * together are seen once. */
static double confidence_of(const struct step_account *a, double evidence, uint32_t units,
	double unknown, double completeness)
{
	double seen = (double)units / MAX(a->group, 1u);

	return evidence * sqrt(a->confidence) * seen / (seen + THRESHOLD(UNITS_HALF)) *
	       (1 - unknown) * completeness_weight(completeness);
}

static void add(struct time_findings *all, const struct time_finding *f)
{
	all->items[all->count++] = *f;
}

/* Whether the @i-th delay has a part of what slow units lost that is worth a word of its own: a large one, or a
 * smaller one of a large loss. */
static bool is_large(const struct recording *rec, const struct step_account *a,
	const struct delay_list *l, int i, uint64_t lost)
{
	const struct delay *d = &l->items[i];
	double share = (double)lost / judged_ns(a);

	if (d->share < THRESHOLD(PART) &&
		(d->share < THRESHOLD(FEW) || share < THRESHOLD(OTHER_TIME) ||
			!delay_stands_alone(d->kind)))
		return false;
	if (delay_is_idle(rec, a, d) && !delay_is_lasting(a)) /* requests that come now and then */
		return false;
	if (d->kind == DELAY_BY_UNKNOWN && (i > 0 || a->slow_steps < THRESHOLD(AGAIN)))
		return false;
	return share >= THRESHOLD(LEAST_SHARE) && lost >= THRESHOLD(LEAST_NS);
}

/* That the GPU takes longer, or nothing is known at all, is no cause; nor is a process that is on the GPU. */
static bool is_unexplained(const struct delay *d, const struct gpu_change *gpu)
{
	if (d->end.resource == RESOURCE_GPU_PROCESS)
		return !gpu->others.count && !gpu->is_busier;
	return d->kind == DELAY_BY_UNKNOWN ||
	       (d->kind == DELAY_BY_GPU && gpu->reason == GPU_BY_NOTHING &&
		       d->end.resource == RESOURCE_NONE);
}

/* Whether it costs nothing because the GPU has enough to do all the time. What the GPU itself takes, and what frees its
 * memory, is not told by how busy it is. */
static bool is_hidden(const struct recording *rec, const struct step_account *a,
	const struct delay *d, double share)
{
	return d->kind != DELAY_BY_GPU && d->kind != DELAY_BY_ALLOCATION &&
	       gpu_is_never_idle(rec, a, share);
}

static void find_slow(struct time_findings *all, double completeness)
{
	const struct step_account *a = all->account;

	for (int i = 0; a->lost_ns && i < all->slow_delays.count; i++) {
		struct delay *d = &all->slow_delays.items[i];
		struct time_finding f = {.contrast = CONTRAST_SLOW,
			.lost_ns = (uint64_t)(d->share * (double)a->lost_ns),
			.units = a->slow_steps};

		if (!is_large(all->rec, a, &all->slow_delays, i, f.lost_ns))
			continue;
		chain_follow(all->rec, a, &all->gpu, d);
		f.delay = *d;
		f.share = (double)f.lost_ns / judged_ns(a);
		f.problem = pattern_problem(all->rec, a, CONTRAST_SLOW, d);
		f.is_harmless = delay_is_harmless(all->rec, a, &all->gpu, d) ||
				is_hidden(all->rec, a, d, f.share);
		f.is_routine = delay_is_routine(a, d);
		f.confidence = confidence_of(
			a, evidence_of(d), a->slow_steps, all->slow_delays.unknown, completeness);
		if (d->kind == DELAY_BY_UNKNOWN) /* no more is claimed than that they are slow */
			f.confidence = confidence_of(
				a, THRESHOLD(SURE_MEASURED), a->slow_steps, 0, completeness);
		if (is_unexplained(d, &all->gpu))
			f.confidence = MIN(f.confidence, THRESHOLD(UNKNOWN_MOST));
		if (delay_may_be_idle(all->rec, a, d))
			f.confidence *= THRESHOLD(DOUBT);
		add(all, &f);
	}
}

/* What slow units have more of is told with them where ordinary ones have little of it, and also where it is nothing to
 * worry about: what comes and goes is not what every unit has. Else it is told of all. True: @kind is told. */
static bool is_told_of_slow(struct time_findings *all, const struct delay *whole, uint64_t lost_ns)
{
	enum delay_kind kind = whole->kind;
	/* A limit that stops ordinary units as well is as much theirs, where it costs all of them more. */
	bool is_standing = whole->end.resource == RESOURCE_CPU_QUOTA;

	for (int i = 0; i < all->count; i++) {
		struct time_finding *f = &all->items[i];
		bool is_known;

		if (f->contrast != CONTRAST_SLOW || f->delay.kind != kind)
			continue;
		is_known = kind != DELAY_BY_GPU ||
			   (!f->is_harmless && !is_unexplained(&f->delay, &all->gpu));
		/* Since when says more than how much, but not more than why. */
		if (kind == DELAY_BY_GPU && is_known)
			return true;
		if (is_known &&
			(double)f->delay.slow_ns >=
				THRESHOLD(WHOLE_MORE) * (double)f->delay.ordinary_ns &&
			(double)lost_ns < THRESHOLD(WHOLE_FAR) * (double)f->lost_ns &&
			!(is_standing && lost_ns > f->lost_ns))
			return true;
		*f = all->items[--all->count];
		return false;
	}
	return false;
}

/* Of code that does something on the way, or has a library do something, no more than that counts; of calls that wait for the
 * GPU as well, their own time. */
static void keep_own(const struct recording *rec, const struct step_account *a, struct delay *d)
{
	bool is_detour = d->kind == DELAY_BY_HOST && d->end.stack_hash;
	double own = is_detour                        ? d->end.share
		     : d->kind == DELAY_BY_ALLOCATION ? allocating_own_share(rec, a)
						      : 1;

	d->slow_ns = (uint64_t)(own * (double)d->slow_ns);
	d->share *= own;
	d->end.share = is_detour ? 1 : d->end.share;
}

/* The part of @d, which is in every unit, that is lost: all of it where it is waste; of a wait for the GPU what its
 * clock, another process or too wide numbers cost. */
static double lost_of(
	const struct recording *rec, const struct step_account *a, const struct delay *d)
{
	if (delay_is_waste(rec, a, d))
		return 1;
	return d->kind == DELAY_BY_GPU && d->share >= THRESHOLD(CHAIN_PART) &&
			       resource_is(d->end.resource, RESOURCE_IN_ALL)
		       ? d->end.share
		       : 0;
}

/* A job that is content with 32 bits may have its reasons. */
static bool is_choice(const struct delay *d)
{
	return d->end.resource == RESOURCE_PRECISION && strcmp(d->end.who, "fp64");
}

/* Of the code that leads to launches only what has one of the entries is on their line. */
static bool is_alike(enum delay_kind kind, enum delay_kind of)
{
	return kind == of || (of == DELAY_BY_LAUNCH && kind == DELAY_BY_HOST);
}

/* What only slow units have is told with them: how much of it ordinary ones have, as a part of what all have. */
static bool is_of_slow(const struct time_findings *all, const struct delay *d)
{
	struct step_account ordinary = *all->account, whole;
	struct delay_list in_ordinary;
	double share = 0;

	if (!ordinary.lost_ns)
		return false;
	ordinary.lost_ns = 0;
	for (int i = 0; i < ordinary.entry_count; i++) {
		ordinary.entries[i].slow_ns = ordinary.entries[i].ordinary_ns;
		ordinary.entries[i].ordinary_ns = 0;
	}
	step_account_whole(all->rec, &ordinary, &whole);
	delays_find(all->rec, &whole, &in_ordinary);
	for (int i = 0; i < in_ordinary.count; i++)
		if (is_alike(in_ordinary.items[i].kind, d->kind))
			share += in_ordinary.items[i].share;
	return share < THRESHOLD(CHAIN_MOST) * d->share;
}

/* Whether slow units are told of at all: then nothing that is theirs is told again. */
static bool has_slow(const struct time_findings *all)
{
	for (int i = 0; i < all->count; i++)
		if (all->items[i].contrast == CONTRAST_SLOW && !all->items[i].is_harmless)
			return true;
	return false;
}

/* Without a framework's marks it is not known whether its first step is over: code is made in that. */
static bool may_be_start(const struct step_account *a, const struct delay *d)
{
	return d->kind == DELAY_BY_COMPILE && a->origin > STEP_BY_LOADER;
}

static void find_whole(struct time_findings *all, double completeness)
{
	const struct step_account *a = &all->whole;

	for (int i = 0; i < all->whole_delays.count; i++) {
		struct delay *d = &all->whole_delays.items[i];
		struct time_finding f = {.contrast = CONTRAST_WHOLE, .units = a->ordinary_steps};
		double lost;
		bool is_built;

		chain_follow(all->rec, a, NULL, d);
		keep_own(all->rec, a, d);
		lost = lost_of(all->rec, a, d);
		is_built = lost == 0 && !has_slow(all) && delay_is_built(all->rec, a, d);
		lost = (is_built ? 1 : lost) * (1 - delay_hidden(a, d));
		f.lost_ns = (uint64_t)(lost * (double)d->slow_ns * (double)a->ordinary_steps);
		f.share = lost * d->share;
		if (f.lost_ns < THRESHOLD(LEAST_NS) || is_told_of_slow(all, d, f.lost_ns) ||
			(has_slow(all) && is_of_slow(all, d)))
			continue;
		f.delay = *d;
		f.problem = pattern_problem(all->rec, a, CONTRAST_WHOLE, d);
		f.is_harmless = is_built || delay_is_of_tracer(d) || is_choice(d) ||
				delay_is_pause(all->rec, a, d) ||
				is_hidden(all->rec, a, d, f.share);
		/* What the rest of a unit goes into need not be known. */
		f.confidence = confidence_of(a, evidence_of(d), a->ordinary_steps, 0, completeness);
		if (delay_may_be_idle(all->rec, a, d) || may_be_start(a, d))
			f.confidence *= THRESHOLD(DOUBT);
		add(all, &f);
	}
}

int time_findings_find(const struct recording *rec, const struct step_account *a,
	double completeness, struct time_findings *ret)
{
	int r;

	*ret = (struct time_findings){.rec = rec, .account = a};
	if (a->confidence < THRESHOLD(MEDIUM_SURE) || !adds_up(a))
		return 0;
	step_account_whole(rec, a, &ret->whole);
	delays_find(rec, a, &ret->slow_delays);
	r = gpu_change_find(rec, a, &ret->gpu);
	if (r < 0)
		return r;
	find_slow(ret, completeness);
	delays_find(rec, &ret->whole, &ret->whole_delays);
	find_whole(ret, completeness);
	return 0;
}
