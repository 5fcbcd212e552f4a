/* SPDX-License-Identifier: Apache-2.0 */
/* backlog.h - batches that wait to be sent, one at a time and in order, and when the next attempt
 * is due. Pure: the caller brings the time and does the sending.
 *
 * A batch that failed for a reason that may pass is tried again after 1 s, 2 s, … 30 s, each cut by
 * up to half at random so that many agents do not come at once; the receiver may ask for more time.
 * There is room for BACKLOG_BATCHES and BACKLOG_BYTES: beyond that the oldest that is not under way
 * is dropped, because a newer reading of cumulative figures says more. Whatever is not delivered is
 * counted. */
#pragma once

#include <stddef.h>

#include "base/clock.h"

#define BACKLOG_BATCHES   64
#define BACKLOG_BYTES     (16u << 20)
#define BACKLOG_ASKED_MAX (300 * NS_PER_S) /* a receiver cannot ask for more */

enum backlog_outcome {
	BACKLOG_SENT,
	BACKLOG_AGAIN,   /* try again later */
	BACKLOG_REFUSED, /* trying again would not help */
};

struct backlog_batch {
	void *data; /* from malloc(); the backlog's once it is put */
	size_t len;
	size_t points;
	uint32_t tag; /* the caller's */
};

struct backlog_stats {
	uint64_t sent_batches, sent_points;
	uint64_t dropped_batches, dropped_points; /* for want of room */
	uint64_t refused_batches, refused_points; /* by the receiver, for good */
	uint64_t retries;
};

struct backlog {
	struct backlog_batch ring[BACKLOG_BATCHES];
	size_t head, count, bytes;
	bool under_way;    /* the first one */
	unsigned failures; /* in a row */
	uint64_t due_ns;   /* monotonic: no attempt before */
	uint64_t random;   /* of the jitter; any seed */
	struct backlog_stats stats;
};

void backlog_done(struct backlog *b);

/* backlog_put - takes @batch over. One that is larger than all the room is dropped at once. */
void backlog_put(struct backlog *b, struct backlog_batch batch);

/* backlog_begin - the batch to send now, which is then under way until backlog_end(); NULL: none,
 * or one is under way, or it is not time yet. */
const struct backlog_batch *backlog_begin(struct backlog *b, mono_time now);

/* backlog_end - what became of it. @asked_ns: the receiver asked to wait so long; 0: it did not. */
void backlog_end(struct backlog *b, mono_time now, enum backlog_outcome outcome, uint64_t asked_ns);

/* backlog_wait_ns - how long until backlog_begin() has something; UINT64_MAX: not by waiting. */
uint64_t backlog_wait_ns(const struct backlog *b, mono_time now);

/* backlog_first - the batch that is sent next, or is under way; NULL: none. */
const struct backlog_batch *backlog_first(const struct backlog *b);

/* backlog_hurry - the end is near: the next attempt is due at once. */
void backlog_hurry(struct backlog *b);

/* What a receiver's reply means for a batch, as OTLP's specification says. Pure. */

/* verdict_http - of status @status: 2xx is sent; 429, 502, 503 and 504 try again. */
enum backlog_outcome verdict_http(int status);

/* verdict_grpc - of gRPC's @status: 0 is sent; CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE,
 * UNAVAILABLE and DATA_LOSS try again. RESOURCE_EXHAUSTED does not: that would need a RetryInfo. */
enum backlog_outcome verdict_grpc(int status);

/* verdict_retry_after - what "Retry-After: @text" asks for at @now, in seconds or as a date; 0 if
 * it makes no sense or is NULL. */
uint64_t verdict_retry_after(const char *text, wall_time now);
