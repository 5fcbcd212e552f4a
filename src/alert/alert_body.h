/* SPDX-License-Identifier: Apache-2.0 */
/* alert_body.h - notices as the requests that Slack, PagerDuty, Alertmanager and webhooks take. Pure.
 *
 * Times of notices are nanoseconds since 1970. One incident at the other end is one episode here:
 * its key is the episode's event id, from the first request to the resolving one. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"

/* What an alert is about: an episode of a cluster, or an incident of a node that stands
 * alone. Whoever finds it fills this in; texts are for people and may hold names of traced processes. */

#define ALERT_EVENT_MAX 128
#define ALERT_NAME_MAX  256 /* of a cluster, a node */
#define ALERT_WORD_MAX  32
#define ALERT_TEXT_MAX  1024

struct alert_cost {
	bool priced;     /* false: at least one GPU model has no price; money is then of the rest */
	double per_hour; /* at the present rate */
	double total;    /* since it began */
	double gpu_seconds; /* lost, since it began */
	double watt_hours;  /* likewise; 0: not known */
	char currency[8], symbol[8];
	char unpriced[96]; /* the first model without a price; "": none */
};

struct alert_matter {
	uint64_t id;                 /* the same while it lasts, and no other's */
	char event[ALERT_EVENT_MAX]; /* likewise, for receivers: their key */
	const char *name;            /* of the alert: "IngeroStraggler" */
	const char *class;           /* PagerDuty's: "gpu_straggler" */
	const char *problem;         /* "straggler" */
	const char *severity; /* "info", "warning", "error", "critical"; NULL: the receiver's */
	char cluster[ALERT_NAME_MAX]; /* "": a node that stands alone */
	char node[ALERT_NAME_MAX];    /* "": not one node */
	int32_t rank;                 /* -1: not one rank */
	int32_t stage;                /* likewise */
	uint32_t pid;                 /* 0: not one process */
	char process[ALERT_WORD_MAX]; /* its name */
	bool is_job;                  /* share and cost are known */
	double share;                 /* of the job's time */
	double confidence;
	uint64_t lag_ns;
	uint32_t period;
	uint32_t late, seen;     /* steps: late in so many of so many; 0: not known */
	uint32_t waiting;        /* ranks that wait; 0: not known */
	uint64_t waited_ns;      /* each of them, in a late step */
	char op[ALERT_WORD_MAX]; /* collective that it is late for; "": not known */
	char signal[ALERT_WORD_MAX];
	double score, threshold;
	int64_t since_ns, until_ns; /* nanoseconds since 1970; until_ns 0: it lasts */
	char text[ALERT_TEXT_MAX];  /* one sentence: who, what for, why, what it costs */
	char cause[ALERT_TEXT_MAX]; /* "": not known */
	char fix[ALERT_TEXT_MAX];
	char place[ALERT_TEXT_MAX]; /* line of code; "": not known */
	struct alert_cost cost;
};

/* X(NAME, id) */
#define ALERT_KINDS(X)                                                                             \
	X(BEGAN, "began")                                                                          \
	X(CHANGED, "changed") /* its cause or severity is another now */                           \
	X(ENDED, "ended")
enum alert_kind {
#define X(NAME, ...) ALERT_##NAME,
	ALERT_KINDS(X)
#undef X
};

struct alert_notice {
	enum alert_kind kind;
	struct alert_matter matter;
};

#define ALERT_BODY_MAX (256u << 10)

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
