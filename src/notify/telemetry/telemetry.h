/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.h - the thread that gives metrics away: to Prometheus when it scrapes, to an OTLP
 * receiver at intervals.
 *
 * The tracing thread never waits for it. It asks telemetry_wants() when it has a moment, and if so
 * hands a reading over. Readings are asked for only when somebody is to get them, at most one a
 * second. */
#pragma once

#include "deliver/backlog.h"
#include "deliver/endpoint.h"
#include "model/metric.h"
#include "net/loop.h"
#include "notify/telemetry/scrape.h"
#include "otlp/otlp_metric.h"

/* Sends readings of metrics to an OTLP receiver: HTTP with protobuf or JSON, or gRPC.
 *
 * Belongs to the thread that runs its loop. A reading becomes a batch of bytes at once; batches are
 * sent one after the other (backlog.h says when, verdict.h what a reply means). */

struct push_settings {
	const struct endpoint *endpoint;      /* copied */
	const struct endpoint_fields *fields; /* the caller's, as the texts below */
	const char *ca, *cert, *key;          /* PEM files; NULL: the system's authorities, none */
	bool insecure_far;
	bool gzip; /* what is sent is compressed */
	struct otlp_resource resource;
};

struct push;

int push_new(
	struct loop *l, const struct push_settings *s, struct push **ret, struct errinfo *reterr);
void push_free(struct push *p); /* what is under way is given up */

/* push_give - @s is to be sent; it stays the caller's. */
void push_give(struct push *p, const struct metric_set *s);

/* push_finish - @fn runs once, when everything is delivered or an attempt has failed. */
void push_finish(struct push *p, loop_fn *fn, void *arg);

struct push_stats {
	struct backlog_stats backlog;
	uint64_t rejected_points; /* of delivered batches: the receiver took the rest */
	size_t queued_batches, queued_bytes;
};
struct push_stats push_stats(const struct push *p);
#define TELEMETRY_FLUSH_NS (2 * NS_PER_S) /* at the end, for what is not delivered yet */

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

/* What the exporters tell of themselves, as rows of the same kind as the rest
 * (record/trace/metrics/metric_table.h). docs/metrics.md is compared with both tables by a test. */

enum export_metric_id {
	E_BATCHES,
	E_POINTS,
	E_RETRIES,
	E_QUEUE,
	E_QUEUE_BYTES,
	E_SCRAPES,
	EXPORT_METRIC_COUNT
};

extern const struct metric_desc export_metric_table[EXPORT_METRIC_COUNT];

/* Points since @start. */
void export_metric_push(struct metric_set *s, wall_time start, const struct push_stats *f);
void export_metric_scrapes(struct metric_set *s, wall_time start, uint64_t scrapes);
