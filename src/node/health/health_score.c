/* SPDX-License-Identifier: Apache-2.0 */
/* health_score.c - see health_score.h. */
#include "node/health/health_score.h"

#include <errno.h>
#include <math.h>

#define WEIGHTS_TOLERANCE 1e-6
#define PENALTY           0.5 /* factor at and below the floor */

const struct health_score_settings health_score_defaults = {
	.weight =
		{
#define X(NAME, id, key, weight) [HEALTH_##NAME] = weight,
			HEALTH_SIGNALS(X)
#undef X
		},
	.penalty_floor = 0.25,
	.degradation_zone = 0.35,
};

static const struct {
	const char *id, *key;
} names[] = {
#define X(NAME, id, key, weight) [HEALTH_##NAME] = {id, key},
	HEALTH_SIGNALS(X)
#undef X
};

const char *health_signal_id(enum health_signal s)
{
	return names[s].id;
}

const char *health_signal_key(enum health_signal s)
{
	return names[s].key;
}

int health_score_check(const struct health_score_settings *s, struct errinfo *reterr)
{
	double sum = 0;

	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		if (!(s->weight[i] > 0) || !isfinite(s->weight[i]))
			return errinfo_set(
				reterr, -EINVAL, "the weight of %s must be above 0", names[i].id);
		sum += s->weight[i];
	}
	if (!(fabs(sum - 1) <= WEIGHTS_TOLERANCE))
		return errinfo_set(
			reterr, -EINVAL, "the weights must add up to 1, and add up to %g", sum);
	if (!(s->penalty_floor >= 0) || !(s->penalty_floor < s->degradation_zone) ||
		!(s->degradation_zone <= 1))
		return errinfo_set(reterr, -EINVAL,
			"the penalty floor must be at least 0 and below the degradation zone, which must be at most 1");
	return 0;
}

static double penalty_factor(const struct health_score_settings *s, double worst)
{
	if (worst <= s->penalty_floor)
		return PENALTY; /* first, so that limits that coincide mean the penalty */
	if (worst >= s->degradation_zone)
		return 1;
	return PENALTY + (1 - PENALTY) * (worst - s->penalty_floor) /
				 (s->degradation_zone - s->penalty_floor);
}

double health_score(const struct health_score_settings *s, const double values[HEALTH_SIGNAL_COUNT],
	struct health_anomalies *ret_anomalies)
{
	struct health_anomalies found = {0};
	double sum = 0, worst = 1, v;

	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		v = values[i];
		if (isnan(v))
			found.nan |= (uint8_t)(1u << i);
		else if (isinf(v))
			found.infinite |= (uint8_t)(1u << i);
		v = isfinite(v) ? fmin(fmax(v, 0), 1) : 0;
		sum += s->weight[i] * v;
		worst = fmin(worst, v);
	}
	if (ret_anomalies)
		*ret_anomalies = found;
	return fmin(fmax(sum * penalty_factor(s, worst), 0), 1);
}
