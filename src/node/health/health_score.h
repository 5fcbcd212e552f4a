/* SPDX-License-Identifier: Apache-2.0 */
/* health_score.h - how well a node is doing, as one number of 0 to 1 made from four. Pure.
 *
 * score = sum of weight x value, halved where the worst value is at most penalty_floor, whole where it
 * is at least degradation_zone, in between in proportion: one input that has collapsed must show,
 * however good the others are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errinfo.h"

/* The inputs, each 0 to 1 with 1 healthy. X(NAME, id, key in the baseline's file, weight) */
#define HEALTH_SIGNALS(X)                                                                          \
	X(THROUGHPUT, "throughput", "Throughput", 0.40)                                            \
	X(COMPUTE, "compute", "Compute", 0.25)                                                     \
	X(MEMORY, "memory", "Memory", 0.20)                                                        \
	X(CPU, "cpu", "CPU", 0.15)

enum health_signal {
#define X(NAME, ...) HEALTH_##NAME,
	HEALTH_SIGNALS(X)
#undef X
		HEALTH_SIGNAL_COUNT
};

const char *health_signal_id(enum health_signal s);  /* "throughput" */
const char *health_signal_key(enum health_signal s); /* "Throughput" */

struct health_score_settings {
	double weight[HEALTH_SIGNAL_COUNT];     /* each over 0; sum 1 */
	double penalty_floor, degradation_zone; /* 0 <= floor < zone <= 1 */
};
extern const struct health_score_settings health_score_defaults;

/* health_score_check - -EINVAL with a sentence. */
int health_score_check(const struct health_score_settings *s, struct errinfo *reterr);

struct health_anomalies { /* values that were no numbers and count as 0; bits by enum health_signal */
	uint8_t nan, infinite;
};

/* health_score - values are cut to 0..1. @ret_anomalies may be NULL. */
double health_score(const struct health_score_settings *s, const double values[HEALTH_SIGNAL_COUNT],
	struct health_anomalies *ret_anomalies);
