/* SPDX-License-Identifier: Apache-2.0 */
/* health_baseline.h - what is ordinary for this node: two moving averages of each signal, one that
 * follows within some ten samples and one that remembers a thousand. Pure.
 *
 * Averages start at 0 and are read with that start taken out: s / (1 - (1 - alpha)^samples).
 * Throughput is kept in launches a second, the others as shares. */
#pragma once

#include "agent/health/health_score.h"

struct health_baseline_settings {
	double fast_alpha, floor_alpha; /* 0 < floor_alpha < fast_alpha < 1 */
	double warning_ratio;           /* 0 < x <= 1 */
	double floor_warmth_min;        /* 0 <= x < 1: signals below it are not warned about */
	uint32_t warmup;                /* samples before a warning */
};
extern const struct health_baseline_settings health_baseline_defaults;

/* health_baseline_check - -EINVAL with a sentence. */
int health_baseline_check(const struct health_baseline_settings *s, struct errinfo *reterr);

struct health_baseline {
	double fast[HEALTH_SIGNAL_COUNT], floor[HEALTH_SIGNAL_COUNT]; /* raw sums */
	uint64_t samples;
};

/* Corrected for the start; 0 without samples. */
double health_baseline_fast(
	const struct health_baseline *b, const struct health_baseline_settings *s, int signal);
double health_baseline_floor(
	const struct health_baseline *b, const struct health_baseline_settings *s, int signal);

/* health_baseline_ratio - @raw against the fast average of @signal; 0 where that is 0. A sample is
 * judged against what was before it: add it afterwards. */
double health_baseline_ratio(const struct health_baseline *b,
	const struct health_baseline_settings *s, int signal, double raw);

void health_baseline_add(struct health_baseline *b, const struct health_baseline_settings *s,
	const double sample[HEALTH_SIGNAL_COUNT]);

/* health_baseline_degraded - some signal has fallen below warning_ratio of its long average. */
bool health_baseline_degraded(
	const struct health_baseline *b, const struct health_baseline_settings *s);
