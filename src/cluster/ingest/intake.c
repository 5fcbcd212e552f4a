/* SPDX-License-Identifier: Apache-2.0 */
/* intake.c - one request that a port of the receiver was sent: decoded, handed to the sink, answered.
 * See receiver.h.
 *
 * Invariants:
 *  1. Every request is answered once, and counted: as requests, or under one reason in refused.
 *  2. What was refused as a whole is not forwarded: its sender keeps it, or is to mend it.
 *  3. What is to be kept is answered after it is: 200 says that it is on disk. The fleet has seen it before,
 *     also when it is refused then and comes again: it counts a batch once. */
#include "cluster/ingest/receiver_private.h"

#include <strings.h>

#include "net/grpc.h"

#define RETRY_S    "5" /* in which a node may have been forgotten, or a restart be over */
#define RESPONSE   4096
#define REASON_MAX 256
#define LATE_MAX   16

struct intake { /* one request */
	struct receiver *receiver;
	struct http_exchange *x;
	const struct http_request *q;
	enum otlp_signal signal;
	bool json;
	char cluster[PUSH_ID_MAX]; /* "": not known */
	struct push_who caller;    /* of calls; no node: there were none */
	struct threshold threshold;
	bool has_threshold;
	int status; /* HTTP's, of the first refusal by the sink; 0: none */
	enum receiver_reason reason;
	char why[REASON_MAX];
	struct push_taken taken; /* by the fleet */
};

/* ---- replies ---- */

static void set_threshold(
	struct http_exchange *x, const struct http_request *q, const struct threshold *t)
{
	char value[32];

	snprintf(value, sizeof(value), "%.6g", t->value);
	http_reply_field(x, q->grpc ? "ingero-threshold" : "x-ingero-threshold", value);
	http_reply_field(x, q->grpc ? "ingero-quorum-met" : "x-ingero-quorum-met",
		t->quorum_met ? "true" : "false");
}

static bool may_send(const struct receiver *r, const struct http_request *q, const char *cluster)
{
	return !r->sink.may_send || r->sink.may_send(r->sink.arg, q->credential, cluster);
}

static void say_threshold(struct intake *in)
{
	const struct receiver_sink *s = &in->receiver->sink;

	if (!in->has_threshold && *in->cluster && s->threshold && !in->receiver->closed &&
		may_send(in->receiver, in->q, in->cluster))
		in->has_threshold = s->threshold(s->arg, in->cluster, &in->threshold);
	if (in->has_threshold)
		set_threshold(in->x, in->q, &in->threshold);
}

/* Whom of its ranks others wait for: it looks why. */
static void say_late(struct intake *in)
{
	const struct receiver_sink *s = &in->receiver->sink;
	_cleanup_buf_ struct buf b = BUF_INIT(RESPONSE);
	uint32_t pids[LATE_MAX];
	size_t n = 0;

	if (*in->caller.node && s->late && !in->receiver->closed)
		n = s->late(s->arg, &in->caller, pids, LATE_MAX);
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%u", i ? "," : "", pids[i]);
	if (n && !b.err)
		http_reply_field(in->x, in->q->grpc ? "ingero-late" : "x-ingero-late", buf_str(&b));
}

static const char *type_of(const struct intake *in)
{
	return in->json ? "application/json" : "application/x-protobuf";
}

static void reply_refusal(
	struct intake *in, int status, enum receiver_reason reason, const char *why)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RESPONSE);

	in->receiver->stats.refused[reason]++;
	say_threshold(in);
	if (status == 429 || status == 503)
		http_reply_field(in->x, "retry-after", RETRY_S);
	if (in->q->grpc) {
		http_reply_error(in->x, status, "%s", why);
		return;
	}
	otlp_status_put(&b, in->json, grpc_status_for_http(status), why);
	http_reply(in->x, status, type_of(in), b.data, b.len);
}

/* ---- what a request holds ---- */

static void note_cluster(struct intake *in, const struct push_who *who)
{
	if (!*in->cluster)
		memcpy(in->cluster, who->cluster, sizeof(in->cluster));
}

static void note_refusal(struct intake *in, int status, enum receiver_reason reason,
	const struct push_who *who, const char *why)
{
	if (in->status)
		return;
	in->status = status;
	in->reason = reason;
	snprintf(in->why, sizeof(in->why), "node %s: %s", *who->node ? who->node : "without a name",
		why);
}

/* is_theirs - whether the token is for its cluster. */
static bool is_theirs(struct intake *in, const struct push_who *who)
{
	if (may_send(in->receiver, in->q, who->cluster))
		return true;
	note_refusal(in, 403, RECEIVER_TENANT, who,
		"tenant_scoped_bearer_refused: the token is not for its cluster");
	return false;
}

static int take_health(void *arg, const struct push_health *h)
{
	struct intake *in = arg;
	const struct receiver_sink *s = &in->receiver->sink;
	enum nodes_refusal r;

	if (!is_theirs(in, &h->who))
		return -EACCES;
	note_cluster(in, &h->who);
	in->has_threshold = true;
	r = s->health(s->arg, h, in->q->credential, &in->threshold);
	if (r == NODES_NONE)
		return 0;
	note_refusal(in, nodes_refusal_status(r), RECEIVER_NODE, &h->who, nodes_refusal_id(r));
	return -EINVAL;
}

/* settle - what the sink said to anything but health. */
static int settle(struct intake *in, const struct push_who *who, int r)
{
	note_cluster(in, who);
	if (r == -ENOMEM || r == -EAGAIN)
		note_refusal(in, 503, RECEIVER_BUSY, who, "busy");
	else if (r == -ENOSPC || r == -ENOBUFS || r == -E2BIG)
		note_refusal(in, 429, RECEIVER_NO_ROOM, who, "no room for it");
	else if (r < 0)
		note_refusal(in, 400, RECEIVER_MALFORMED, who, strerror(-r));
	return r < 0 ? r : 0;
}

static int take_straggler(
	void *arg, const struct push_who *who, const struct push_straggler *straggler)
{
	struct intake *in = arg;
	const struct receiver_sink *s = &in->receiver->sink;

	if (!is_theirs(in, who))
		return -EACCES;
	return settle(in, who, s->straggler(s->arg, who, straggler));
}

static int take_calls(void *arg, const struct push_calls *c)
{
	struct intake *in = arg;
	const struct receiver_sink *s = &in->receiver->sink;

	if (!is_theirs(in, &c->who))
		return -EACCES;
	in->caller = c->who;
	return settle(in, &c->who, s->calls(s->arg, c));
}

static int take_report(void *arg, const struct push_report *report)
{
	struct intake *in = arg;
	const struct receiver_sink *s = &in->receiver->sink;

	if (!is_theirs(in, &report->who))
		return -EACCES;
	return settle(in, &report->who, s->report(s->arg, report));
}

static struct push_handler handler_of(struct intake *in)
{
	return (struct push_handler){
		.arg = in,
		.health = take_health,
		.straggler = take_straggler,
		.calls = take_calls,
		.report = take_report,
	};
}

/* decoded - the fleet has been told what it holds. False: it has been refused, and answered. */
static bool decoded(struct intake *in, int r, const struct errinfo *e)
{
	struct receiver_stats *stats = &in->receiver->stats;
	const struct push_taken *t = &in->taken;

	if (r < 0) {
		const char *why = *e->text ? e->text : "not an OTLP request";

		if (r == -E2BIG)
			reply_refusal(in, 413, RECEIVER_TOO_COMPLEX, why);
		else if (r == -ENOMEM)
			reply_refusal(in, 503, RECEIVER_BUSY, "out of memory for this request");
		else
			reply_refusal(in, 400, RECEIVER_MALFORMED, why);
		return false;
	}
	stats->taken += t->taken;
	stats->rejected += t->rejected;
	stats->foreign += t->foreign;
	if (!t->rejected || t->taken || t->foreign)
		return true;
	if (in->status == 429 && in->receiver->sink.keep) /* there is room where it is kept */
		return true;
	if (in->status)
		reply_refusal(in, in->status, in->reason, in->why);
	else
		reply_refusal(in, 400, RECEIVER_MALFORMED, t->why);
	return false;
}

static struct receiver_request request_of(const struct intake *in)
{
	return (struct receiver_request){.signal = in->signal,
		.json = in->json,
		.data = in->q->body,
		.len = in->q->body_len,
		.credential = in->q->credential};
}

/* No cluster has that name: who may write it may write all. */
static bool is_scoped(const struct intake *in)
{
	return !may_send(in->receiver, in->q, "");
}

/* finish - it is taken, but for @rejected points. */
static void finish(struct intake *in, size_t rejected, const char *why)
{
	const struct receiver_sink *s = &in->receiver->sink;
	const struct receiver_request q = request_of(in);
	_cleanup_buf_ struct buf b = BUF_INIT(RESPONSE);

	in->receiver->stats.requests[in->signal]++;
	in->receiver->stats.bytes += q.len;
	if (s->forward && !in->receiver->closed) {
		if (rejected && is_scoped(in))
			in->receiver->stats.withheld++;
		else
			s->forward(s->arg, &q);
	}
	say_threshold(in);
	say_late(in);
	otlp_response_put(&b, in->signal, in->json, rejected, rejected ? why : "");
	http_reply(in->x, 200, type_of(in), b.data, b.len);
}

/* ---- keeping ---- */

static void refuse_unkept(struct intake *in, const struct keeper_result *r)
{
	static const struct {
		int err, status;
		enum receiver_reason reason;
	} rows[] = {
		{-EBADMSG, 400, RECEIVER_MALFORMED},
		{-E2BIG, 413, RECEIVER_TOO_COMPLEX},
		{-EACCES, 403, RECEIVER_TENANT},
		{-EAGAIN, 429, RECEIVER_NO_ROOM},
		{-ENOBUFS, 429, RECEIVER_NO_ROOM},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].err == r->err) {
			reply_refusal(in, rows[i].status, rows[i].reason, r->why);
			return;
		}
	reply_refusal(in, 503, RECEIVER_STORE, r->why);
}

static void on_kept(void *arg, const struct keeper_result *r)
{
	_cleanup_free_ struct intake *in = arg;
	struct receiver *receiver = in->receiver;
	bool by_keeper = r->rejected >= in->taken.rejected;

	if (r->err < 0) {
		refuse_unkept(in, r);
	} else {
		if (!receiver->sink.health) {
			receiver->stats.taken += r->taken;
			receiver->stats.rejected += r->rejected;
		}
		finish(in, MAX(r->rejected, in->taken.rejected),
			by_keeper  ? r->why
			: *in->why ? in->why
				   : in->taken.why);
	}
	receiver_release(receiver);
}

static void keep(struct intake *in)
{
	const struct receiver_sink *s = &in->receiver->sink;
	const struct receiver_request q = request_of(in);
	struct intake *waiting = malloc(sizeof(*waiting));

	if (!waiting) {
		reply_refusal(in, 503, RECEIVER_BUSY, "out of memory");
		return;
	}
	*waiting = *in;
	in->receiver->waiting++;
	s->keep(s->arg, &q, on_kept, waiting);
}

/* keep_or_finish - it is decoded. */
static void keep_or_finish(struct intake *in)
{
	if (in->receiver->sink.keep)
		keep(in);
	else
		finish(in, in->taken.rejected, *in->why ? in->why : in->taken.why);
}

/* ---- decoding ---- */

static void on_decoded(void *arg, int r, const struct push_taken *taken, const struct errinfo *e)
{
	_cleanup_free_ struct intake *in = arg;
	struct receiver *receiver = in->receiver;

	in->taken = *taken;
	if (receiver->closed)
		reply_refusal(in, 503, RECEIVER_BUSY, "shutting down");
	else if (decoded(in, r, e))
		keep_or_finish(in);
	receiver_release(receiver);
}

/* decode_later - by the decoder's thread. */
static void decode_later(struct intake *in, const struct decoder_request *q)
{
	struct intake *waiting = malloc(sizeof(*waiting));
	int r = -ENOMEM;

	if (waiting) {
		struct push_handler h = handler_of(waiting);

		*waiting = *in;
		r = decoder_push(in->receiver->decoder, q, &h, on_decoded, waiting);
	}
	if (r == 0) {
		in->receiver->waiting++;
		return;
	}
	free(waiting);
	reply_refusal(in, 503, RECEIVER_BUSY,
		r == -EBUSY ? "too many large requests at once" : "out of memory");
}

static void take(struct intake *in)
{
	const struct decoder_request q = {.signal = in->signal,
		.json = in->json,
		.data = in->q->body,
		.len = in->q->body_len,
		.asker = in->q->credential};
	const struct receiver_sink *s = &in->receiver->sink;
	struct push_handler h = handler_of(in);
	struct errinfo e = {0};
	int r = s->admit ? s->admit(s->arg, in->q->credential, e.text, sizeof(e.text)) : 0;

	if (r < 0)
		reply_refusal(in, r == -EAGAIN ? 429 : 403,
			r == -EAGAIN ? RECEIVER_NO_ROOM : RECEIVER_TENANT, e.text);
	else if (!s->health)
		keep_or_finish(in);
	else if (q.len >= DECODER_LEAST)
		decode_later(in, &q);
	else if (decoded(in, decoder_decode(&q, &h, &in->taken, &e), &e))
		keep_or_finish(in);
}

/* ---- heads ---- */

/* read_type - false: neither of the two encodings. */
static bool read_type(const struct http_request *q, bool *ret_json)
{
	const char *type = http_head_get(&q->head, "content-type");
	size_t len = type ? strcspn(type, "; ") : 0;

	*ret_json = len == 16 && strncasecmp(type, "application/json", len) == 0;
	return q->grpc || *ret_json ||
	       (len == 22 && strncasecmp(type, "application/x-protobuf", len) == 0);
}

static void read_cluster(const struct http_request *q, char ret[PUSH_ID_MAX])
{
	bool found = false;

	if (http_query_get(q->query, "cluster_id", ret, PUSH_ID_MAX, &found) < 0 || !found)
		ret[0] = 0;
}

void intake_handler(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct intake in = {.receiver = arg, .x = x, .q = q};

	if (!otlp_signal_of_path(q->path, &in.signal)) {
		http_reply_error(x, 404, "no such path"); /* the routes say otherwise */
		return;
	}
	read_cluster(q, in.cluster);
	if (!read_type(q, &in.json))
		reply_refusal(&in, 415, RECEIVER_UNSUPPORTED,
			"content type not supported: use application/x-protobuf or application/json");
	else if (in.receiver->draining)
		reply_refusal(&in, 503, RECEIVER_BUSY, "shutting down");
	else
		take(&in);
}

static enum receiver_reason reason_of_status(int status)
{
	static const struct {
		int status;
		enum receiver_reason reason;
	} rows[] = {
		{401, RECEIVER_UNAUTHORIZED},
		{403, RECEIVER_FORBIDDEN},
		{404, RECEIVER_NOT_FOUND},
		{405, RECEIVER_NOT_FOUND},
		{408, RECEIVER_SLOW},
		{413, RECEIVER_TOO_LARGE},
		{415, RECEIVER_UNSUPPORTED},
		{429, RECEIVER_THROTTLED},
		{503, RECEIVER_BUSY},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].status == status)
			return rows[i].reason;
	return RECEIVER_MALFORMED;
}

void intake_refused(void *arg, struct http_exchange *x, const struct http_request *q, int status)
{
	struct receiver *r = arg;
	char cluster[PUSH_ID_MAX];
	struct threshold t;

	r->stats.refused[reason_of_status(status)]++;
	if (!q->admitted)
		return;
	read_cluster(q, cluster);
	if (*cluster && r->sink.threshold && may_send(r, q, cluster) &&
		r->sink.threshold(r->sink.arg, cluster, &t))
		set_threshold(x, q, &t);
}
