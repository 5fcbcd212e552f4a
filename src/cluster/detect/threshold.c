/* SPDX-License-Identifier: Apache-2.0 */
/* threshold.c - see threshold.h.
 *
 * Median and sigma are smoothed, the threshold is made of the two: the same as smoothing it, and k and
 * other distances can be laid over one average.
 *
 * There is no threshold where half of the nodes or more are bad, since the median is then no ordinary
 * node's. That is seen in two ways: the upper half is of one kind and the rest far below it; or half
 * are below what was the threshold. The second may also be a new job with lower scores, so if it lasts
 * and nodes are alike again, the average starts anew. */
#include "cluster/detect/threshold.h"

#include <math.h>

#include "cluster/detect/spread.h"

#define FELL_MAX  6    /* computations: a minute of 10 s intervals */
#define VALUE_MIN 0.10 /* agents take nothing outside; 0 means none */
#define VALUE_MAX 0.99

static uint32_t needed(const struct nodes_settings *s, const struct threshold_input *in)
{
	uint32_t majority = in->known / 2 + 1;

	if (!in->expected || in->expected >= s->quorum)
		return MAX(s->quorum, (uint32_t)SPREAD_MIN);
	return MAX(MIN(majority, s->quorum), (uint32_t)SPREAD_MIN);
}

static double value_of(const struct threshold_average *a, double k)
{
	return fmin(fmax(a->median - k * a->sigma, VALUE_MIN), VALUE_MAX);
}

/* half_is_bad - also decides whether the average starts anew. */
static bool half_is_bad(struct threshold_average *a, const struct nodes_settings *s,
	const struct threshold_input *in)
{
	size_t below = 0;

	if (spread_is_split(in->sorted, in->count, s->mad_floor)) {
		a->fell = 0;
		return true;
	}
	while (a->is_set && below < in->count && in->sorted[below] < value_of(a, s->k))
		below++;
	if (2 * below < in->count) {
		a->fell = 0;
		return false;
	}
	if (++a->fell < FELL_MAX)
		return true;
	*a = (struct threshold_average){0};
	return false;
}

void threshold_update(struct threshold_average *a, const struct nodes_settings *s,
	const struct threshold_input *in, struct threshold *ret)
{
	struct spread now = spread_of(in->sorted, in->count, s->k, s->mad_floor);
	double alpha;

	*ret = (struct threshold){.median = now.median,
		.mad = now.mad,
		.active = (uint32_t)in->count,
		.known = in->known,
		.coverage_low = (double)in->count < s->coverage * MAX(in->known, in->expected)};
	if (in->count < needed(s, in))
		return;
	ret->half_bad = half_is_bad(a, s, in);
	if (ret->half_bad)
		return;
	alpha = a->is_set ? s->ema_alpha : 1;
	a->median += alpha * (now.median - a->median);
	a->sigma += alpha * (now.sigma - a->sigma);
	a->is_set = true;
	ret->quorum_met = true;
	ret->value = value_of(a, s->k);
}
