/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_reply.h - what the fleet's replies say: the threshold, by header fields or as JSON, and when to
 * come again. Pure. */
#pragma once

#include "node/health/health_monitor.h"
#include "net/http.h"

enum pusher_hint {
	PUSHER_HINT_MISSING, /* no threshold with the reply: it must be asked for */
	PUSHER_HINT_TAKEN,
	PUSHER_HINT_REFUSED, /* malformed or out of bounds: the one before stays */
};

/* pusher_reply_fields - X-Ingero-Threshold and X-Ingero-Quorum-Met of a reply with any status. A fleet
 * below its quorum says 0 and false: that is taken. */
enum pusher_hint pusher_reply_fields(
	const struct http_head *h, int64_t now_ns, struct health_threshold *t);

/* pusher_reply_body - {"threshold":x,"quorum_met":b}. */
#define PUSHER_BODY_MAX 8192
enum pusher_hint pusher_reply_body(
	const char *text, size_t len, int64_t now_ns, struct health_threshold *t);

/* pusher_jitter - @ns changed by up to @share of it either way. */
uint64_t pusher_jitter(uint64_t ns, double share, uint64_t random);
