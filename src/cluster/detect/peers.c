/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c - a node against its peers: those of its cluster with the same workload type, GPU model and
 * world size by raw signals, and those of its cohort by score. A node's own past says nothing about a
 * node that was slow from boot, and forgets a drop that lasts; its peers do not.
 *
 * A deviation is no chance where it exceeds the limit at two pushes in a row. The limit is
 *   z(N) * max(spread among the peers, noise from push to push), at least 10 % of the median (scores:
 *   0.05): less is not reported. That a node launches more is reported only where its job has become slower; there any difference
 *   that is no chance is enough.
 * z(N) lets one of a hundred clusters of N nodes have a healthy node beyond it even if nodes differ
 * among themselves for good, so that noise, which must exceed it twice, does so less than once a day:
 * 8640 N (0.01 / 6N)^2. With few nodes the spread of one moment may be small by chance; its average
 * over time is not, nor is noise, which is pooled over all of them.
 *
 * Drift is told from a step by a CUSUM of how far a node is from where it usually is among its peers:
 * it has been rising for long by the time the limit is reached. It also finds a change where peers
 * differ so much among themselves that their spread hides it. */
#include <math.h>

#include "cluster/detect/nodes_table.h"

#define IN_A_ROW     2    /* pushes that begin or end an episode */
#define SIGNAL_MIN   0.10 /* part of the median */
#define SIGNAL_CALM  0.05 /* less than this is an end */
#define SCORE_MIN    0.05
#define SPREAD_FLOOR 0.005 /* a part of the median; signals are no more exact than that */
#define SIGMA_ALPHA  0.05
#define CHANCE       (0.01 / MEASURE_COUNT)
#define NOISE_SEEN   3 /* observations from which a node's noise is known */
#define NOISE_ALPHA  0.02
#define NOISE_SIGMA  1.128 /* mean distance of two normal values, in sigmas */
#define LEVEL_SEEN   12    /* observations that tell where a node usually is: 2 min */
#define LEVEL_ALPHA  0.001 /* afterwards it moves within hours */
#define DRIFT_SLACK  0.02
#define DRIFT_RUN    12
#define DRIFT_SUM    0.5
#define DRIFT_SUM_Z  8 /* likewise in sigmas */
#define DRIFT_CALM   0.05
#define DRIFT_Z      5

/* Of @d from its peers; -INFINITY: not known. */
static double measure_deviation(const struct node *d, unsigned measure)
{
	const struct cohort *c =
		measure == MEASURE_SCORE ? cohort_of_score(d) : d->in[COHORT_PEERS];
	double median = c->measures[measure].spread.median, value;

	if (measure == MEASURE_SCORE)
		return median - d->last.score;
	value = d->last.signals[measure];
	if (value < 0 || median <= 0)
		return -INFINITY;
	return (push_signal_more_is_better(measure) ? median - value : value - median) / median;
}

static double value_of(const struct node *d, unsigned measure)
{
	return measure == MEASURE_SCORE ? d->last.score : d->last.signals[measure];
}

/* The typical node's noise; -1: too few are known. */
static double pooled_noise(struct nodes *n, struct cohort *c, unsigned measure, int64_t now_ns)
{
	struct node *d;
	size_t count = 0;

	LIST_FOREACH(d, &c->members, with[c->kind])
	if (node_counts(n, d, now_ns) && d->traces[measure].seen >= NOISE_SEEN)
		n->values[count++] = d->traces[measure].noise;
	if (count < SPREAD_MIN)
		return -1;
	spread_sort(n->values, count);
	return spread_median(n->values, count) / NOISE_SIGMA;
}

/* A moment in which some nodes are in another phase of their job than others does not count for more. */
static void sigma_add(struct measure *m, double sigma)
{
	double weight = fmax(SIGMA_ALPHA, 1.0 / ++m->seen);

	if (m->seen > 1)
		sigma = fmin(sigma, 3 * m->sigma);
	m->sigma += weight * (sigma - m->sigma);
}

static void measure_signal(struct nodes *n, struct cohort *c, unsigned measure, int64_t now_ns)
{
	struct measure *m = &c->measures[measure];
	bool is_score = measure == MEASURE_SCORE;
	double scale, floor, noise;
	struct node *d;
	size_t count = 0, beyond = 0;

	LIST_FOREACH(d, &c->members, with[c->kind])
	if (node_counts(n, d, now_ns) && value_of(d, measure) >= 0)
		n->values[count++] = value_of(d, measure);
	m->chance = m->limit = INFINITY;
	m->is_known = false;
	if (count < SPREAD_MIN)
		return;
	spread_sort(n->values, count);
	scale = is_score ? 1 : spread_median(n->values, count);
	floor = is_score ? n->settings.mad_floor : SPREAD_FLOOR * scale;
	m->spread = spread_of(n->values, count, 2, floor);
	m->is_known = scale > 0;
	noise = pooled_noise(n, c, measure, now_ns);
	if (m->is_known)
		sigma_add(m, m->spread.sigma / scale);
	if (!m->is_known || noise < 0)
		return;
	m->noise = noise;
	m->chance = spread_z(CHANCE / (double)count) *
		    fmax(fmax(m->spread.sigma / scale, m->sigma), noise);
	m->limit = fmax(is_score ? SCORE_MIN : SIGNAL_MIN, m->chance);
	LIST_FOREACH(d, &c->members, with[c->kind])
	beyond += node_counts(n, d, now_ns) && measure_deviation(d, measure) >= m->limit;
	if (2 * beyond >= count)
		m->is_known = false;
}

void cohort_measure(struct nodes *n, struct cohort *c, int64_t now_ns)
{
	if (c->kind == COHORT_PEERS)
		for (enum push_signal s = 0; s < PUSH_SIGNAL_COUNT; s++)
			measure_signal(n, c, s, now_ns);
	else if (c->kind != COHORT_CLUSTER)
		measure_signal(n, c, MEASURE_SCORE, now_ns);
}

static void trace_add(struct measure_trace *t, double deviation)
{
	double drift;

	if (t->seen) {
		double weight = fmax(NOISE_ALPHA, 1.0 / t->seen);

		t->noise += weight * (fabs(deviation - t->deviation) - t->noise);
	}
	t->deviation = deviation;
	t->most = t->seen++ ? fmax(t->most, deviation) : deviation;
	if (t->seen <= LEVEL_SEEN)
		t->level += (deviation - t->level) / t->seen;
	drift = deviation - t->level;
	t->sum = t->seen > LEVEL_SEEN ? fmax(0, t->sum + drift - DRIFT_SLACK) : 0;
	t->run = t->sum > 0 ? t->run + 1 : 0;
	if (t->seen > LEVEL_SEEN && !t->run)
		t->level += LEVEL_ALPHA * drift;
}

static bool has_drifted(const struct measure *m, const struct measure_trace *t)
{
	double sigma = fmax(m->noise, t->noise / NOISE_SIGMA);

	return t->run >= DRIFT_RUN && t->sum >= fmax(DRIFT_SUM, DRIFT_SUM_Z * sigma) &&
	       t->deviation - t->level >= fmax(SIGNAL_MIN, DRIFT_Z * sigma);
}

/* Whether a node is beyond its peers on the good side, and was not before. Where it usually is takes many observations, of which
 * the change may be one of the first: until then it must have been as far from there once as is no chance. */
static bool has_come_to_more(const struct measure *m, const struct measure_trace *t)
{
	bool is_young = t->seen <= LEVEL_SEEN;
	double before = is_young ? t->most : t->level;

	return -t->deviation >= m->chance &&
	       before - t->deviation >= (is_young ? m->chance : DRIFT_SLACK);
}

/* hits_add - counts what is @bad or @good in a row. */
static void hits_add(struct measure_trace *t, bool bad, bool good)
{
	t->bad = bad ? MIN(t->bad + 1, IN_A_ROW) : 0;
	t->good = good ? MIN(t->good + 1, IN_A_ROW) : 0;
}

static void judge_signal(struct node *d, enum push_signal s)
{
	const struct measure *m = &d->in[COHORT_PEERS]->measures[s];
	struct measure_trace *t = &d->traces[s];
	double deviation = measure_deviation(d, s);
	unsigned bit = 1u << s;
	bool is_far;

	if (d->last.signals[s] < 0) { /* it is not told any more */
		*t = (struct measure_trace){0};
		d->signals[0] &= ~bit;
		d->signals[1] &= ~bit;
		return;
	}
	if (!m->is_known)
		return;
	trace_add(t, deviation);
	t->more = has_come_to_more(m, t) ? MIN(t->more + 1, IN_A_ROW) : 0;
	is_far = deviation >= m->limit;
	hits_add(t, is_far || has_drifted(m, t),
		!is_far && (d->signals[1] & bit ? deviation - t->level < DRIFT_CALM
						: deviation < SIGNAL_CALM));
	if (t->bad >= IN_A_ROW && !((d->signals[0] | d->signals[1]) & bit))
		d->signals[t->run >= DRIFT_RUN] |= bit;
	if (t->good >= IN_A_ROW) {
		d->signals[0] &= ~bit;
		d->signals[1] &= ~bit;
	}
}

double node_more_launches(const struct node *d)
{
	const struct measure_trace *t = &d->traces[PUSH_SIGNAL_LAUNCH_RATE];

	return t->more >= IN_A_ROW ? -t->deviation : 0;
}

static void reason_set(
	struct nodes *n, struct node *d, enum nodes_reason reason, bool holds, int64_t now_ns)
{
	if (holds)
		node_begin(n, d, reason, now_ns);
	else
		node_end(n, d, reason);
}

static void judge_score(struct nodes *n, struct node *d, int64_t now_ns)
{
	const struct cohort *c = cohort_of_score(d);
	const struct measure *m = &c->measures[MEASURE_SCORE];
	struct measure_trace *t = &d->traces[MEASURE_SCORE];
	double epsilon = 1e-9, threshold = c->threshold.value;

	if (!c->threshold.quorum_met || !m->is_known)
		return;
	trace_add(t, measure_deviation(d, MEASURE_SCORE));
	hits_add(t, d->last.score < threshold - epsilon && t->deviation >= m->limit,
		d->last.score >= threshold + n->settings.hysteresis - epsilon);
	if (t->bad >= IN_A_ROW)
		node_begin(n, d, NODES_SCORE_REASON, now_ns);
	else if (t->good >= IN_A_ROW)
		node_end(n, d, NODES_SCORE_REASON);
}

void node_judge(struct nodes *n, struct node *d, int64_t now_ns)
{
	for (enum push_signal s = 0; s < PUSH_SIGNAL_COUNT; s++)
		judge_signal(d, s);
	reason_set(n, d, NODES_PEERS_REASON, d->signals[0], now_ns);
	reason_set(n, d, NODES_DRIFT_REASON, d->signals[1], now_ns);
	judge_score(n, d, now_ns);
}
