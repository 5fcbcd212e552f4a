/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.h - the thread that gives metrics away: to Prometheus when it scrapes, to an OTLP
 * receiver at intervals.
 *
 * The tracing thread never waits for it. It asks telemetry_wants() when it has a moment, and if so
 * hands a reading over. Readings are asked for only when somebody is to get them, at most one a
 * second. */
#pragma once

#include "base/errinfo.h"
#include "deliver/backlog.h"
#include "deliver/endpoint.h"
#include "model/metric.h"
#include "net/loop.h"
#include "otlp/otlp_metric.h"

/* ---- the HTTP endpoint that Prometheus scrapes: GET /metrics. GET /livez and /readyz, which need no
 * token, say whether the tracing thread still gives readings: for kubelet.
 *
 * Belongs to the thread that runs its loop. A scrape is answered with a reading that is at most a
 * second old; if there is none, it waits for one, which the listener asks for. */

#define SCRAPE_WAITING_MAX 64             /* scrapes that wait for one reading */
#define SCRAPE_PATIENCE_NS (5 * NS_PER_S) /* then they are told that there is none */
#define SCRAPE_FRESH_NS    NS_PER_S

struct scrape_settings {
	const char *address;    /* "127.0.0.1:9464", ":9464" (every address), "9464" (loopback) */
	const char *token_file; /* who scrapes shows one of its tokens; NULL: no token is needed */
	bool allow_remote;      /* other machines may scrape without one */
	loop_fn *want;          /* a reading is needed: scrape_give() it */
	void *arg;
};

struct scrape;

/* scrape_new - listens. An address that other machines reach needs a token file or allow_remote:
 * -EPERM with a sentence otherwise. */
int scrape_new(struct loop *l, const struct scrape_settings *s, struct scrape **ret,
	struct errinfo *reterr);
DECLARE_FREE(struct scrape, scrape_free)

/* scrape_give - a reading, which stays the caller's. */
void scrape_give(struct scrape *l, const struct metric_set *s);

/* scrape_drain - no more scrapes; @fn runs when the replies under way have gone out. */
void scrape_drain(struct scrape *l, loop_fn *fn, void *arg);

const char *scrape_address(const struct scrape *l); /* with the port that was chosen */
uint64_t scrape_count(const struct scrape *l);      /* answered with metrics */

/* Sends readings of metrics to an OTLP receiver: HTTP with protobuf or JSON, or gRPC.
 *
 * Belongs to the thread that runs its loop. A reading becomes a batch of bytes at once; batches are
 * sent one after the other (backlog.h says when, otlp_response.h what a reply means). */

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
