/* SPDX-License-Identifier: Apache-2.0 */
/* push_wire.h - what agents push, as OTLP requests and back. No I/O.
 *
 * Health goes as metrics with the published names (scope ingero.health). Collectives go as log records
 * of the scope ingero.collectives, event name "ingero.collectives", each with a body of bytes that
 * holds many calls (push_calls_pack()); those of a batch with calls that are not numbered have the event name
 * "ingero.collectives.unnumbered", which receivers that cannot bring them together pass over; reports as log records of the scope ingero.report, event name
 * "ingero.report", with attributes; explained incidents likewise as ingero.causal_chain, with attributes
 * named as the columns of that table. Episodes of a node are spans ingero.detection.straggler and
 * ingero.detection.degradation. A receiver that knows nothing of us can keep and forward all of it. */
#pragma once

#include "base/buf.h"
#include "otlp/otlp_read.h"
#include "push/push.h"

#define PUSH_SCOPE_HEALTH "ingero.health"
#define PUSH_SCOPE_CALLS  "ingero.collectives" /* also the event's name, as of the next */
#define PUSH_SCOPE_OWN                                                                             \
	"ingero.collectives.unnumbered" /* calls of which all ranks do not know the number */
#define PUSH_SCOPE_REPORT  "ingero.report"
#define PUSH_SCOPE_CHAIN   "ingero.causal_chain"
#define PUSH_SCOPE_VERSION "0.10.0"

struct push_counters { /* since the agent's start, of one control group */
	const char *cohort;
	uint64_t launches, stall_ns, copied_bytes[5]; /* h2h, h2d, d2h, d2d, unknown */
};

struct push_metrics { /* one request */
	const struct push_health *health;
	const char *detection_mode;
	bool fleet_reachable;
	const struct push_counters *counters; /* counter_count of them */
	size_t counter_count;
	uint64_t start_ns;                      /* of the counters */
	const struct push_straggler *straggler; /* its own request: then the rest is left out */
};

/* push_X_write, push_X_protobuf - append an Export…ServiceRequest; failures stick in @b. */
void push_metrics_write(struct buf *b, const struct push_metrics *m, bool json);
void push_calls_protobuf(struct buf *b, const struct push_calls *c);
void push_report_write(struct buf *b, const struct push_report *r, bool json);
void push_span_protobuf(struct buf *b, const struct push_span *s);
void push_chains_protobuf(
	struct buf *b, const struct push_who *who, const struct push_chain *chains, size_t count);

/* push_calls_pack - the bytes of a record's body: about 13 a call (push_calls.c has their layout). -ENOBUFS
 * beyond PUSH_CALLS_MAX.
 * push_calls_unpack() fills all but who; items are the caller's to free. -EBADMSG; -E2BIG; -ENOMEM. */
#define PUSH_CALLS_MAX 200000
void push_calls_pack(struct buf *b, const struct push_calls *c);
int push_calls_unpack(const void *data, size_t len, struct push_calls *ret);

/* push_record_is - by the event's name; a pipeline that knows no such field leaves the scope's. */
bool push_record_is(const struct otlp_record *r, const char *name);
/* push_is_plain - UTF-8 without control characters. */
bool push_is_plain(const char *s, size_t len);
/* push_time - of OTLP as ours: a time beyond what fits is the last one. */
int64_t push_time(uint64_t ns);

/* push_handler - who is told what a request holds; other points and records are counted and left
 * alone, and so is what a NULL would be told. */
struct push_handler {
	void *arg;
	/* Once for a node (of one boot) and request; a negative errno rejects its points. */
	int (*health)(void *arg, const struct push_health *h);
	int (*straggler)(void *arg, const struct push_who *who, const struct push_straggler *s);
	/* Once for a record. */
	int (*calls)(void *arg, const struct push_calls *c);
	int (*report)(void *arg, const struct push_report *r);
};

struct push_taken {
	size_t taken, rejected, foreign; /* points and records */
	char why[160];                   /* the first rejection, for people; "": none */
};

/* push_receive_X - 0, *ret says how much was taken. -EBADMSG, -E2BIG, -ENOMEM: nothing of metrics has been
 * handed over then, and of logs what stood before the fault (a batch that comes again is known by its
 * number). Numbers that make no sense (NaN, infinities, 0 as a time) are handed over: it is the
 * cluster's to refuse them. Names that do not fit or have control characters reject their points. */
int push_receive_metrics(const void *data, size_t len, bool json, const struct push_handler *h,
	struct push_taken *ret, struct errinfo *reterr);
int push_receive_logs(const void *data, size_t len, bool json, const struct push_handler *h,
	struct push_taken *ret, struct errinfo *reterr);
