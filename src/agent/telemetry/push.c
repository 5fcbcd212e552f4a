/* SPDX-License-Identifier: Apache-2.0 */
/* push.c - see push.h. Invariant: at most one attempt is under way; after it ends, and whenever the
 * timer rings or a batch comes, send_next() looks what is due. */
#include "agent/telemetry/push.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/telemetry/verdict.h"
#include "base/log.h"
#include "base/text.h"
#include "net/client.h"

#define BATCH_MAX (4u << 20) /* what receivers take by default (gRPC) */
#define REPLY_MAX (64u << 10)

struct push {
	struct endpoint endpoint;
	struct push_settings settings;
	struct tls *tls;
	struct http_client *client;
	struct loop_timer *timer;
	struct backlog backlog;
	uint64_t rejected_points;
	loop_fn *finished;
	void *finished_arg;
};

static void send_next(struct push *p);

void push_free(struct push *p)
{
	if (p->client)
		http_client_free(p->client);
	if (p->timer)
		loop_timer_free(p->timer);
	if (p->tls)
		tls_free(p->tls);
	backlog_done(&p->backlog);
	free(p);
}

static void on_timer(void *arg)
{
	send_next(arg);
}

int push_new(
	struct loop *l, const struct push_settings *s, struct push **ret, struct errinfo *reterr)
{
	_cleanup_(push_freep) struct push *p = calloc(1, sizeof(*p));
	struct tls_client_settings tls = {.ca = s->ca, .cert = s->cert, .key = s->key};
	struct http_client_settings client = {0};
	int r = 0;

	if (!p)
		return -ENOMEM;
	p->endpoint = *s->endpoint;
	p->settings = *s;
	p->backlog.random = mono_now().ns;
	if (p->endpoint.endpoint.tls)
		r = tls_client_new(&tls, &p->tls, reterr);
	client.tls = p->tls;
	client.plain_ok = s->insecure_far;
	if (r == 0)
		r = http_client_new(l, &client, &p->client, reterr);
	if (r == 0)
		r = loop_timer_new(l, on_timer, p, &p->timer);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}

/* ---- replies ---- */

static void notify_finished(struct push *p)
{
	loop_fn *fn = TAKE(p->finished);

	if (fn)
		fn(p->finished_arg);
}

/* The receiver's words are foreign. */
static void say(const struct push *p, const char *what, const char *words)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	text_escape_terminal(&b, words);
	log_warning(
		"metrics to %s: %s%s%s", p->endpoint.shown, what, *words ? ": " : "", buf_str(&b));
}

static void attempt_end(struct push *p, enum backlog_outcome outcome, uint64_t asked_ns)
{
	backlog_end(&p->backlog, mono_now(), outcome, asked_ns);
	if (p->finished && (outcome == BACKLOG_AGAIN || !p->backlog.count))
		notify_finished(p);
	else
		send_next(p);
}

/* A response that cannot be read is one without rejections: the batch is delivered. */
static void take_answer(struct push *p, bool is_json, const void *data, size_t len)
{
	struct otlp_answer a = {0};

	(void)(is_json ? otlp_answer_json(data, len, &a) : otlp_answer_protobuf(data, len, &a));
	if (a.rejected > 0) {
		p->rejected_points += (uint64_t)a.rejected;
		say(p, "some points were rejected", a.message);
	}
}

static void attempt_failed(struct push *p, int err, const struct errinfo *e)
{
	log_warning("%s; queued metric readings: %zu", e && e->text[0] ? e->text : strerror(-err),
		p->backlog.count);
	/* A reply that is too long came after the batch: to send that again would double it. */
	attempt_end(p, err == -EMSGSIZE ? BACKLOG_REFUSED : BACKLOG_AGAIN, 0);
}

static void on_http(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct push *p = arg;
	enum backlog_outcome outcome;
	char status[64];

	if (err < 0) {
		attempt_failed(p, err, e);
		return;
	}
	outcome = verdict_http(r->status);
	if (outcome == BACKLOG_SENT) {
		take_answer(p, p->endpoint.protocol == OTLP_HTTP_JSON, r->body, r->body_len);
	} else {
		snprintf(status, sizeof(status), "%d %s", r->status, http_status_text(r->status));
		say(p, outcome == BACKLOG_AGAIN ? "not now" : "refused, and dropped", status);
	}
	attempt_end(p, outcome,
		verdict_retry_after(http_head_get(&r->head, "retry-after"), wall_now()));
}

static void on_grpc(void *arg, int status, const char *message, const void *reply, size_t len,
	int err, const struct errinfo *e)
{
	struct push *p = arg;
	enum backlog_outcome outcome;
	char text[300];

	if (err < 0) {
		attempt_failed(p, err, e);
		return;
	}
	outcome = verdict_grpc(status);
	if (outcome == BACKLOG_SENT) {
		take_answer(p, false, reply, len);
	} else {
		snprintf(text, sizeof(text), "gRPC status %d %s", status, message ? message : "");
		say(p, outcome == BACKLOG_AGAIN ? "not now" : "refused, and dropped", text);
	}
	attempt_end(p, outcome, 0);
}

/* ---- sending ---- */

static void send_next(struct push *p)
{
	const struct backlog_batch *batch = backlog_begin(&p->backlog, mono_now());
	bool is_json = p->endpoint.protocol == OTLP_HTTP_JSON;
	struct http_ask ask;
	uint64_t wait_ns;
	int r;

	if (!batch) {
		wait_ns = backlog_wait_ns(&p->backlog, mono_now());
		if (wait_ns != UINT64_MAX)
			loop_timer_set(p->timer, wait_ns);
		return;
	}
	ask = (struct http_ask){.endpoint = &p->endpoint.endpoint,
		.method = "POST",
		.path = p->endpoint.path,
		.type = is_json ? "application/json" : "application/x-protobuf",
		.body = batch->data,
		.body_len = batch->len,
		.fields = p->settings.fields->field,
		.field_count = p->settings.fields->count,
		.timeout_ns = PUSH_TIMEOUT_NS,
		.body_max = REPLY_MAX};
	if (p->endpoint.protocol == OTLP_GRPC)
		r = grpc_ask(p->client, &ask, on_grpc, p);
	else
		r = http_ask(p->client, &ask, on_http, p, NULL);
	if (r < 0) /* from the loop, because this may be called by attempt_end() */
		backlog_end(&p->backlog, mono_now(), BACKLOG_AGAIN, 0);
	if (r < 0)
		loop_timer_set(p->timer, backlog_wait_ns(&p->backlog, mono_now()));
}

void push_give(struct push *p, const struct metric_set *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BATCH_MAX);
	struct backlog_batch batch = {0};

	batch.points =
		(p->endpoint.protocol == OTLP_HTTP_JSON ? otlp_metric_json : otlp_metric_protobuf)(
			&b, s, &p->settings.resource);
	batch.len = b.len;
	if (b.err)
		batch.len = SIZE_MAX; /* too large for anybody: counted as dropped */
	else
		batch.data = buf_take(&b);
	backlog_put(&p->backlog, batch);
	send_next(p);
}

void push_finish(struct push *p, loop_fn *fn, void *arg)
{
	if (!p->backlog.count) {
		fn(arg);
		return;
	}
	p->finished = fn;
	p->finished_arg = arg;
	backlog_hurry(&p->backlog);
	send_next(p);
}

struct push_stats push_stats(const struct push *p)
{
	return (struct push_stats){.backlog = p->backlog.stats,
		.rejected_points = p->rejected_points,
		.queued_batches = p->backlog.count,
		.queued_bytes = p->backlog.bytes};
}
