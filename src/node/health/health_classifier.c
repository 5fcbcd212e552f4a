/* SPDX-License-Identifier: Apache-2.0 */
/* health_classifier.c - see health_classifier.h. */
#include "node/health/health_classifier.h"

#include <errno.h>
#include <stdio.h>

#define EPSILON  1e-9
#define DROP_MIN 0.01 /* less is noise */

const struct health_classifier_settings health_classifier_defaults = {.hysteresis = 0.02};

int health_classifier_check(const struct health_classifier_settings *s, struct errinfo *reterr)
{
	if (!(s->hysteresis >= 0) || !(s->hysteresis < 0.5))
		return errinfo_set(reterr, -EINVAL, "the hysteresis must be from 0 to below 0.5");
	return 0;
}

void health_event_id(const uint8_t random[16], char ret[HEALTH_EVENT_MAX])
{
	uint8_t u[16];

	for (int i = 0; i < 16; i++)
		u[i] = random[i];
	u[6] = (u[6] & 0x0f) | 0x40; /* version 4 */
	u[8] = (u[8] & 0x3f) | 0x80; /* variant of RFC 9562 */
	snprintf(ret, HEALTH_EVENT_MAX,
		"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		u[15]);
}

enum health_verdict health_classifier_take(struct health_classifier *c,
	const struct health_classifier_settings *s, const struct health_evidence *e)
{
	if (c->is_straggler && !e->has_work) {
		c->is_straggler = false;
		return HEALTH_VERDICT_RESOLVED;
	}
	if (!e->active || !(e->threshold > 0))
		return HEALTH_VERDICT_NONE;
	if (c->is_straggler && e->score >= e->threshold + s->hysteresis - EPSILON) {
		c->is_straggler = false;
		return HEALTH_VERDICT_RESOLVED;
	}
	if (!c->is_straggler && e->score < e->threshold - EPSILON) {
		c->is_straggler = true;
		health_event_id(e->random, c->event);
	}
	return c->is_straggler ? HEALTH_VERDICT_STRAGGLER : HEALTH_VERDICT_NONE;
}

const char *health_dominant_signal(const struct health_baseline *b,
	const struct health_baseline_settings *s, const double raw[HEALTH_SIGNAL_COUNT])
{
	const char *id = "unknown";
	double most = DROP_MIN;

	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		double ordinary = health_baseline_fast(b, s, i);
		double drop = ordinary > 0 ? 1 - raw[i] / ordinary : 0;

		if (drop >= most) {
			most = drop;
			id = health_signal_id((enum health_signal)i);
		}
	}
	return id;
}
