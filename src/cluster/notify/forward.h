/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - everything that the cluster receives by OTLP goes on to other receivers of OTLP, as
 * bytes: nothing is read or changed on the way.
 *
 * Every target has a queue of its own: a spool on disk (deliver/spool.h says what survives what), or
 * without one 16 MiB of memory. A target that is slow or away costs the others nothing. Requests
 * leave in the order in which they came; consecutive ones of the same kind that are protobuf travel
 * as one request, since requests that are joined are one by protobuf's own rules. Over HTTP a request
 * keeps its encoding. A gRPC target cannot be given JSON: that is a counted loss.
 *
 * Belongs to the thread that runs the loop, and never waits but for the disk. */
#pragma once

#include "deliver/endpoint.h"
#include "deliver/spool.h"
#include "net/loop.h"

#define FORWARD_TARGETS_MAX 8

enum forward_encoding { FORWARD_PROTOBUF, FORWARD_JSON };

struct forward_target { /* texts and structs are the caller's, until forward_free() */
	const struct endpoint *endpoint;
	const struct endpoint_fields *fields; /* further fields of each request; NULL: none */
	const char *ca, *cert, *key;          /* PEM files; NULL: the system's authorities, none */
	bool insecure_far;
	const char *spool;    /* folder; NULL: wait in memory */
	uint64_t spool_bytes; /* its ceiling */
};

/* Why a request was not delivered. X(NAME, id) */
#define FORWARD_LOSSES(X)                                                                          \
	X(MEMORY_FULL, "memory_full") /* the oldest, without a spool */                            \
	X(SPOOL_FULL, "spool_full")   /* the oldest, at the spool's ceiling */                     \
	X(TOO_LARGE, "too_large")                                                                  \
	X(WRITE_ERROR, "write_error") /* the disk did not take it */                               \
	X(REFUSED, "refused")         /* by the receiver, for good */                              \
	X(ENCODING, "encoding")       /* JSON to a gRPC receiver */

enum forward_loss {
#define X(NAME, ...) FORWARD_LOST_##NAME,
	FORWARD_LOSSES(X)
#undef X
		FORWARD_LOSS_COUNT
};
const char *forward_loss_id(enum forward_loss l);

struct forward_stats {     /* of a target */
	const char *shown; /* "https://gpu1:4318" */
	uint64_t requests; /* given, since the start */
	uint64_t delivered, retries;
	uint64_t lost[FORWARD_LOSS_COUNT];
	uint64_t waiting, waiting_bytes; /* also what an earlier run has left in the spool */
	uint64_t damaged_bytes;          /* of the spool */
	uint64_t rejected_points;        /* of delivered requests: the receiver took the rest */
};

struct forward;

int forward_new(struct loop *l, const struct forward_target *targets, size_t count,
	struct forward **ret, struct errinfo *reterr);
DECLARE_FREE(struct forward, forward_free) /* what waits in a spool is sent after the next start */

/* forward_give - a request goes to every target; @data stays the caller's. */
void forward_give(struct forward *f, enum otlp_signal signal, enum forward_encoding encoding,
	const void *data, size_t len);

/* forward_finish - @fn runs once, when every target has everything or an attempt has failed. */
void forward_finish(struct forward *f, loop_fn *fn, void *arg);

/* forward_stats - of target @i; false: there is none. */
bool forward_stats(const struct forward *f, size_t i, struct forward_stats *ret);
