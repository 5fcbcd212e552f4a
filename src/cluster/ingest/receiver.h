/* SPDX-License-Identifier: Apache-2.0 */
/* receiver.h - takes in what agents and OpenTelemetry's exporters push: OTLP over gRPC and over HTTP
 * (protobuf or JSON, gzip or not), and gives structs to a sink.
 *
 * A large request is decoded by a thread of its own, and what it holds handed over on the loop's: others are
 * answered meanwhile. Both ports understand both ways. What a request holds for the fleet is decoded and handed over; the
 * request as it came is then handed over to be kept, and last for forwarding. It is answered when it is
 * kept. Traces are only kept and forwarded.
 *
 * What is answered, in the encoding of the request:
 *   - points that are refused beside others that are taken: 200 with partial_success
 *   - all of them refused: the status of the first refusal, 429 and 503 with a time to come again
 *   - every answer, also of a refusal, says the threshold of the sender's cohort, else that of the
 *     cluster, where the cluster is known: by the parameter cluster_id, else by what is pushed.
 *     HTTP: X-Ingero-Threshold, X-Ingero-Quorum-Met; gRPC: ingero-threshold, ingero-quorum-met.
 * Nobody who has not been let in learns of it. */
#pragma once

#include "cluster/detect/nodes.h"
#include "cluster/keep/keeper.h"
#include "net/server/server.h"
#include "otlp/otlp_response.h"
#include "push/push_wire.h"

#define RECEIVER_BODY_MAX     (4u << 20)   /* bytes of a request as sent */
#define RECEIVER_INFLATED_MAX (32u << 20)  /* and inflated */
#define RECEIVER_BODIES_MAX   (128u << 20) /* of all requests at once, for each port */

struct receiver_request { /* as it came, inflated */
	enum otlp_signal signal;
	bool json;
	const void *data;
	size_t len;
	uint64_t credential; /* who sends it: see http_request */
};

/* Where it all goes. Called on the loop's thread. */
struct receiver_sink {
	void *arg;
	/* NULL, and the three after it too: there is no fleet, requests are only kept and forwarded.
	 * @credential: see http_request; *ret is the threshold of the cohort, also of a refusal */
	enum nodes_refusal (*health)(
		void *arg, const struct push_health *h, uint64_t credential, struct threshold *ret);
	/* 0 or a negative errno: -ENOMEM and -EAGAIN: not now (503); -ENOSPC, -ENOBUFS and -E2BIG:
	 * there is no room for it (429); any other: it makes no sense (400) */
	int (*straggler)(void *arg, const struct push_who *who, const struct push_straggler *s);
	int (*calls)(void *arg, const struct push_calls *c);
	int (*report)(void *arg, const struct push_report *r);
	/* admit - before anybody is told of a request: 0; -EAGAIN 429, -EACCES 403, with why. NULL: all are let in. */
	int (*admit)(void *arg, uint64_t credential, char *why, size_t size);
	/* may_send - whether who sends may tell of @cluster, and hear of it; NULL: everybody, of all. */
	bool (*may_send)(void *arg, uint64_t credential, const char *cluster);
	/* threshold - of a cluster as a whole; false: it is not known. NULL: of none. */
	bool (*threshold)(void *arg, const char *cluster, struct threshold *ret);
	/* late - processes of @who's node that others wait for, no more than @max: its agent is asked why. How many.
	 * NULL: of none. */
	size_t (*late)(void *arg, const struct push_who *who, uint32_t *pids, size_t max);
	/* keep - the request is answered by what @done is told, once, now or later: as keeper_take().
	 * -EBADMSG 400, -E2BIG 413, -EACCES 403, -EAGAIN and -ENOBUFS 429, any other 503. What the fleet
	 * refused as a whole does not come here, unless it has no room for it. NULL: nothing is kept. */
	void (*keep)(
		void *arg, const struct receiver_request *q, keeper_done *done, void *done_arg);
	/* forward - what was kept and not refused; of a token for some clusters nothing of which a part was refused: it
	 * would come to where it goes as if that part had been taken. */
	void (*forward)(void *arg, const struct receiver_request *q); /* NULL: nobody wants it */
};

struct receiver_settings {
	struct http_server_settings
		server; /* of both; address, routes, arg and refused are set here */
	const char *grpc_address, *http_address; /* NULL: that port is not opened */
	const char *grpc_flag;                   /* that gives its address; NULL: --grpc-addr */
	size_t body_max, inflated_max;           /* 0: as above */
	struct receiver_sink sink;
};

/* Why a request as a whole was refused. X(NAME, id) */
#define RECEIVER_REASONS(X)                                                                        \
	X(MALFORMED, "malformed")       /* not OTLP, or not HTTP */                                \
	X(TOO_COMPLEX, "too_complex")   /* too many points, attributes or levels */                \
	X(NODE, "node")                 /* nothing in it was taken: nodes_refused() says why */    \
	X(NO_ROOM, "no_room")           /* likewise: the sink is full, or the store lags behind */ \
	X(STORE, "store")               /* it cannot be written now */                             \
	X(TENANT, "tenant")             /* the token is not for its clusters */                    \
	X(BUSY, "busy")                 /* too many requests at once, no memory, draining */       \
	X(UNAUTHORIZED, "unauthorized") /* no valid token */                                       \
	X(THROTTLED, "throttled")       /* too many wrong tokens */                                \
	X(FORBIDDEN, "forbidden")       /* Host, Origin */                                         \
	X(NOT_FOUND, "not_found")       /* path, method */                                         \
	X(UNSUPPORTED, "unsupported")   /* content type, encoding */                               \
	X(TOO_LARGE, "too_large")       /* as sent or inflated */                                  \
	X(SLOW, "slow")                 /* head or body */

enum receiver_reason {
#define X(NAME, ...) RECEIVER_##NAME,
	RECEIVER_REASONS(X)
#undef X
		RECEIVER_REASON_COUNT
};
const char *receiver_reason_id(enum receiver_reason r);

struct receiver_stats {
	uint64_t requests[OTLP_SIGNAL_COUNT]; /* that were let in and complete */
	uint64_t bytes;                       /* of these, inflated */
	uint64_t taken, rejected,
		foreign; /* points and records; foreign: not ours, only forwarded */
	uint64_t refused[RECEIVER_REASON_COUNT];
	uint64_t withheld;             /* requests that were taken in part, and not forwarded */
	struct http_server_stats http; /* of both ports together */
};

struct receiver;
int receiver_new(struct loop *l, const struct receiver_settings *s, struct receiver **ret,
	struct errinfo *reterr);
/* receiver_free - not from the sink. Requests that wait to be decoded or kept are given up; their results may
 * still come. */
DECLARE_FREE(struct receiver, receiver_free)

/* receiver_X_address - where it listens; NULL: it does not. */
const char *receiver_grpc_address(const struct receiver *r);
const char *receiver_http_address(const struct receiver *r);

/* receiver_drain - no more connections; requests on those there are get 503, so that their senders
 * keep what they have; @done when the last has ended. */
void receiver_drain(struct receiver *r, loop_fn *done, void *arg);

struct receiver_stats receiver_stats(const struct receiver *r);
