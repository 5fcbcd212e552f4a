/* SPDX-License-Identifier: Apache-2.0 */
/* alert.h - tells receivers of alerts what began, changed and is over: Slack, PagerDuty, Alertmanager,
 * webhooks.
 *
 * Every receiver has a queue, a connection and a budget of notices of its own, so that one that fails
 * costs the others nothing. In a minute a receiver gets at most per_minute notices: the last of them
 * sums up all that wait, for Slack and webhooks; for PagerDuty they wait for the next minute, since
 * each has an incident of its own; Alertmanager gets what waits in one request. To Alertmanager what
 * lasts is sent again every repeat_ns.
 *
 * Belongs to the thread that runs the loop. No message tells a key, a path or a field. */
#pragma once

#include "alert/alert_body.h"
#include "base/idmap.h"
#include "base/macros.h"
#include "net/client/client.h"
#include "net/loop.h"

#define ALERT_RECEIVERS_MAX 16
#define ALERT_PER_MINUTE    30
#define ALERT_REPEAT_NS     (60 * NS_PER_S)
#define ALERT_SIGNATURE_FIELD                                                                      \
	"x-ingero-signature" /* "sha256=" and HMAC-SHA256 of the body, in hex */

struct alert_receiver { /* texts are the caller's, until alerts_free() */
	enum alert_type type;
	struct http_endpoint endpoint;
	const char *path;
	struct alert_look look;
	const char *bearer;      /* NULL: none; secret */
	const char *sign_secret; /* webhook; NULL: not signed; secret */
	const char *ca;          /* PEM; NULL: the system's authorities */
	bool insecure_far;       /* without TLS to other machines */
	unsigned per_minute;     /* 0: ALERT_PER_MINUTE */
	uint64_t period_ns;      /* of that budget; 0: a minute. Tests have less time */
	uint64_t repeat_ns;      /* Alertmanager; 0: ALERT_REPEAT_NS */
};

struct alert_stats { /* of a receiver */
	enum alert_type type;
	char shown[320];            /* "https://hooks.slack.com:443" */
	uint64_t notices;           /* given */
	uint64_t sent, retries;     /* requests */
	uint64_t merged, brief;     /* notices that needed no request: see alert.h */
	uint64_t digests, digested; /* requests that sum up, and notices in them */
	uint64_t lost;              /* notices for want of room */
	uint64_t refused;           /* requests, by the receiver */
	size_t waiting;             /* notices and requests */
	size_t open;                /* incidents that last */
};

struct alerts;

int alerts_new(struct loop *l, const struct alert_receiver *receivers, size_t count,
	struct alerts **ret, struct errinfo *reterr);
DECLARE_FREE(struct alerts, alerts_free) /* what is not told is given up */

void alerts_give(struct alerts *a, const struct alert_notice *n);

/* alerts_finish - @fn runs once, when every receiver was told what it may be told now, or an attempt
 * has failed. */
void alerts_finish(struct alerts *a, loop_fn *fn, void *arg);

bool alerts_stats(const struct alerts *a, size_t i, struct alert_stats *ret);

/* What one receiver of alerts has yet to be told, in order, and which episodes it
 * believes to last. Pure.
 *
 * A later notice of an episode replaces one that still waits. An episode that began and ended while
 * it waited is not told at all; one whose begin was told is always told its end. Whatever is not
 * told is counted. The last quarter of the places is for clusters that have few: none keeps others from being told of theirs. */

#define ALERT_WAITING_MAX 1024
#define ALERT_OPEN_MAX    1024 /* episodes that last, at the receiver */
#define ALERT_FEW         32   /* of a cluster, waiting or lasting */

struct alert_item {
	struct alert_notice notice;
	struct alert_matter first; /* as it was when it was first told */
	struct alert_item *next;
};

struct alert_open {
	struct alert_matter first, now;
};

struct alert_queue {
	struct alert_item *head, *tail;
	size_t count;
	struct idmap open; /* id -> struct alert_open */
	uint64_t merged;   /* into one that waited */
	uint64_t brief;    /* notices of episodes that were over before they were told */
	uint64_t lost;     /* no room */
};

#define ALERT_QUEUE_INIT ((struct alert_queue){.open = IDMAP_INIT(ALERT_OPEN_MAX)})

void alert_queue_done(struct alert_queue *q);
void alert_queue_put(struct alert_queue *q, const struct alert_notice *n);

/* alert_queue_take - the next one, the caller's (free()); NULL: none. It counts as told. */
struct alert_item *alert_queue_take(struct alert_queue *q);

/* alert_queue_open - walks the episodes that the receiver believes to last; *cursor = 0 at first. */
const struct alert_open *alert_queue_open(const struct alert_queue *q, size_t *cursor);
