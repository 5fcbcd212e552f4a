/* SPDX-License-Identifier: Apache-2.0 */
/* health_classifier.h - whether a node is a straggler, with hysteresis. Pure.
 *
 * An episode begins when the score falls below the threshold and ends when it is back at the threshold
 * plus the hysteresis, or when the node ceases to be active: a node without work holds nobody up. All
 * that is sent of an episode carries its one event id. Without a threshold nothing is decided. */
#pragma once

#include "node/health/health_baseline.h"

#define HEALTH_EVENT_MAX 40 /* a UUID with its NUL */

struct health_classifier_settings {
	double hysteresis; /* 0 <= x < 0.5 */
};
extern const struct health_classifier_settings health_classifier_defaults;
int health_classifier_check(const struct health_classifier_settings *s, struct errinfo *reterr);

struct health_classifier {
	bool is_straggler;
	char event[HEALTH_EVENT_MAX]; /* of the episode, or of the last one */
};

enum health_verdict {
	HEALTH_VERDICT_NONE,      /* nothing to tell */
	HEALTH_VERDICT_STRAGGLER, /* tell it, at every reading while it lasts */
	HEALTH_VERDICT_RESOLVED,  /* tell it, once */
};

struct health_evidence {
	bool active;        /* the node is, and this reading may be judged */
	bool has_work;      /* false: it went idle */
	double score;       /* where active */
	double threshold;   /* 0: none */
	uint8_t random[16]; /* for the event id of an episode that begins */
};

enum health_verdict health_classifier_take(struct health_classifier *c,
	const struct health_classifier_settings *s, const struct health_evidence *e);

/* health_dominant_signal - the id of the signal that has fallen most below its own ordinary value, each
 * in its own unit: @raw as it is added to the baseline. "unknown" if none fell by 1 % or more. */
const char *health_dominant_signal(const struct health_baseline *b,
	const struct health_baseline_settings *s, const double raw[HEALTH_SIGNAL_COUNT]);

/* health_event_id - 16 random bytes as a UUID of version 4. */
void health_event_id(const uint8_t random[16], char ret[HEALTH_EVENT_MAX]);
