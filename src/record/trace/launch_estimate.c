/* SPDX-License-Identifier: Apache-2.0 */
/* launch_estimate.c - see launch_estimate.h. What is chosen may change: the weights that follow make up for the
 * difference. Invariant: counted + weighed = what all weights made of the launches that they were applied to. */
#include "record/trace/launch_estimate.h"

#include <math.h>

#include "base/clock.h"
#include "base/macros.h"

/* A stretch with less work says nothing of its rate. */
static const double work_min[LAUNCH_BY_WORK] = {0.5 * NS_PER_MS, NS_PER_MS};
static const double work_ample = 20 * NS_PER_MS;  /* with so much a window need not end first */
static const double work_local = 100 * NS_PER_MS; /* of a long window the last such part counts */

/* Of the time in each phase, in which a launch meets a probe: attaching takes some milliseconds, of which the last
 * are until the window is opened; the traps go at once, and the kernel waits then. */
static const double probed_part[] = {
	[LAUNCH_AWAY] = 0, [LAUNCH_COMING] = 0.7, [LAUNCH_COUNTED] = 1, [LAUNCH_GOING] = 0.2};

#define WORK_LEFT 0.2 /* of CPU time, if all the rest seems to be the probes' */
#define HIT_ERROR                                                                                  \
	0.3 /* of a probe's cost: measured in the agent, paid elsewhere (0.7 to 1.4 of it, on busy CPUs) */
#define FELT_ERROR 0.2              /* where the process's CPU time tells it */
#define TICK_NS    (10 * NS_PER_MS) /* the longest there is: the fewest that a time may come from */
#define TICKS_MIN  8
#define IRQ_ERROR  0.15 /* of it: a tick that is due at the end of a trap comes after it */
#define USER_MIN   0.75 /* one that is in the kernel more often is there for other reasons, too */
#define SLOW_ERROR 0.5  /* of how much longer probes make a window */
#define OFF_MAX    0.9  /* of the work in windows: no more is known then */
#define FACTOR_MAX 2
#define FACTOR_NS  (500 * NS_PER_MS) /* with and without probes, before they are compared */
#define LAUNCH_NS  1000              /* of CPU time: none takes less */
#define CHOICE_MIN 4                 /* gaps before another measure than CPU time is taken */
#define CHOICE     0.7               /* of its error: that is not done for little */
#define ALIKE      0.5               /* as busy in a gap as in the windows, but for such a part */
#define STEADY     0.2 /* launches a second before and after a gap, but for such a part */

static void stretch_add(struct launch_stretch *to, const struct launch_stretch *s)
{
	to->launches += s->launches;
	to->hits += s->hits;
	to->send_ns += s->send_ns;
	to->probe_ns += s->probe_ns;
	to->cpu_ns += s->cpu_ns;
	to->time_ns += s->time_ns;
	to->user_ns += s->user_ns;
	to->tick_ns += s->tick_ns;
	for (int m = 0; m < LAUNCH_BY_WORK; m++)
		to->work[m] += s->work[m];
}

static void away_add(struct launch_away *to, const struct launch_stretch *s)
{
	to->cpu_ns += s->cpu_ns;
	to->time_ns += s->time_ns;
	to->user_ns += s->user_ns;
	to->tick_ns += s->tick_ns;
}

static bool rate_of(const struct launch_stretch *s, enum launch_measure m, double *ret)
{
	if (s->work[m] < work_min[m])
		return false;
	*ret = s->launches / s->work[m];
	return true;
}

/* The share of the time that the process is on a CPU: so much of what probes take makes it slower. */
static double busy(const struct launch_stretch *s)
{
	return s->time_ns > 0 ? fmin(s->cpu_ns / s->time_ns, 1) : 1;
}

/* The gap of @e by the rates at its ends; by that of all windows if neither says anything. */
static struct launch_filling fill(const struct launch_estimate *e, enum launch_measure m)
{
	double gap = e->gap[m], before, after, rate;
	bool has_before = rate_of(&e->before, m, &before),
	     has_after = rate_of(&e->window, m, &after);
	struct launch_filling f = {0};

	if (has_before && has_after) {
		/* Of both together: a window with little work says little. */
		f.launches = gap * (e->before.launches + e->window.launches) /
			     (e->before.work[m] + e->window.work[m]);
		f.variance = pow(gap * (before - after), 2) / 2;
	} else if (has_before || has_after) {
		f.launches = gap * (has_before ? before : after);
		f.variance = pow(f.launches / 2, 2);
	} else if (rate_of(&e->all, m, &rate)) {
		f.launches = gap * rate;
		f.variance = pow(f.launches, 2);
	} else if (m == LAUNCH_BY_CPU) {
		f.bias = gap / LAUNCH_NS; /* nothing is known but that there cannot be more */
	}
	f.by_cpu = m == LAUNCH_BY_CPU ? f.launches : 0;
	return f;
}

/* ---- what the probes took ---- */

struct known { /* a number, and its standard error as a share of it */
	double is, error;
};

/* CPU time in windows that was the process's: what is left of it without what hits cost. */
static struct known work_by_hits(const struct launch_estimate *e)
{
	const struct launch_stretch *s = &e->all;
	double hits_ns = s->hits * e->hit_ns * e->hit_factor;
	double work = fmax(s->cpu_ns - s->send_ns - hits_ns, s->cpu_ns * WORK_LEFT);

	return (struct known){
		work, (e->knows_factor ? FELT_ERROR : HIT_ERROR) * hits_ns / fmax(work, 1)};
}

/* The same, by the share of its own code with and without probes. Ticks are a sample. */
static struct known work_by_user(const struct launch_estimate *e)
{
	const struct launch_stretch *on = &e->all;
	const struct launch_away *off = &e->all_away;
	double n_on = on->tick_ns / TICK_NS, n_off = off->tick_ns / TICK_NS;
	double with, without;

	if (n_on < TICKS_MIN || n_off < TICKS_MIN || on->user_ns <= 0 || off->user_ns <= 0)
		return (struct known){0, INFINITY};
	with = on->user_ns / on->tick_ns;
	without = off->user_ns / off->tick_ns;
	if (without < USER_MIN)
		return (struct known){0, INFINITY};
	return (struct known){fmin(on->cpu_ns * with / without, on->cpu_ns),
		sqrt(fmax(1 - with, 1 / n_on) / (with * n_on) +
			fmax(1 - without, 1 / n_off) / (without * n_off) +
			pow(IRQ_ERROR * fmax(without / with - 1, 0), 2))};
}

/* Both, each as much as it is worth; where they contradict each other, that is how much is known. */
static struct known work_in_windows(const struct launch_estimate *e)
{
	struct known hits = work_by_hits(e), user = work_by_user(e), w = hits;
	double by_hits, by_user;

	if (hits.error > 0 && isfinite(user.error)) {
		by_hits = pow(hits.is * hits.error, -2);
		by_user = pow(user.is * user.error, -2);
		w.is = (hits.is * by_hits + user.is * by_user) / (by_hits + by_user);
		w.error = fmax(1 / sqrt(by_hits + by_user), fabs(hits.is - user.is) / 2) / w.is;
	}
	return w;
}

/* The launches in gaps by @m. Those by CPU time were filled while less was known of what the probes took. */
static double filled(const struct launch_estimate *e, enum launch_measure m)
{
	const struct launch_filling *f = &e->by[m];
	double work = e->all.work[LAUNCH_BY_CPU];

	if (!(f->by_cpu > 0) || !(work > 0))
		return f->launches;
	return f->launches + f->by_cpu * (work / work_in_windows(e).is - 1);
}

/* 1: the process has all its CPU time besides what the probes took, so it does in a window what it would do
 * without probes; 0: it does less, because it has no slack or others have the CPUs. */
static double slack(const struct launch_estimate *e)
{
	const struct launch_stretch *on = &e->all;
	const struct launch_away *off = &e->all_away;

	if (!(off->time_ns > 0) || !(on->probe_ns > 0))
		return 0;
	return fmin(
		fmax((on->cpu_ns - off->cpu_ns / off->time_ns * on->time_ns) / on->probe_ns, 0), 1);
}

/* What is too much work by such a share makes the rate too low by this one. */
static double too_low(double share)
{
	return fmin(share, OFF_MAX) / (1 - fmin(share, OFF_MAX));
}

/* By how much the launches of all gaps from wait to wait disagree with what whole windows say, beyond chance. */
static double steps_unlike(const struct launch_estimate *e)
{
	const struct launch_whole *w = &e->whole;
	double rate, square, gap;

	if (w->count < 2 || !(w->waits > 0) || !(w->launches > 0))
		return INFINITY;
	rate = w->launches / w->waits;
	gap = rate * w->gap_waits;
	square = fmax(w->launches_2 - 2 * rate * w->products + rate * rate * w->waits_2, 0) *
		 w->count / (w->count - 1);
	return fmax(
		fabs(e->by[LAUNCH_BY_WAITS].launches - gap) - gap * sqrt(square) / w->launches, 0);
}

/* What does not become less with more windows. Where time and CPU time disagree, time is right for who has slack. */
static double bias_of(const struct launch_estimate *e, enum launch_measure m)
{
	const struct launch_stretch *s = &e->all;
	double time = s->work[LAUNCH_BY_TIME], bias = e->by[m].bias;
	struct known work = work_in_windows(e);

	if (s->work[LAUNCH_BY_CPU] > 0)
		bias += too_low(2 * work.error) * e->by[m].by_cpu;
	if (m == LAUNCH_BY_TIME && time > 0)
		bias += (SLOW_ERROR * s->probe_ns * busy(s) / time +
				too_low(2 * work.error * work.is * busy(s) / time)) *
				(e->by[m].launches - e->by[m].by_cpu) +
			(1 - slack(e)) * fabs(filled(e, LAUNCH_BY_TIME) - filled(e, LAUNCH_BY_CPU));
	if (m == LAUNCH_BY_WAITS)
		bias += steps_unlike(e);
	return bias;
}

static double variance_of(const struct launch_estimate *e, enum launch_measure m)
{
	const struct launch_marks *k = &e->marks;

	if (m != LAUNCH_BY_WAITS)
		return e->by[m].variance;
	return e->by[m].variance +
	       (k->one_sided + pow(k->alone, 2)) * (k->spreads ? k->spread / k->spreads : 0.25);
}

static double relative_error(const struct launch_estimate *e, enum launch_measure m)
{
	double launches = filled(e, m);

	return launches > 0 ? (2 * sqrt(variance_of(e, m)) + bias_of(e, m)) / launches : INFINITY;
}

/* Whether the process was as busy in the gap as in the windows at its ends. */
static bool is_alike(const struct launch_estimate *e)
{
	double cpu = e->before.work[LAUNCH_BY_CPU] + e->window.work[LAUNCH_BY_CPU];
	double time = e->before.work[LAUNCH_BY_TIME] + e->window.work[LAUNCH_BY_TIME];
	double in_gap = e->gap[LAUNCH_BY_CPU] / fmax(e->gap[LAUNCH_BY_TIME], 1);
	double in_windows = cpu / fmax(time, 1);
	double unknown = 2 * HIT_ERROR * (e->before.probe_ns + e->window.probe_ns) / fmax(time, 1);

	return fabs(in_gap - in_windows) <= ALIKE * fmax(in_gap, in_windows) + unknown;
}

static bool is_steady(const struct launch_estimate *e)
{
	double before, after;

	return rate_of(&e->before, LAUNCH_BY_TIME, &before) &&
	       rate_of(&e->window, LAUNCH_BY_TIME, &after) && after > 0 &&
	       fabs(before - after) <= STEADY * fmax(before, after);
}

static enum launch_measure choose(const struct launch_estimate *e)
{
	double least = CHOICE * relative_error(e, LAUNCH_BY_CPU);
	enum launch_measure best = LAUNCH_BY_CPU;

	if (e->gaps < CHOICE_MIN)
		return best;
	for (int m = LAUNCH_BY_TIME; m < LAUNCH_MEASURES; m++) {
		double error = relative_error(e, m);

		if (error >= least)
			continue;
		best = m;
		least = error;
	}
	return best;
}

static void filling_add(struct launch_filling *to, struct launch_filling f)
{
	to->launches += f.launches;
	to->by_cpu += f.by_cpu;
	to->variance += f.variance;
	to->bias += f.bias;
}

static void fill_gap(struct launch_estimate *e)
{
	bool by_time = is_alike(e);

	if (!e->has_gap)
		return;
	for (int m = 0; m < LAUNCH_BY_WORK; m++)
		filling_add(
			&e->by[m], fill(e, m == LAUNCH_BY_TIME && !by_time ? LAUNCH_BY_CPU : m));
	if (by_time && is_steady(e)) {
		e->steady_away.cpu_ns += e->away.cpu_ns;
		e->steady_away.time_ns += e->away.time_ns;
		stretch_add(&e->steady, &e->window);
	}
	e->away = (struct launch_away){0};
	memset(e->gap, 0, sizeof(e->gap));
	e->gaps++;
	e->has_gap = false;
	e->chosen = choose(e);
}

/* ---- waits ---- */

/* Launches from the last wait of the window before to @to, which has been counted in part: at @rate, and that of the
 * window before. */
static void fill_steps(struct launch_estimate *e, struct launch_mark to, double rate)
{
	struct launch_marks *m = &e->marks;
	double steps = (double)(to.waits - m->kept.waits);
	double counted = (double)(to.launches - m->kept.launches);
	struct launch_filling f = {0};

	if (rate >= 0 && m->rate >= 0) {
		f.launches = steps * (rate + m->rate) / 2 - counted;
		f.variance = pow(steps * (rate - m->rate), 2) / 2;
	} else if (rate >= 0 || m->rate >= 0) {
		f.launches = steps * fmax(rate, m->rate) - counted;
		m->alone += f.launches;
	}
	f.variance += pow(fmax(rate, m->rate), 2) /
		      12; /* a job may wait in the middle of a step for once */
	filling_add(&e->by[LAUNCH_BY_WAITS], f);
}

/* The window is over: now it is known how many launches there were from wait to wait. */
static void marks_end(struct launch_estimate *e)
{
	struct launch_marks *m = &e->marks;
	double waits = (double)(m->last.waits - m->first.waits);
	double launches = (double)(m->last.launches - m->first.launches);
	double rate = waits > 0 ? launches / waits : -1;

	if (!m->has_first)
		return;
	m->has_first = false;
	if (m->has_gap && rate < 0 && m->rate < 0)
		return; /* no rate is known yet: the gap reaches beyond this window */
	if (m->has_gap)
		fill_steps(e, m->first, rate);
	if (rate > 0 && m->rate > 0) {
		m->spread += pow((rate - m->rate) / fmax(rate, m->rate), 2);
		m->spreads++;
	}
	if (rate >= 0) {
		m->rate = rate;
		m->one_sided += pow(m->alone, 2);
		m->alone = 0;
	}
	m->kept = m->last;
	m->has_gap = false;
}

static void whole_end(struct launch_estimate *e)
{
	struct launch_whole *w = &e->whole;
	double launches = (double)(e->last.launches - w->began.launches);
	double waits = (double)(e->last.waits - w->began.waits);

	if (!w->is_open)
		return;
	w->is_open = false;
	w->launches += launches;
	w->waits += waits;
	w->launches_2 += launches * launches;
	w->waits_2 += waits * waits;
	w->products += launches * waits;
	w->count++;
}

/* The window is over, or is long: what follows is compared with its last part. */
static void window_end(struct launch_estimate *e)
{
	if (e->window.work[LAUNCH_BY_CPU] < work_min[LAUNCH_BY_CPU])
		stretch_add(&e->before, &e->window);
	else
		e->before = e->window;
	e->window = (struct launch_stretch){0};
	marks_end(e);
}

static bool is_empty(const struct launch_stretch *s)
{
	return !(s->launches > 0) && !(s->work[LAUNCH_BY_CPU] > 0);
}

static void read_gap(struct launch_estimate *e, const double work[LAUNCH_BY_WORK])
{
	if (!is_empty(&e->window)) {
		/* One that says nothing leaves the gap open, which then reaches beyond it. */
		if (e->window.work[LAUNCH_BY_CPU] >= work_min[LAUNCH_BY_CPU])
			fill_gap(e);
		window_end(e);
	}
	for (int m = 0; m < LAUNCH_BY_WORK; m++)
		e->gap[m] += work[m];
	e->has_gap = e->marks.has_gap = true;
}

static double gain(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

/* How much of the CPU time is not the probes' while they come or go, and launches are not counted: as many are
 * made as in the last window, and probed for a part of that time. */
static double work_share(const struct launch_estimate *e, enum launch_phase phase)
{
	const struct launch_stretch *s = is_empty(&e->window) ? &e->before : &e->window;
	double cpu = s->work[LAUNCH_BY_CPU];

	return cpu > 0 ? 1 / (1 + probed_part[phase] * s->probe_ns / cpu) : 1;
}

/* A process that makes as many launches in a window as without one has more CPU time in it, by what the probes
 * take; one that is always on a CPU tells nothing. */
static void learn_factor(struct launch_estimate *e, double hit_ns)
{
	const struct launch_stretch *on = &e->steady;
	double more_ns;

	e->hit_ns = hit_ns;
	e->hit_factor = fmax(e->hit_factor, 1);
	if (on->time_ns < FACTOR_NS || e->steady_away.time_ns < FACTOR_NS)
		return;
	more_ns = on->cpu_ns - on->send_ns -
		  e->steady_away.cpu_ns / e->steady_away.time_ns * on->time_ns;
	e->hit_factor = fmin(fmax(more_ns / (on->hits * hit_ns), 1), FACTOR_MAX);
	e->knows_factor = more_ns > on->hits * hit_ns;
}

void launch_estimate_read(struct launch_estimate *e, const struct launch_reading *now,
	enum launch_phase phase, double hit_ns)
{
	struct launch_stretch s = {.launches = gain(now->launches, e->last.launches),
		.cpu_ns = gain(now->cpu_ns, e->last.cpu_ns),
		.time_ns = gain(now->time_ns, e->last.time_ns),
		.user_ns = gain(now->user_ns, e->last.user_ns),
		.tick_ns = gain(now->tick_ns, e->last.tick_ns)};
	bool is_counted = phase == LAUNCH_COUNTED;

	learn_factor(e, hit_ns);
	if (e->has_last) { /* some in the moment in which the phase was turned, too */
		e->counted += s.launches;
		e->counted_since += s.launches;
	}
	s.hits = s.launches - gain(now->nested, e->last.nested) / 2;
	s.send_ns = gain(now->send_ns, e->last.send_ns);
	s.probe_ns = s.hits * hit_ns * e->hit_factor + s.send_ns;
	s.work[LAUNCH_BY_CPU] = is_counted ? fmax(s.cpu_ns - s.probe_ns, s.cpu_ns * WORK_LEFT)
					   : s.cpu_ns * work_share(e, phase);
	s.work[LAUNCH_BY_TIME] = fmax(s.time_ns - s.probe_ns * busy(&s), s.time_ns * WORK_LEFT);
	if (!e->has_last) {
		e->has_last = true;
		e->marks.kept = (struct launch_mark){now->waits, now->launches};
		e->marks.rate = -1;
	} else if (is_counted) {
		if (now->waits > e->last.waits) {
			e->marks.last = (struct launch_mark){now->waits, now->at_wait};
			if (!e->marks.has_first)
				e->marks.first = e->marks.last;
			e->marks.has_first = true;
		}
		if (!e->whole.is_open)
			e->whole.began = (struct launch_mark){e->last.waits, e->last.launches};
		e->whole.is_open = true;
		stretch_add(&e->window, &s);
		stretch_add(&e->all, &s);
		if (e->window.work[LAUNCH_BY_CPU] >= work_ample)
			fill_gap(e);
		if (!e->has_gap && e->window.work[LAUNCH_BY_CPU] >= work_local)
			window_end(e);
	} else {
		whole_end(e);
		e->whole.gap_waits += gain(now->waits, e->last.waits);
		read_gap(e, s.work);
		if (phase == LAUNCH_AWAY) {
			away_add(&e->away, &s);
			away_add(&e->all_away, &s);
		}
	}
	e->last = *now;
}

void launch_estimate_end(struct launch_estimate *e)
{
	struct launch_mark end = {e->last.waits, e->last.launches};

	fill_gap(e);
	marks_end(e);
	whole_end(e);
	if (e->marks.has_gap)
		fill_steps(e, end, -1);
	e->marks.has_gap = false;
	e->marks.kept = end; /* more readings may come, and another end */
	e->chosen = choose(e);
}

void launch_estimate_weigh(struct launch_estimate *e)
{
	if (e->counted_since > 0)
		e->last_weight = 1 + fmax(filled(e, e->chosen) - e->weighed, 0) / e->counted_since;
	e->counted_since = 0;
}

double launch_estimate_apply(struct launch_estimate *e, double launches)
{
	double weight = fmax(e->last_weight, 1);

	e->weighed += launches * (weight - 1);
	return weight;
}

double launch_estimate_more(struct launch_estimate *e)
{
	double more = filled(e, e->chosen) - e->weighed, made = e->counted + e->weighed;

	if (e->counted_since > 0 || !(more > 0) || !(made > 0))
		return 0;
	e->weighed += more;
	return more / made;
}

double launch_estimate_total(const struct launch_estimate *e)
{
	return e->counted + filled(e, e->chosen);
}

/* What weights have not made up for yet is not in what is shown. */
static double owed(const struct launch_estimate *e)
{
	return fabs(filled(e, e->chosen) - e->weighed);
}

double launch_estimate_bias(const struct launch_estimate *e)
{
	return bias_of(e, e->chosen) + owed(e);
}

double launch_estimate_error(const struct launch_estimate *e)
{
	/* Two standard errors; the fewer gaps they come from, the less they are to be trusted. */
	double errors = e->gaps ? 2 + 8 / (double)e->gaps : 0;

	return errors * sqrt(variance_of(e, e->chosen)) + launch_estimate_bias(e);
}
