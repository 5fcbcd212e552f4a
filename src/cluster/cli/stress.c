/* SPDX-License-Identifier: Apache-2.0 */
/* stress.c - see stress.h.
 *
 * A writer has one request under way. It keeps the request's bytes until they are acknowledged, so that a
 * second attempt, and a duplicate, are the same request. */
#include "cluster/cli/stress.h"

#include "deliver/backlog.h"
#include "net/grpc.h"
#include "otlp/otlp_metric.h"
#include "otlp/otlp_write.h"

#define REQUEST_MAX    (4u << 20)
#define REPLY_MAX      (1u << 20)
#define ATTEMPT_NS     (30 * NS_PER_S)
#define AGAIN_FIRST_NS (50 * NS_PER_MS)
#define AGAIN_LAST_NS  (2 * NS_PER_S)

enum writer_doing {
	WRITER_IDLE,
	WRITER_EVENTS,
	WRITER_DUPLICATE,
	WRITER_WRONG_TOKEN,
	WRITER_MALFORMED
};

struct stress;

struct writer {
	struct stress *stress;
	struct loop_timer *timer;
	enum writer_doing doing;
	struct buf body;
	uint64_t events; /* in it */
	uint64_t sent_ns;
	unsigned failures; /* of this request */
};

struct stress {
	const struct stress_settings *s;
	struct loop *loop;
	struct writer *writers;
	uint64_t *sent; /* of each node */
	uint64_t node;  /* whose turn it is */
	uint64_t tokens_left, malformed_left;
	double duplicates_due;
	uint64_t begin_ns;
	uint64_t taken_ns; /* when the receiver took something last */
	bool gave_up;      /* it has not for as long as the patience lasts */
	uint64_t busy;     /* writers */
	struct stress_result result;
	int err;
	struct errinfo *reterr;
};

static void writer_next(struct writer *w);
static void writer_send(struct writer *w);

/* Of node @i. */
static const char *stress_node_name(
	const struct stress_settings *s, uint64_t i, char *out, size_t size)
{
	if (s->nodes == 1)
		snprintf(out, size, "%s", s->node);
	else
		snprintf(out, size, "%s-%" PRIu64, s->node, i);
	return out;
}

/* ---- what is sent ---- */

static uint64_t node_events(const struct stress_settings *s, uint64_t node)
{
	return s->events / s->nodes + (node < s->events % s->nodes);
}

/* Event @i is one of `low` that are spread over all of them. */
static bool is_low(const struct stress_settings *s, uint64_t i)
{
	return (i + 1) * s->low / s->events != i * s->low / s->events;
}

static void put_request(struct writer *w, uint64_t node, uint64_t from, uint64_t count)
{
	const struct stress_settings *s = w->stress->s;
	struct otlp_attributes resource = {0};
	struct otlp_writer o;
	char name[256];

	otlp_put_text(&resource, "cluster_id", s->cluster);
	otlp_put_text(&resource, "node_id", stress_node_name(s, node, name, sizeof(name)));
	otlp_put_int(&resource, "rank", (int64_t)node);
	otlp_put_int(&resource, "nranks", (int64_t)s->nodes);
	buf_clear(&w->body);
	otlp_write_begin(&o, &w->body, s->endpoint->protocol == OTLP_HTTP_JSON, false, &resource,
		"ingero.stress", "1");
	otlp_write_metric(&o, s->metric, NULL, "1", OTLP_GAUGE);
	for (uint64_t k = 0; k < count; k++) {
		uint64_t i = (from + k) * s->nodes + node;
		char chain[80];
		struct otlp_attributes a = {0};
		struct otlp_point p = {.attributes = &a,
			.time_ns = (uint64_t)wall_now().ns,
			.value = {.kind = OTLP_DOUBLE,
				.d = is_low(s, i) ? STRESS_LOW_SCORE
						  : 0.9 + (double)(i % 100) / 1000}};

		otlp_put_text(&a, "event_id", FORMATTED(80, "%s-%" PRIu64, s->run, i));
		if (s->chains) {
			snprintf(chain, sizeof(chain), "%s-chain-%" PRIu64, s->run, i % s->chains);
			otlp_put_text(&a, "causal_chain_id", chain);
		}
		otlp_write_point(&o, &p);
	}
	otlp_write_metric_end(&o);
	otlp_write_end(&o);
	w->events = count;
}

/* next_events - the next request of a node that has events left; false: there is none. */
static bool next_events(struct writer *w)
{
	struct stress *t = w->stress;

	for (uint64_t tried = 0; tried < t->s->nodes; tried++) {
		uint64_t node = t->node++ % t->s->nodes;
		uint64_t left = node_events(t->s, node) - t->sent[node];
		uint64_t count = MIN(left, t->s->batch);

		if (!count)
			continue;
		put_request(w, node, t->sent[node], count);
		t->sent[node] += count;
		t->result.events += count;
		t->result.requests++;
		return true;
	}
	return false;
}

/* ---- what comes back ---- */

static void stress_fail(struct stress *t, int err, const struct errinfo *e)
{
	if (!t->err) {
		t->err = err;
		if (t->reterr)
			*t->reterr = *e;
	}
	loop_stop(t->loop);
}

static void writer_taken(struct writer *w, uint64_t rejected)
{
	struct stress *t = w->stress;

	t->taken_ns = mono_now().ns;
	if (w->doing == WRITER_EVENTS) {
		rejected = MIN(rejected, w->events);
		t->result.rejected += rejected;
		t->result.acknowledged += w->events - rejected;
		sketch_add(&t->result.took, mono_now().ns - w->sent_ns, 1);
		t->duplicates_due += t->s->duplicates;
	} else if (w->doing != WRITER_DUPLICATE) {
		t->result.faults_taken++;
	}
	if (w->doing == WRITER_EVENTS && t->duplicates_due >= 1) {
		t->duplicates_due -= 1;
		t->result.duplicates++;
		w->doing = WRITER_DUPLICATE;
		w->failures = 0;
		writer_send(w);
		return;
	}
	writer_next(w);
}

/* Why a request is refused for good: before anything was taken, that ends the run. */
static void writer_refused(struct writer *w, int err, const struct errinfo *e)
{
	struct stress *t = w->stress;

	if (w->doing == WRITER_WRONG_TOKEN || w->doing == WRITER_MALFORMED) {
		t->result.faults_refused++;
	} else if (!t->result.acknowledged) {
		stress_fail(t, err, e);
		return;
	} else if (w->doing == WRITER_EVENTS) {
		t->result.given_up += w->events;
	}
	writer_next(w);
}

static void writer_end(struct writer *w, enum backlog_outcome outcome, uint64_t rejected, int err,
	const struct errinfo *e)
{
	bool is_fault = w->doing == WRITER_WRONG_TOKEN || w->doing == WRITER_MALFORMED;
	struct stress *t = w->stress;

	t->gave_up |= mono_now().ns - t->taken_ns > t->s->patience_ns;
	if (outcome == BACKLOG_SENT)
		writer_taken(w, rejected);
	else if (outcome == BACKLOG_AGAIN && !t->gave_up && !is_fault) {
		uint64_t wait = AGAIN_FIRST_NS << MIN(w->failures, 6U);

		w->failures++;
		w->stress->result.retries++;
		loop_timer_set(w->timer, MIN(wait, AGAIN_LAST_NS));
	} else {
		writer_refused(w, err, e);
	}
}

/* A receiver that has never answered is not waited for. */
static void writer_unreached(struct writer *w, int err, const struct errinfo *e)
{
	struct stress *t = w->stress;
	struct errinfo failed = *e;

	failed.exit_code = EXIT_FAILED;
	writer_end(w, t->result.acknowledged ? BACKLOG_AGAIN : BACKLOG_REFUSED, 0, err, &failed);
}

static void refusal(struct errinfo *e, const struct stress_settings *s, bool token,
	const char *what, int status, const char *words)
{
	if (token)
		errinfo_set_exit(e, EXIT_NO_PERMISSION, -EPERM,
			"%s refused the token, or was given none: check --token-file or $INGERO_TOKEN",
			s->endpoint->shown);
	else
		errinfo_set_exit(e, EXIT_FAILED, -EPROTO, "%s answered with %s %d%s%.200s%s",
			s->endpoint->shown, what, status, *words ? ": " : "", words,
			status == 404 ? ": is it an OTLP address (port 4317 or 4318)?" : "");
}

static void on_http(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct writer *w = arg;
	const struct stress_settings *s = w->stress->s;
	struct otlp_answer answer = {0};
	struct errinfo why = {0};

	if (err < 0) {
		writer_unreached(w, err, e);
		return;
	}
	if (r->status / 100 == 2 && s->endpoint->protocol == OTLP_HTTP_JSON)
		otlp_answer_json(r->body, r->body_len, &answer);
	else if (r->status / 100 == 2)
		otlp_answer_protobuf(r->body, r->body_len, &answer);
	refusal(&why, s, r->status == 401, "status", r->status, "");
	writer_end(w, verdict_http(r->status), (uint64_t)MAX(answer.rejected, INT64_C(0)), -EPROTO,
		&why);
}

static void on_grpc(void *arg, int status, const char *message, const void *reply, size_t len,
	int err, const struct errinfo *e)
{
	struct writer *w = arg;
	struct otlp_answer answer = {0};
	struct errinfo why = {0};
	enum backlog_outcome outcome;

	if (err < 0) {
		writer_unreached(w, err, e);
		return;
	}
	outcome = status == GRPC_RESOURCE_EXHAUSTED ? BACKLOG_AGAIN : verdict_grpc(status);
	if (!status)
		otlp_answer_protobuf(reply, len, &answer);
	refusal(&why, w->stress->s, status == GRPC_UNAUTHENTICATED, "status of gRPC", status,
		message ? message : "");
	writer_end(w, outcome, (uint64_t)MAX(answer.rejected, INT64_C(0)), -EPROTO, &why);
}

/* ---- sending ---- */

static void writer_send(struct writer *w)
{
	const struct stress_settings *s = w->stress->s;
	const struct endpoint *to = s->endpoint;
	struct http_client *client = w->doing == WRITER_WRONG_TOKEN ? s->stranger : s->client;
	struct http_ask a = {.endpoint = &to->endpoint,
		.method = "POST",
		.path = to->path[OTLP_METRICS],
		.type = to->protocol == OTLP_HTTP_JSON ? "application/json"
						       : "application/x-protobuf",
		.body = w->body.data,
		.body_len = w->body.len,
		.timeout_ns = ATTEMPT_NS,
		.body_max = REPLY_MAX};
	struct errinfo e = {0};
	int r = w->body.err;

	w->sent_ns = mono_now().ns;
	if (r == 0 && to->protocol == OTLP_GRPC)
		r = grpc_ask(client, &a, on_grpc, w);
	else if (r == 0)
		r = http_ask(client, &a, on_http, w, NULL);
	if (r < 0) {
		errinfo_set(&e, r, "cannot send: %s", strerror(-r));
		stress_fail(w->stress, r, &e);
	}
}

static bool next_fault(struct writer *w)
{
	struct stress *t = w->stress;

	buf_clear(&w->body);
	if (t->tokens_left) {
		t->tokens_left--;
		w->doing = WRITER_WRONG_TOKEN;
		put_request(w, 0, 0, 1);
	} else if (t->malformed_left) {
		t->malformed_left--;
		w->doing = WRITER_MALFORMED;
		buf_puts(&w->body, "this is not OTLP");
	} else {
		return false;
	}
	return true;
}

/* How long a request must wait for the rate. */
static uint64_t rate_wait_ns(const struct stress *t)
{
	uint64_t since = mono_now().ns - t->begin_ns, due;

	if (t->s->rate <= 0)
		return 0;
	due = (uint64_t)((double)t->result.events / t->s->rate * 1e9);
	return due > since ? due - since : 0;
}

static void writer_rest(struct writer *w)
{
	struct stress *t = w->stress;

	w->doing = WRITER_IDLE;
	if (--t->busy == 0)
		loop_stop(t->loop);
}

static void writer_next(struct writer *w)
{
	uint64_t wait = rate_wait_ns(w->stress);

	w->doing = WRITER_IDLE;
	if (w->stress->gave_up) {
		writer_rest(w);
		return;
	}
	if (wait) {
		loop_timer_set(w->timer, wait);
		return;
	}
	if (next_events(w)) {
		w->doing = WRITER_EVENTS;
	} else if (!next_fault(w)) {
		writer_rest(w);
		return;
	}
	w->failures = 0;
	writer_send(w);
}

static void on_timer(void *arg)
{
	struct writer *w = arg;

	if (w->doing == WRITER_IDLE)
		writer_next(w);
	else
		writer_send(w);
}

/* ---- life ---- */

static void stress_done(struct stress *t)
{
	for (uint64_t i = 0; t->writers && i < t->s->writers; i++) {
		loop_timer_freep(&t->writers[i].timer);
		buf_done(&t->writers[i].body);
	}
	free(t->writers);
	free(t->sent);
}

static int begin(struct stress *t)
{
	const struct stress_settings *s = t->s;
	int r = 0;

	t->writers = calloc(s->writers, sizeof(*t->writers));
	t->sent = calloc(s->nodes, sizeof(*t->sent));
	if (!t->writers || !t->sent)
		return -ENOMEM;
	t->busy = s->writers;
	t->begin_ns = t->taken_ns = mono_now().ns;
	for (uint64_t i = 0; i < s->writers && r == 0; i++) {
		struct writer *w = &t->writers[i];

		w->stress = t;
		w->body = BUF_INIT(REQUEST_MAX);
		r = loop_timer_new(t->loop, on_timer, w, &w->timer);
		if (r == 0)
			loop_timer_set(w->timer, 0);
	}
	return r;
}

int stress_run(struct loop *l, const struct stress_settings *s, struct stress_result *ret,
	struct errinfo *reterr)
{
	_cleanup_(stress_done) struct stress t = {.s = s,
		.loop = l,
		.tokens_left = s->stranger ? s->wrong_tokens : 0,
		.malformed_left = s->malformed,
		.reterr = reterr};
	int r = begin(&t);

	r = r ?: loop_run(l);
	r = r ?: t.err;
	if (r < 0)
		return r;
	t.result.ns = mono_now().ns - t.begin_ns;
	*ret = t.result;
	return 0;
}
