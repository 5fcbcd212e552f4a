/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_response.h - what a receiver of OTLP answers: a response with what was left out of a request, or
 * why all of it was refused. No I/O. */
#pragma once

#include "base/buf.h"

/* X(NAME, id, service of gRPC, key of JSON for what was rejected) */
#define OTLP_SIGNALS(X)                                                                            \
	X(METRICS, "metrics", "metrics.v1.MetricsService", "rejectedDataPoints")                   \
	X(LOGS, "logs", "logs.v1.LogsService", "rejectedLogRecords")                               \
	X(TRACES, "traces", "trace.v1.TraceService", "rejectedSpans")

enum otlp_signal {
#define X(NAME, ...) OTLP_##NAME,
	OTLP_SIGNALS(X)
#undef X
		OTLP_SIGNAL_COUNT
};

const char *otlp_signal_id(enum otlp_signal s);

/* The paths on which a request is sent. */
#define OTLP_HTTP_PATH(id)      "/v1/" id
#define OTLP_GRPC_PATH(service) "/opentelemetry.proto.collector." service "/Export"

/* otlp_signal_of_path - by either path; false: neither. */
bool otlp_signal_of_path(const char *path, enum otlp_signal *ret);

/* otlp_response_put - appends an Export…ServiceResponse. @rejected points, records or spans were left
 * out because of @why; with 0 and "" the response is empty. Failures stick in @b. */
void otlp_response_put(
	struct buf *b, enum otlp_signal s, bool json, uint64_t rejected, const char *why);

/* otlp_status_put - appends the google.rpc.Status that stands in for the response when nothing was
 * taken; @code is gRPC's. */
void otlp_status_put(struct buf *b, bool json, int code, const char *why);
