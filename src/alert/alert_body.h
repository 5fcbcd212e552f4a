/* SPDX-License-Identifier: Apache-2.0 */
/* alert_body.h - notices as the requests that Slack, PagerDuty, Alertmanager and webhooks take. Pure.
 *
 * Times of notices are nanoseconds since 1970. One incident at the other end is one episode here:
 * its key is the episode's event id, from the first request to the resolving one. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "alert/alert_matter.h"

#define ALERT_BODY_MAX    (256u << 10)
#define ALERT_DIGEST_SHOW 20 /* notices of a digest that are told; the others are counted */

/* X(NAME, id) */
#define ALERT_TYPES(X)                                                                             \
	X(SLACK, "slack")                                                                          \
	X(PAGERDUTY, "pagerduty")                                                                  \
	X(ALERTMANAGER, "alertmanager")                                                            \
	X(WEBHOOK, "webhook")
enum alert_type {
#define X(NAME, ...) ALERT_##NAME,
	ALERT_TYPES(X)
#undef X
		ALERT_TYPE_COUNT
};
const char *alert_type_id(enum alert_type t);

struct alert_look { /* what the user may choose about requests; NULL: the receiver's defaults */
	const char *channel, *username; /* Slack */
	const char *routing_key;        /* PagerDuty; secret */
	const char *severity;           /* PagerDuty, Alertmanager's label: "warning" */
};

/* Each appends one request; failures stick in @b. */
void alert_slack(struct buf *b, const struct alert_look *look, const struct alert_notice *n);
void alert_slack_digest(struct buf *b, const struct alert_look *look,
	const struct alert_notice *const *n, size_t count);
void alert_pagerduty(struct buf *b, const struct alert_look *look, const struct alert_notice *n);
void alert_webhook(struct buf *b, const struct alert_notice *n);
void alert_webhook_digest(struct buf *b, const struct alert_notice *const *n, size_t count);

/* alert_alertmanager - @episodes as they are now; what lasts is said to end at @until unless it is
 * sent again. Labels are those of the episode's first notice, which never change. */
struct alert_episode {
	const struct alert_matter *first, *now;
};
void alert_alertmanager(struct buf *b, const struct alert_look *look,
	const struct alert_episode *episodes, size_t count, wall_time until);
