/* SPDX-License-Identifier: Apache-2.0 */
/* health_baseline.c - see health_baseline.h. */
#include "node/health/health_baseline.h"

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

static struct health_part *part_of(struct health_baseline *b, uint64_t id)
{
	for (uint32_t i = 0; i < b->part_count; i++)
		if (b->parts[i].id == id)
			return &b->parts[i];
	if (b->part_count == HEALTH_PROGRAMS_MAX)
		return NULL;
	b->parts[b->part_count] = (struct health_part){.id = id};
	return &b->parts[b->part_count++];
}

static void share_out(struct health_baseline *b, const struct health_program *list, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += list[i].rate;
	for (size_t i = 0; i < count && sum > 0; i++) {
		struct health_part *p = part_of(b, list[i].id);

		if (!p)
			return;
		p->fast = b->fast[HEALTH_THROUGHPUT] * list[i].rate / sum;
		p->floor = b->floor[HEALTH_THROUGHPUT] * list[i].rate / sum;
	}
}

static bool is_listed(uint64_t id, const struct health_program *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].id == id)
			return true;
	return false;
}

void health_baseline_keep(
	struct health_baseline *b, const struct health_program *list, size_t count)
{
	bool had_parts = b->part_count > 0;

	if (!had_parts)
		share_out(b, list, count);
	for (uint32_t i = b->part_count; i-- > 0;) {
		const struct health_part p = b->parts[i];

		if (is_listed(p.id, list, count))
			continue;
		b->fast[HEALTH_THROUGHPUT] = fmax(b->fast[HEALTH_THROUGHPUT] - p.fast, 0);
		b->floor[HEALTH_THROUGHPUT] = fmax(b->floor[HEALTH_THROUGHPUT] - p.floor, 0);
		b->parts[i] = b->parts[--b->part_count];
	}
	if (had_parts && !b->part_count) /* exactly, not what rounding leaves */
		b->fast[HEALTH_THROUGHPUT] = b->floor[HEALTH_THROUGHPUT] = 0;
}

void health_baseline_add_programs(struct health_baseline *b,
	const struct health_baseline_settings *s, const struct health_program *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		part_of(b, list[i].id);
	for (uint32_t i = 0; i < b->part_count; i++) {
		struct health_part *p = &b->parts[i];
		double rate = 0;

		for (size_t j = 0; j < count; j++)
			rate += list[j].id == p->id ? list[j].rate : 0;
		p->fast += s->fast_alpha * (rate - p->fast);
		p->floor += s->floor_alpha * (rate - p->floor);
	}
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
