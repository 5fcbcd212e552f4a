/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - what a receiver's reply means for a batch, as OTLP's specification says. Pure. */
#pragma once

#include "deliver/backlog.h"

/* verdict_http - of status @status: 2xx is sent; 429, 502, 503 and 504 try again. */
enum backlog_outcome verdict_http(int status);

/* verdict_grpc - of gRPC's @status: 0 is sent; CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE,
 * UNAVAILABLE and DATA_LOSS try again. RESOURCE_EXHAUSTED does not: that would need a RetryInfo. */
enum backlog_outcome verdict_grpc(int status);

/* verdict_retry_after - what "Retry-After: @text" asks for at @now, in seconds or as a date; 0 if
 * it makes no sense or is NULL. */
uint64_t verdict_retry_after(const char *text, wall_time now);
