/* SPDX-License-Identifier: Apache-2.0 */
/* health_baseline.c - see health_baseline.h. */
#include "agent/health/health_baseline.h"

#include <errno.h>
#include <math.h>

const struct health_baseline_settings health_baseline_defaults = {.fast_alpha = 0.1,
	.floor_alpha = 0.001,
	.warning_ratio = 0.5,
	.floor_warmth_min = 0.01,
	.warmup = 30};

int health_baseline_check(const struct health_baseline_settings *s, struct errinfo *reterr)
{
	if (!(s->fast_alpha > 0) || !(s->fast_alpha < 1) || !(s->floor_alpha > 0) ||
		!(s->floor_alpha < s->fast_alpha))
		return errinfo_set(reterr, -EINVAL,
			"the alphas must be between 0 and 1, that of the floor below the other");
	if (!(s->warning_ratio > 0) || !(s->warning_ratio <= 1))
		return errinfo_set(
			reterr, -EINVAL, "the warning ratio must be above 0 and at most 1");
	if (!(s->floor_warmth_min >= 0) || !(s->floor_warmth_min < 1))
		return errinfo_set(
			reterr, -EINVAL, "the floor's least value must be from 0 to below 1");
	return 0;
}

/* expm1 and log1p: (1 - alpha)^samples is nearly 1 for the long average's first samples. */
static double corrected(double sum, double alpha, uint64_t samples)
{
	return samples ? sum / -expm1((double)samples * log1p(-alpha)) : 0;
}

double health_baseline_fast(
	const struct health_baseline *b, const struct health_baseline_settings *s, int signal)
{
	return corrected(b->fast[signal], s->fast_alpha, b->samples);
}

double health_baseline_floor(
	const struct health_baseline *b, const struct health_baseline_settings *s, int signal)
{
	return corrected(b->floor[signal], s->floor_alpha, b->samples);
}

double health_baseline_ratio(const struct health_baseline *b,
	const struct health_baseline_settings *s, int signal, double raw)
{
	double ordinary = health_baseline_fast(b, s, signal);

	return ordinary > 0 ? raw / ordinary : 0;
}

void health_baseline_add(struct health_baseline *b, const struct health_baseline_settings *s,
	const double sample[HEALTH_SIGNAL_COUNT])
{
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		double v = isfinite(sample[i]) ? fmax(sample[i], 0) : 0;

		b->fast[i] += s->fast_alpha * (v - b->fast[i]);
		b->floor[i] += s->floor_alpha * (v - b->floor[i]);
	}
	b->samples++;
}

bool health_baseline_degraded(
	const struct health_baseline *b, const struct health_baseline_settings *s)
{
	if (b->samples < s->warmup)
		return false;
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		double floor = health_baseline_floor(b, s, i);

		if (floor >= s->floor_warmth_min && floor > 0 &&
			health_baseline_fast(b, s, i) / floor < s->warning_ratio)
			return true;
	}
	return false;
}
