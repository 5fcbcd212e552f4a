/* SPDX-License-Identifier: Apache-2.0 */
/* push.h - sends readings of metrics to an OTLP receiver: HTTP with protobuf or JSON, or gRPC.
 *
 * Belongs to the thread that runs its loop. A reading becomes a batch of bytes at once; batches are
 * sent one after the other (backlog.h says when, verdict.h what a reply means). */
#pragma once

#include "deliver/backlog.h"
#include "deliver/endpoint.h"
#include "net/loop.h"
#include "otlp/otlp_metric.h"

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
DEFINE_CLEANUP(struct push *, push_free)

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
