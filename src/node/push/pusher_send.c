/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_send.c - the requests that go to the fleet and what their replies mean.
 *
 * The push of an interval is tried again once, after 200 ms, if the network failed; an answer, whatever
 * its status, is an answer. A batch of calls is sent until it is acknowledged or refused, with the same
 * number, so that a receiver that had it already can tell. Verdicts and reports are sent once. */

#include "node/push/pusher_private.h"
#include "deliver/backlog.h"
#include "base/log.h"
#include "base/text.h"
#include "net/client/client.h"

#define RETRY_NS       (200 * NS_PER_MS)
#define RETRY_JITTER   0.2
#define BATCH_FIRST_NS NS_PER_S
#define BATCH_LAST_NS  (30 * NS_PER_S)
#define POLL_JITTER    0.2
#define THRESHOLD      "/api/v1/threshold"
#define REPLY_MAX      (64u << 10)
#define TYPE_PROTOBUF  "application/x-protobuf"

/* ---- paths ---- */

static char *make_path(const char *path, const char *cluster)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	buf_printf(&b, "%s?cluster_id=", path);
	http_escape(&b, cluster);
	return buf_take(&b);
}

int pusher_send_open(struct pusher *p, struct errinfo *reterr)
{
	const struct pusher_settings *s = p->settings;
	struct http_client_settings client = {.bearer = s->token, .plain_ok = s->insecure};
	int r = 0;

	p->metrics_path = make_path(s->endpoint.path[OTLP_METRICS], s->cluster);
	p->logs_path = make_path(s->endpoint.path[OTLP_LOGS], s->cluster);
	p->threshold_path = make_path(THRESHOLD, s->cluster);
	if (!p->metrics_path || !p->logs_path || !p->threshold_path)
		return -ENOMEM;
	if (s->endpoint.endpoint.tls || s->threshold.tls || (s->spans && s->spans->endpoint.tls))
		r = tls_client_new(&s->tls, &p->tls, reterr);
	client.tls = p->tls;
	if (p->tls) {
		_cleanup_buf_ struct buf b = BUF_INIT(16384);

		tls_expiry(p->tls, &b);
		if (b.len)
			log_warning("%.*s", (int)strcspn(buf_str(&b), "\n"), buf_str(&b));
	}
	r = r ?: http_client_new(p->loop, &client, &p->client, reterr);
	if (r < 0 || !s->spans)
		return r;
	client.bearer = NULL; /* the token is the fleet's */
	return http_client_new(p->loop, &client, &p->spans, reterr);
}

static int post(struct pusher *p, const char *path, const char *type, const struct buf *body,
	http_done *done)
{
	const struct http_ask a = {.endpoint = &p->settings->endpoint.endpoint,
		.method = "POST",
		.path = path,
		.type = type,
		.body = body->data,
		.body_len = body->len,
		.timeout_ns = p->settings->timeout_ns,
		.body_max = REPLY_MAX};

	if (body->err)
		return body->err;
	return http_ask(p->client, &a, done, p, NULL);
}

const char *pusher_reason(const struct pusher *p, char out[256], const struct http_response *r,
	int err, const struct errinfo *e)
{
	if (err == -EPROTO && p->settings->endpoint.endpoint.tls && e && strstr(e->text, "TLS"))
		snprintf(out, 256, "%s does not use TLS: write http:// in --endpoint",
			p->settings->endpoint.shown);
	else if (err < 0)
		snprintf(out, 256, "%s", e && e->text[0] ? e->text : strerror(-err));
	else if (r->status == 401)
		snprintf(out, 256, "%s",
			p->settings->token
				? "the fleet refused the token (401): it is not one of the tokens that the fleet accepts"
				: "the fleet requires a token (401): give --token-file or $INGERO_FLEET_TOKEN");
	else if (r->status == 404)
		snprintf(out, 256,
			"%s replied 404: is it the OTLP address of the fleet (its --http-addr, port 4318)?",
			p->settings->endpoint.shown);
	else
		snprintf(out, 256, "the fleet replied %d %s", r->status,
			http_status_text(r->status));
	return out;
}

/* ---- the push of an interval ---- */

static void take_threshold(struct pusher *p, enum pusher_hint hint, const char *from)
{
	if (hint == PUSHER_HINT_REFUSED)
		log_warning(
			"the threshold in the %s is not a number from %g to %g: the previous one stays in use",
			from, HEALTH_THRESHOLD_MIN, HEALTH_THRESHOLD_MAX);
}

static void on_metrics(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct pusher *p = arg;
	enum pusher_hint hint;
	char why[256];

	if (err < 0 && !p->is_retried && !p->stopping) {
		p->is_retried = p->waits_for_retry = true;
		loop_timer_set(p->retry, pusher_jitter(RETRY_NS, RETRY_JITTER, pusher_random(p)));
		return;
	}
	p->has_piggyback = false;
	if (err == 0) {
		hint = pusher_reply_fields(&r->head, (int64_t)mono_now().ns, &p->threshold);
		take_threshold(p, hint, "reply");
		p->has_piggyback = hint != PUSHER_HINT_MISSING;
		if (r->status == 429 || r->status == 503)
			p->asked_ns = verdict_retry_after(
				http_head_get(&r->head, "retry-after"), wall_now());
	}
	if (err == 0 && verdict_http(r->status) == BACKLOG_SENT)
		pusher_pushed(p, 0, "");
	else
		pusher_pushed(p, err < 0 ? err : -EIO, pusher_reason(p, why, r, err, e));
}

void pusher_send_metrics(struct pusher *p)
{
	int r;

	p->waits_for_retry = false;
	r = post(p, p->metrics_path, NULL, &p->body, on_metrics);

	if (r < 0)
		pusher_pushed(p, r, strerror(-r));
}

/* ---- verdicts ---- */

static void on_straggler(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct pusher *p = arg;
	char why[256];

	if (err < 0 || verdict_http(r->status) != BACKLOG_SENT)
		pusher_complain(
			p, "a straggler event was not delivered", pusher_reason(p, why, r, err, e));
}

void pusher_send_straggler(struct pusher *p, const struct push_straggler *s)
{
	_cleanup_buf_ struct buf body = BUF_INIT(PUSHER_BODY_BYTES);
	struct push_health h = {.who = pusher_who(p), .sent_ns = wall_now().ns};
	const struct push_metrics m = {.health = &h, .straggler = s, .detection_mode = s->mode};
	int r;

	push_metrics_write(&body, &m, true);
	r = post(p, p->metrics_path, NULL, &body, on_straggler);
	if (r < 0)
		log_warning("a straggler event was not sent: %s", strerror(-r));
}

/* ---- reports ---- */

static void on_report(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct pusher *p = arg;
	char why[256];

	p->reports--;
	if (err < 0 || verdict_http(r->status) != BACKLOG_SENT)
		pusher_complain(p, "a report was not delivered", pusher_reason(p, why, r, err, e));
	else
		p->pushed.reports++;
}

void pusher_send_report(struct pusher *p, const struct push_report *report)
{
	_cleanup_buf_ struct buf body = BUF_INIT(PUSHER_BODY_BYTES);

	if (p->reports == PUSHER_REPORTS_MAX)
		return;
	push_report_write(&body, report, false);
	if (post(p, p->logs_path, TYPE_PROTOBUF, &body, on_report) == 0)
		p->reports++;
}

/* ---- spans ---- */

static void on_span(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct pusher *p = arg;
	char why[256];

	p->reports--;
	if (err < 0 || verdict_http(r->status) != BACKLOG_SENT)
		pusher_complain(p, "a span was not delivered", pusher_reason(p, why, r, err, e));
	else
		p->pushed.spans++;
	pusher_sent_calls(p);
}

void pusher_send_span(struct pusher *p, const struct push_span *s)
{
	_cleanup_buf_ struct buf body = BUF_INIT(PUSHER_BODY_BYTES);
	const struct endpoint *to = p->settings->spans;
	struct http_ask a = {.endpoint = &to->endpoint,
		.method = "POST",
		.path = to->path[OTLP_TRACES],
		.type = TYPE_PROTOBUF,
		.fields = p->settings->span_fields->field,
		.field_count = p->settings->span_fields->count,
		.timeout_ns = p->settings->timeout_ns,
		.body_max = REPLY_MAX};

	push_span_protobuf(&body, s);
	a.body = body.data;
	a.body_len = body.len;
	if (body.err || http_ask(p->spans, &a, on_span, p, NULL) < 0)
		log_warning("a span was not sent");
	else
		p->reports++;
}

/* ---- chains ---- */

static void on_chains(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct pusher *p = arg;
	enum backlog_outcome outcome = err < 0 ? BACKLOG_AGAIN : verdict_http(r->status);
	char why[256];

	if (outcome != BACKLOG_SENT)
		pusher_complain(
			p, "incidents were not delivered", pusher_reason(p, why, r, err, e));
	else
		p->pushed.incidents += p->chains.sent_count;
	p->chain_failures = outcome == BACKLOG_AGAIN ? p->chain_failures + 1 : 0;
	pusher_chain_sent(p, outcome != BACKLOG_AGAIN);
}

void pusher_send_chains(struct pusher *p, const struct push_chain *chains, size_t count)
{
	_cleanup_buf_ struct buf body = BUF_INIT(PUSHER_BODY_BYTES);
	const struct push_who who = pusher_who(p);

	push_chains_protobuf(&body, &who, chains, count);
	if (post(p, p->logs_path, TYPE_PROTOBUF, &body, on_chains) < 0)
		pusher_chain_sent(p, false);
}

/* ---- calls ---- */

static void batch_end(struct pusher *p)
{
	buf_done(&p->batch.body);
	p->batch.body = BUF_INIT(PUSHER_BODY_BYTES);
	p->batch.failures = 0;
	p->batch.due_ns = 0;
	(void)pusher_resume_note(
		p, NULL); /* the note before it is as good: the batch would come twice */
}

static void batch_later(struct pusher *p, uint64_t asked_ns)
{
	unsigned doublings = MIN(p->batch.failures, 5u);
	uint64_t wait = MIN(BATCH_FIRST_NS << doublings, BATCH_LAST_NS);

	p->batch.failures++;
	p->batch.due_ns = mono_now().ns + MAX(wait, asked_ns);
}

static void on_calls(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct pusher *p = arg;
	enum backlog_outcome outcome = err < 0 ? BACKLOG_AGAIN : verdict_http(r->status);
	char why[256];

	p->batch.under_way = false;
	if (outcome == BACKLOG_SENT) {
		p->pushed.collectives += p->batch.count;
		batch_end(p);
		pusher_cause_ask(p, http_head_get(&r->head, "x-ingero-late"));
		pusher_sent_calls(p);
		return;
	}
	pusher_complain(p, "collectives were not delivered", pusher_reason(p, why, r, err, e));
	if (outcome == BACKLOG_REFUSED) {
		p->recording.calls.lost += p->batch.count; /* told with the next batch */
		p->batch.refused += p->batch.count;
		batch_end(p);
	} else {
		batch_later(p, err < 0 ? 0
				       : verdict_retry_after(http_head_get(&r->head, "retry-after"),
						 wall_now()));
	}
	pusher_sent_calls(p);
}

enum { BATCH_KINDS = 2 }; /* numbered and not: a record each, since receivers may pass over one */

static void batch_pack(struct pusher *p, struct push_calls kinds[BATCH_KINDS])
{
	p->batch.count = 0;
	buf_clear(&p->batch.body);
	for (int i = 0; i < BATCH_KINDS; i++) {
		struct push_calls *c = &kinds[i];

		if (!c->count && !c->lost)
			continue;
		c->who.boot = p->batch.stream;
		c->batch = ++p->batch.number;
		p->batch.count += c->count;
		/* Messages of protobuf behind each other are one with the records of both. */
		push_calls_protobuf(&p->batch.body, c);
	}
}

/* A tracer that has stopped did not see the end of the last waits: that is no rank that waits for good. */
static void settle_last(struct push_calls *c)
{
	for (size_t i = 0; i < c->count; i++) {
		bool is_last = c->items[i].wait_ns == UINT64_MAX;

		for (size_t k = i + 1; is_last && k < c->count; k++)
			is_last = c->items[k].pid != c->items[i].pid ||
				  c->items[k].comm != c->items[i].comm;
		if (is_last)
			c->items[i].wait_ns = 0;
	}
}

static int batch_take(struct pusher *p, struct push_calls kinds[BATCH_KINDS])
{
	for (int i = 0; i < BATCH_KINDS; i++) {
		kinds[i] = (struct push_calls){.who = pusher_who(p), .sent_ns = wall_now().ns};
		if (pusher_calls_take(&p->recording.calls, PUSHER_BATCH_CALLS, &kinds[i]) < 0)
			return -ENOMEM;
		if (p->recording.is_over)
			settle_last(&kinds[i]);
		p->pushed.lost += kinds[i].lost;
	}
	return 0;
}

/* All that waits, of both kinds, which ends with the last row that was read: after a restart reading goes on behind it. What
 * cannot be noted is numbered anew: after a restart the numbers behind the last note would be those of other calls. */
static void batch_make(struct pusher *p)
{
	struct push_calls kinds[BATCH_KINDS] = {0};
	uint64_t before = p->batch.number;
	int r;

	if (!p->recording.calls.count && !p->recording.calls.lost)
		return;
	p->batch.body.err = batch_take(p, kinds);
	if (!p->batch.body.err) {
		p->batch.end = p->recording.at;
		p->batch.refused = 0;
		batch_pack(p, kinds);
	}
	r = p->batch.body.err ? 0 : pusher_resume_note(p, &p->batch.body);
	if (r < 0) {
		pusher_complain(p,
			"cannot save what was delivered: after a restart calls may be sent twice",
			strerror(-r));
		p->batch.stream = p->mark.has_note ? (uint64_t)wall_now().ns : p->batch.stream;
		p->batch.number = p->mark.has_note ? 0 : before;
		p->mark.has_note = false;
		batch_pack(p, kinds);
	}
	if (p->batch.body.err) {
		log_warning("not enough memory for a batch of %zu collectives",
			kinds[0].count + kinds[1].count);
		for (int i = 0; i < BATCH_KINDS; i++)
			p->recording.calls.lost += kinds[i].count + kinds[i].lost;
		batch_end(p);
	}
	for (int i = 0; i < BATCH_KINDS; i++)
		free(kinds[i].items);
}

void pusher_send_calls(struct pusher *p)
{
	int r;

	if (p->batch.under_way || (p->batch.due_ns > mono_now().ns && !p->stopping))
		return;
	if (!p->batch.body.len)
		batch_make(p);
	if (!p->batch.body.len)
		return;
	r = post(p, p->logs_path, TYPE_PROTOBUF, &p->batch.body, on_calls);
	p->batch.under_way = r == 0;
	if (r < 0)
		batch_later(p, 0);
}

/* ---- the threshold, where replies do not bring it ---- */

static void on_poll(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct pusher *p = arg;
	uint64_t wait = p->settings->poll_interval_ns, asked = 0;
	char why[256];

	if (err == 0)
		asked = verdict_retry_after(http_head_get(&r->head, "retry-after"), wall_now());
	if (err == 0 && r->status == 200)
		take_threshold(p,
			pusher_reply_body(
				r->body, r->body_len, (int64_t)mono_now().ns, &p->threshold),
			"answer");
	else
		log_warning("the fleet did not send the threshold: %s",
			pusher_reason(p, why, r, err, e));
	if (err == 0 && r->status == 429 && !asked)
		wait *= 2;
	else if (err == 0 && (r->status == 429 || r->status >= 500))
		wait += asked;
	loop_timer_set(p->poll, pusher_jitter(wait, POLL_JITTER, pusher_random(p)));
}

void pusher_send_poll(struct pusher *p)
{
	static const struct http_field accept = {"accept", "application/json"};
	const struct http_ask a = {.endpoint = &p->settings->threshold,
		.method = "GET",
		.path = p->threshold_path,
		.fields = &accept,
		.field_count = 1,
		.timeout_ns = p->settings->timeout_ns,
		.body_max = PUSHER_BODY_MAX};

	if (p->has_piggyback || http_ask(p->client, &a, on_poll, p, NULL) < 0)
		loop_timer_set(p->poll, pusher_jitter(p->settings->poll_interval_ns, POLL_JITTER,
						pusher_random(p)));
}
