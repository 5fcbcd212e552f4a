/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.h - the thread that gives metrics away: to Prometheus when it scrapes, to an OTLP
 * receiver at intervals.
 *
 * The tracing thread never waits for it. It asks telemetry_wants() when it has a moment, and if so
 * hands a reading over. Readings are asked for only when somebody is to get them, at most one a
 * second. */
#pragma once

#include "notify/telemetry/scrape.h"
#include "notify/telemetry/push.h"

#define TELEMETRY_INTERVAL_NS (10 * NS_PER_S)
#define TELEMETRY_FLUSH_NS    (2 * NS_PER_S) /* at the end, for what is not delivered yet */

struct telemetry_settings {
	struct scrape_settings scrape; /* address NULL: nobody scrapes; want and arg are ours */
	struct push_settings push;     /* endpoint NULL: nothing is sent */
	uint64_t interval_ns;          /* of sending; 0: TELEMETRY_INTERVAL_NS */
	void (*begin)(void);           /* the thread calls it before anything else */
};

struct telemetry;

/* telemetry_start - listens and starts the thread. Texts and structs in @s are the caller's until
 * telemetry_stop(). */
int telemetry_start(
	const struct telemetry_settings *s, struct telemetry **ret, struct errinfo *reterr);

const char *telemetry_address(const struct telemetry *t); /* of the listener; NULL: none */

bool telemetry_wants(struct telemetry *t);

/* telemetry_give - a reading, which is telemetry's from now on; NULL: there was no memory for one.
 */
void telemetry_give(struct telemetry *t, struct metric_set *s);

/* telemetry_stop - @last is the final reading (taken over; may be NULL): who waits for a scrape
 * gets it, and it is sent, within TELEMETRY_FLUSH_NS. Frees @t. Returns how many batches were not
 * delivered. */
size_t telemetry_stop(struct telemetry *t, struct metric_set *last);
