/* SPDX-License-Identifier: Apache-2.0 */
/* sender.c - see sender.h. Invariant: at most one attempt is under way; after it ends, and whenever
 * the timer rings or a batch comes, send_next() looks what is due. */
#include "deliver/sender.h"

#include "base/log.h"
#include "base/text.h"

#define REPLY_MAX (64u << 10)

struct sender {
	struct sender_settings settings;
	struct http_endpoint endpoint;
	char shown[320];
	struct tls *tls;
	struct http_client *client;
	struct loop_timer *timer;
	struct backlog backlog;
	loop_fn *finished;
	void *finished_arg;
};

static void send_next(struct sender *s);

void sender_free(struct sender *s)
{
	http_client_freep(&s->client);
	loop_timer_freep(&s->timer);
	tls_freep(&s->tls);
	backlog_done(&s->backlog);
	free(s);
}

static void on_timer(void *arg)
{
	send_next(arg);
}

int sender_new(struct loop *l, const struct sender_settings *settings, struct sender **ret,
	struct errinfo *reterr)
{
	_cleanup_(sender_freep) struct sender *s = calloc(1, sizeof(*s));
	struct tls_client_settings tls = {
		.ca = settings->ca, .cert = settings->cert, .key = settings->key};
	struct http_client_settings client = {.plain_ok = settings->insecure_far};
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->settings = *settings;
	s->endpoint = *settings->endpoint;
	snprintf(s->shown, sizeof(s->shown), "%s", settings->shown);
	s->backlog.random = mono_now().ns;
	if (s->endpoint.tls)
		r = tls_client_new(&tls, &s->tls, reterr);
	client.tls = s->tls;
	r = r ?: http_client_new(l, &client, &s->client, reterr);
	r = r ?: loop_timer_new(l, on_timer, s, &s->timer);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

/* ---- replies ---- */

void sender_say(const struct sender *s, const char *what, const char *words)
{
	log_warning("%s to %s: %s%s%s", s->settings.what, s->shown, what, *words ? ": " : "",
		TEXT_SHOWN(words));
}

static void attempt_end(struct sender *s, enum backlog_outcome outcome, uint64_t asked_ns)
{
	const struct sender_ops *ops = s->settings.ops;
	loop_fn *finished;

	backlog_end(&s->backlog, mono_now(), outcome, asked_ns);
	if (outcome != BACKLOG_AGAIN && ops->left)
		ops->left(s->settings.arg, outcome);
	if (s->finished && (outcome == BACKLOG_AGAIN || !s->backlog.count)) {
		finished = TAKE(s->finished);
		finished(s->finished_arg);
	} else {
		send_next(s);
	}
}

static void attempt_failed(struct sender *s, int err, const struct errinfo *e)
{
	log_warning("%s; queued %s: %zu", e && e->text[0] ? e->text : strerror(-err),
		s->settings.what, s->backlog.count);
	/* A reply that is too long came after the batch: to send that again would double it. */
	attempt_end(s, err == -EMSGSIZE ? BACKLOG_REFUSED : BACKLOG_AGAIN, 0);
}

static void attempt_answered(struct sender *s, enum backlog_outcome outcome, const char *status,
	const void *reply, size_t len, uint64_t asked_ns)
{
	const struct sender_ops *ops = s->settings.ops;

	if (outcome != BACKLOG_SENT)
		sender_say(
			s, outcome == BACKLOG_AGAIN ? "not now" : "refused, and dropped", status);
	else if (ops->taken)
		ops->taken(s->settings.arg, backlog_first(&s->backlog), reply, len);
	attempt_end(s, outcome, asked_ns);
}

static void on_http(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct sender *s = arg;
	const struct sender_ops *ops = s->settings.ops;
	char status[64];

	if (err < 0) {
		attempt_failed(s, err, e);
		return;
	}
	snprintf(status, sizeof(status), "%d %s", r->status, http_status_text(r->status));
	attempt_answered(s, ops->judge ? ops->judge(r->status) : verdict_http(r->status), status,
		r->body, r->body_len,
		verdict_retry_after(http_head_get(&r->head, "retry-after"), wall_now()));
}

static void on_grpc(void *arg, int status, const char *message, const void *reply, size_t len,
	int err, const struct errinfo *e)
{
	struct sender *s = arg;
	char text[300];

	if (err < 0) {
		attempt_failed(s, err, e);
		return;
	}
	snprintf(text, sizeof(text), "gRPC status %d %s", status, message ? message : "");
	attempt_answered(s, verdict_grpc(status), text, reply, len, 0);
}

/* ---- sending ---- */

static void send_next(struct sender *s)
{
	const struct backlog_batch *batch = backlog_begin(&s->backlog, mono_now());
	struct http_ask ask = {.endpoint = &s->endpoint,
		.method = "POST",
		.timeout_ns = SENDER_TIMEOUT_NS,
		.body_max = REPLY_MAX};
	uint64_t wait_ns;
	int r;

	if (!batch) {
		wait_ns = backlog_wait_ns(&s->backlog, mono_now());
		if (wait_ns != UINT64_MAX)
			loop_timer_set(s->timer, wait_ns);
		return;
	}
	ask.body = batch->data;
	ask.body_len = batch->len;
	s->settings.ops->describe(s->settings.arg, batch, &ask);
	r = s->settings.is_grpc ? grpc_ask(s->client, &ask, on_grpc, s)
				: http_ask(s->client, &ask, on_http, s, NULL);
	if (r < 0) /* from the loop, because this may be called by attempt_end() */
		backlog_end(&s->backlog, mono_now(), BACKLOG_AGAIN, 0);
	if (r < 0)
		loop_timer_set(s->timer, backlog_wait_ns(&s->backlog, mono_now()));
}

void sender_put(struct sender *s, struct backlog_batch batch)
{
	backlog_put(&s->backlog, batch);
	send_next(s);
}

void sender_finish(struct sender *s, loop_fn *fn, void *arg)
{
	if (!s->backlog.count) {
		fn(arg);
		return;
	}
	s->finished = fn;
	s->finished_arg = arg;
	backlog_hurry(&s->backlog);
	send_next(s);
}

const struct backlog *sender_backlog(const struct sender *s)
{
	return &s->backlog;
}
