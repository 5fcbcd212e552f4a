/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver, asked by our own client on the same loop; the sink does what a node's name says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "cluster/ingest/decoder.h"
#include "cluster/ingest/receiver.h"
#include "gzip_fixture.h"
#include "h2_fixture.h"
#include "net/client/client.h"
#include "otlp/otlp_metric.h"

#define TOKEN   "0123456789abcdef-receiver"
#define METRICS "/v1/metrics"
#define LOGS    "/v1/logs"
#define GRPC    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"

struct rig {
	struct loop *loop;
	struct receiver *receiver;
	struct http_client *client;
	struct token_set *tokens;
	/* of the sink */
	size_t healths, stragglers, batches, reports, forwards;
	int admits;
	bool is_scoped;
	struct push_health health;
	struct receiver_request forwarded; /* its data is gone */
	uint64_t credential;
	int answer; /* to calls and reports */
	/* of keeping */
	struct loop_timer *timer;
	keeper_done *done;
	void *done_arg;
	size_t keeps;
	struct receiver_request kept; /* its data is gone */
	struct keeper_result result;
	bool at_once, held; /* held: the test says when */
	/* of the last reply */
	int status, grpc_status;
	char head[4096], body[4096];
	size_t body_len;
	bool drained;
	/* of a large request beside a small one */
	const struct buf *small; /* asked when the first node of the large one is told */
	size_t healths_then;     /* when the small one was answered */
	int small_status;
};

static void ask_small(struct rig *r);

/* ---- the sink ---- */

static enum nodes_refusal take_health(
	void *arg, const struct push_health *h, uint64_t credential, struct threshold *ret)
{
	static const struct {
		const char *node;
		enum nodes_refusal refusal;
	} rows[] = {
		{"nan", NODES_NOT_FINITE},
		{"full", NODES_TOO_MANY_NODES},
		{"many", NODES_TOKEN_NODES},
		{"twice", NODES_TWO_AGENTS},
	};
	struct rig *r = arg;

	*ret = (struct threshold){.value = 0.875, .quorum_met = true};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(h->who.node, rows[i].node) == 0)
			return rows[i].refusal;
	if (r->small && r->healths == 0)
		ask_small(r);
	r->healths++;
	r->health = *h;
	r->credential = credential;
	return NODES_NONE;
}

static int take_straggler(void *arg, const struct push_who *who, const struct push_straggler *s)
{
	((struct rig *)arg)->stragglers++;
	return 0;
}

static int take_calls(void *arg, const struct push_calls *c)
{
	struct rig *r = arg;

	r->batches += r->answer == 0;
	return r->answer;
}

static int take_report(void *arg, const struct push_report *report)
{
	struct rig *r = arg;

	r->reports += r->answer == 0;
	return r->answer;
}

static bool get_threshold(void *arg, const char *cluster, struct threshold *ret)
{
	*ret = (struct threshold){.value = 0.5};
	return strcmp(cluster, "known") == 0;
}

static size_t get_late(void *arg, const struct push_who *who, uint32_t *pids, size_t max)
{
	assert_true(max >= 2);
	pids[0] = 17;
	pids[1] = 18;
	return strcmp(who->node, "late") == 0 ? 2 : 0;
}

static int admit(void *arg, uint64_t credential, char *why, size_t size)
{
	snprintf(why, size, "too many requests");
	return ((struct rig *)arg)->admits;
}

static bool may_send(void *arg, uint64_t credential, const char *cluster)
{
	return !((struct rig *)arg)->is_scoped || cluster[0];
}

static void forward(void *arg, const struct receiver_request *q)
{
	struct rig *r = arg;

	r->forwards++;
	r->forwarded = *q;
}

static void kept(void *arg)
{
	struct rig *r = arg;

	r->done(r->done_arg, &r->result);
}

static void keep(void *arg, const struct receiver_request *q, keeper_done *done, void *done_arg)
{
	struct rig *r = arg;

	r->keeps++;
	r->kept = *q;
	r->done = done;
	r->done_arg = done_arg;
	if (r->held)
		loop_stop(r->loop);
	else if (r->at_once)
		kept(r);
	else
		loop_timer_set(r->timer, NS_PER_MS);
}

/* ---- life ---- */

static int start_with(void **state, bool fleet, bool keeps)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct receiver_settings s = {
		.grpc_address = "127.0.0.1:0",
		.http_address = "127.0.0.1:0",
		.sink = {.arg = r,
			.health = take_health,
			.straggler = take_straggler,
			.calls = take_calls,
			.report = take_report,
			.threshold = get_threshold,
			.late = get_late,
			.forward = forward},
	};
	struct http_client_settings client = {.bearer = TOKEN};
	struct errinfo e = {0};

	assert_non_null(r);
	assert_int_equal(loop_new(&r->loop), 0);
	assert_int_equal(token_set_of(TOKEN, &r->tokens, &e), 0);
	s.server.tokens = r->tokens;
	assert_int_equal(loop_timer_new(r->loop, kept, r, &r->timer), 0);
	if (keeps) {
		s.sink.keep = keep;
		s.sink.admit = admit;
		s.sink.may_send = may_send;
	}
	if (!fleet)
		s.sink = (struct receiver_sink){.arg = r, .keep = keep};
	if (receiver_new(r->loop, &s, &r->receiver, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(http_client_new(r->loop, &client, &r->client, &e), 0);
	*state = r;
	return 0;
}

static int start(void **state)
{
	return start_with(state, true, false);
}

static int start_all(void **state)
{
	return start_with(state, true, true);
}

static int start_echo(void **state)
{
	return start_with(state, false, true);
}

static int stop(void **state)
{
	struct rig *r = *state;

	http_client_free(r->client);
	if (r->receiver)
		receiver_free(r->receiver);
	loop_timer_free(r->timer);
	token_set_free(r->tokens);
	loop_free(r->loop);
	free(r);
	return 0;
}

/* ---- asking ---- */

static void keep_body(struct rig *r, const void *body, size_t len)
{
	r->body_len = len;
	snprintf(r->body, sizeof(r->body), "%.*s", (int)len, (const char *)body);
}

static void on_reply(void *arg, const struct http_response *p, int err, const struct errinfo *e)
{
	struct rig *r = arg;
	size_t at = 0;

	loop_stop(r->loop);
	r->status = err < 0 ? err : p->status;
	if (err < 0)
		return;
	for (size_t i = 0; i < p->head.count; i++)
		at += (size_t)snprintf(r->head + at, sizeof(r->head) - at, "%s: %s\n",
			p->head.field[i].name, p->head.field[i].value);
	keep_body(r, p->body, p->body_len);
}

static void on_grpc(void *arg, int status, const char *message, const void *reply, size_t len,
	int err, const struct errinfo *e)
{
	struct rig *r = arg;

	loop_stop(r->loop);
	r->grpc_status = err < 0 ? err : status;
	snprintf(r->head, sizeof(r->head), "%s", message ? message : "");
	keep_body(r, reply, len);
}

struct question {
	const char *path, *type, *encoding, *authorization;
	const struct buf *body;
};

static struct http_ask ask_of(const struct question *q, struct http_endpoint *to,
	struct http_field fields[2], const char *address)
{
	struct http_ask a = {.endpoint = to,
		.method = "POST",
		.path = q->path ? q->path : METRICS,
		.type = q->type ? q->type : "application/x-protobuf",
		.body = q->body->data,
		.body_len = q->body->len,
		.fields = fields,
		.timeout_ns = 20 * NS_PER_S,
		.body_max = 1 << 20};

	assert_int_equal(http_endpoint_parse(address, false, 0, to, NULL), 0);
	if (q->encoding)
		fields[a.field_count++] = (struct http_field){"content-encoding", q->encoding};
	if (q->authorization)
		fields[a.field_count++] = (struct http_field){"authorization", q->authorization};
	return a;
}

static int post(struct rig *r, const struct question *q)
{
	struct http_field fields[2];
	struct http_endpoint to;
	struct http_ask a = ask_of(q, &to, fields, receiver_http_address(r->receiver));

	assert_int_equal(http_ask(r->client, &a, on_reply, r, NULL), 0);
	loop_run(r->loop);
	return r->status;
}

static int call(struct rig *r, const struct question *q)
{
	struct http_field fields[2];
	struct http_endpoint to;
	struct http_ask a = ask_of(q, &to, fields, receiver_grpc_address(r->receiver));

	assert_int_equal(grpc_ask(r->client, &a, on_grpc, r), 0);
	loop_run(r->loop);
	return r->grpc_status;
}

static const struct push_health *health_of(const char *node)
{
	static struct push_health h;

	h = (struct push_health){.who = {.rank = 3, .world_size = 8},
		.sent_ns = 1700000000 * (int64_t)NS_PER_S,
		.state = PUSH_ACTIVE,
		.score = 0.9,
		.throughput = 0.9,
		.compute = 0.9,
		.memory = 0.9,
		.cpu = 0.9};
	snprintf(h.who.cluster, sizeof(h.who.cluster), "c1");
	snprintf(h.who.node, sizeof(h.who.node), "%s", node);
	for (size_t i = 0; i < PUSH_SIGNAL_COUNT; i++)
		h.signals[i] = -1;
	return &h;
}

/* put_health - of several nodes: requests of protobuf put behind each other are one. */
static void put_health(struct buf *b, bool json, const char *node)
{
	struct push_metrics m = {.health = health_of(node), .detection_mode = "fleet"};

	if (json)
		push_metrics_write(b, &m, true);
	else
		push_metrics_write(b, &m, false);
}

#define assert_has(text, part)                                                                     \
	do {                                                                                       \
		if (!strstr(text, part))                                                           \
			fail_msg("no %s in:\n%s", part, text);                                     \
	} while (0)

static struct receiver_stats stats(struct rig *r)
{
	return receiver_stats(r->receiver);
}

/* ---- tests ---- */

static void test_both_encodings_plain_and_gzip(void **state)
{
	struct rig *r = *state;

	for (int json = 0; json < 2; json++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 20), gz = BUF_INIT(1 << 20);
		const char *type =
			json ? "application/json; charset=utf-8" : "application/x-protobuf";

		put_health(&b, json, "n1");
		put_gzip(&gz, b.data, b.len, 1);
		assert_int_equal(post(r, &(struct question){.type = type, .body = &b}), 200);
		assert_has(r->head, json ? "content-type: application/json\n"
					 : "content-type: application/x-protobuf\n");
		assert_has(r->head, "x-ingero-threshold: 0.875\n");
		assert_has(r->head, "x-ingero-quorum-met: true\n");
		assert_string_equal(r->body, json ? "{}\n" : "");
		assert_int_equal(
			post(r, &(struct question){.type = type, .encoding = "gzip", .body = &gz}),
			200);
		assert_int_equal(r->forwarded.len, b.len);
		assert_int_equal(r->forwarded.json, json);
		assert_int_equal(r->health.who.rank, 3);
		assert_int_equal(r->credential, token_number(TOKEN, strlen(TOKEN)));
	}
	assert_int_equal(r->healths, 4);
	assert_int_equal(r->forwards, 4);
	assert_int_equal(stats(r).requests[OTLP_METRICS], 4);
	assert_true(stats(r).taken > 4);
	assert_int_equal(stats(r).rejected, 0);
}

static void test_grpc(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rig *r = *state;

	put_health(&b, false, "n1");
	assert_int_equal(call(r, &(struct question){.path = GRPC, .body = &b}), 0);
	assert_int_equal(r->healths, 1);
	assert_int_equal(r->body_len, 0);
	put_health(&b, false, "nan");
	assert_int_equal(call(r, &(struct question){.path = GRPC, .body = &b}), 0);
	assert_has(r->body + 2, "node nan: not_finite");
	buf_clear(&b);
	put_health(&b, false, "full");
	assert_int_equal(call(r, &(struct question){.path = GRPC, .body = &b}), 8);
	assert_has(r->head, "node full: too_many_nodes");
}

static void test_partial_success(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rig *r = *state;
	struct otlp_answer a;

	put_health(&b, false, "n1");
	put_health(&b, false, "nan");
	put_health(&b, false, "full");
	assert_int_equal(post(r, &(struct question){.body = &b}), 200);
	assert_int_equal(otlp_answer_protobuf(r->body, r->body_len, &a), 0);
	assert_true(a.rejected > 0);
	assert_int_equal(a.rejected, stats(r).rejected);
	assert_string_equal(a.message, "node nan: not_finite");
	assert_int_equal(r->healths, 1);
	assert_int_equal(r->forwards, 1);
}

static void test_whole_refusals(void **state)
{
	static const struct {
		const char *node;
		int status;
		bool again;
	} rows[] = {{"nan", 400, false}, {"full", 429, true}, {"many", 403, false},
		{"twice", 409, false}};
	struct rig *r = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

		put_health(&b, true, rows[i].node);
		assert_int_equal(
			post(r, &(struct question){.type = "application/json", .body = &b}),
			rows[i].status);
		assert_has(r->body, "\"message\":\"node ");
		assert_has(r->head, "x-ingero-threshold: 0.875\n");
		assert_int_equal(strstr(r->head, "retry-after: ") != NULL, rows[i].again);
	}
	assert_int_equal(r->healths, 0);
	assert_int_equal(r->forwards, 0);
	assert_int_equal(stats(r).refused[RECEIVER_NODE], ARRAY_SIZE(rows));
}

static void test_threshold_of_a_named_cluster(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(64);
	struct rig *r = *state;

	buf_puts(&b, "nonsense");
	assert_int_equal(
		post(r, &(struct question){.path = METRICS "?cluster_id=known", .body = &b}), 400);
	assert_has(r->head, "x-ingero-threshold: 0.5\n");
	assert_has(r->head, "x-ingero-quorum-met: false\n");
	assert_int_equal(
		post(r, &(struct question){.path = METRICS "?cluster_id=other", .body = &b}), 400);
	assert_null(strstr(r->head, "x-ingero"));
	/* Before the handler: known to those who have been let in, and to nobody else. */
	assert_int_equal(post(r, &(struct question){.path = METRICS "?cluster_id=known",
					 .encoding = "br",
					 .body = &b}),
		415);
	assert_has(r->head, "x-ingero-threshold: 0.5\n");
	assert_int_equal(post(r, &(struct question){.path = METRICS "?cluster_id=known",
					 .authorization = "Bearer wrong-wrong-wrong",
					 .body = &b}),
		401);
	assert_null(strstr(r->head, "x-ingero"));
	assert_int_equal(stats(r).refused[RECEIVER_MALFORMED], 2);
	assert_int_equal(stats(r).refused[RECEIVER_UNSUPPORTED], 1);
	assert_int_equal(stats(r).refused[RECEIVER_UNAUTHORIZED], 1);
}

static void test_logs_and_what_the_sink_says(void **state)
{
	static const struct {
		int answer, status;
		enum receiver_reason reason;
	} rows[] = {
		{-ENOMEM, 503, RECEIVER_BUSY},
		{-EAGAIN, 503, RECEIVER_BUSY},
		{-ENOSPC, 429, RECEIVER_NO_ROOM},
		{-ENOBUFS, 429, RECEIVER_NO_ROOM},
		{-EINVAL, 400, RECEIVER_MALFORMED},
	};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20), of_late = BUF_INIT(1 << 20);
	struct push_call call = {.comm = 1, .seq = 1, .nranks = 2, .peer = -1};
	struct push_calls calls = {
		.who = health_of("n1")->who, .batch = 1, .items = &call, .count = 1};
	struct push_report report = {.who = health_of("n1")->who, .confidence = 0.5};
	struct rig *r = *state;

	push_calls_protobuf(&b, &calls);
	push_report_write(&b, &report, false);
	assert_int_equal(post(r, &(struct question){.path = LOGS, .body = &b}), 200);
	assert_int_equal(r->batches, 1);
	assert_int_equal(r->reports, 1);
	assert_int_equal(r->forwarded.signal, OTLP_LOGS);
	assert_null(strstr(r->head, "x-ingero-late"));
	strcpy(calls.who.node, "late");
	push_calls_protobuf(&of_late, &calls);
	assert_int_equal(post(r, &(struct question){.path = LOGS, .body = &of_late}), 200);
	assert_has(r->head, "x-ingero-late: 17,18\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t before = stats(r).refused[rows[i].reason];

		r->answer = rows[i].answer;
		assert_int_equal(
			post(r, &(struct question){.path = LOGS, .body = &b}), rows[i].status);
		assert_int_equal(stats(r).refused[rows[i].reason], before + 1);
	}
	assert_int_equal(r->forwards, 2);
}

static void test_traces_are_forwarded(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(64);
	struct rig *r = *state;

	buf_puts(&b, "{\"resourceSpans\":[]}");
	assert_int_equal(post(r, &(struct question){.path = "/v1/traces",
					 .type = "application/json",
					 .body = &b}),
		200);
	assert_string_equal(r->body, "{}\n");
	assert_int_equal(r->forwarded.signal, OTLP_TRACES);
	assert_int_equal(r->forwarded.len, b.len);
	assert_int_equal(stats(r).requests[OTLP_TRACES], 1);
}

static void test_what_is_not_otlp(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(64), large = BUF_INIT(RECEIVER_BODY_MAX + 1);
	struct rig *r = *state;

	buf_puts(&b, "{}");
	assert_int_equal(post(r, &(struct question){.type = "text/plain", .body = &b}), 415);
	assert_int_equal(post(r, &(struct question){.path = "/v1/profiles", .body = &b}), 404);
	assert_int_equal(post(r, &(struct question){.type = "application/json", .body = &b}), 200);
	while (large.len <= RECEIVER_BODY_MAX)
		buf_append(&large, "0123456789abcdef", MIN(RECEIVER_BODY_MAX + 1 - large.len, 16u));
	assert_int_equal(post(r, &(struct question){.body = &large}), 413);
	assert_int_equal(call(r, &(struct question){.path = GRPC, .body = &large}), 8);
	assert_int_equal(stats(r).refused[RECEIVER_UNSUPPORTED], 1);
	assert_int_equal(stats(r).refused[RECEIVER_NOT_FOUND], 1);
	assert_int_equal(stats(r).refused[RECEIVER_TOO_LARGE], 2);
}

static void test_a_bomb_has_no_effect_on_others(void **state)
{
	_cleanup_buf_ struct buf bomb = BUF_INIT(1 << 20), b = BUF_INIT(1 << 20);
	struct rig *r = *state;

	put_bomb(&bomb, (size_t)336 << 20);
	put_health(&b, false, "n1");
	assert_int_equal(post(r, &(struct question){.encoding = "gzip", .body = &bomb}), 413);
	assert_int_equal(post(r, &(struct question){.body = &b}), 200);
	assert_int_equal(stats(r).refused[RECEIVER_TOO_LARGE], 1);
	assert_int_equal(stats(r).http.bombs, 1);
	assert_int_equal(stats(r).http.bodies, 0);
}

/* 10,001 attributes on one point. */
static void test_too_many_attributes(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rig *r = *state;

	buf_puts(&b, "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\","
		     "\"gauge\":{\"dataPoints\":[{\"asDouble\":1,\"attributes\":[");
	for (int i = 0; i < 10001; i++)
		buf_printf(&b, "%s{\"key\":\"k%d\",\"value\":{\"stringValue\":\"v\"}}",
			i ? "," : "", i);
	buf_puts(&b, "]}]}}]}]}]}");
	assert_int_equal(post(r, &(struct question){.type = "application/json", .body = &b}), 413);
	assert_int_equal(stats(r).refused[RECEIVER_TOO_COMPLEX], 1);
	assert_int_equal(r->forwards, 0);
}

static void on_drained(void *arg)
{
	struct rig *r = arg;

	r->drained = true;
	loop_stop(r->loop);
}

static void begin_drain(void *arg)
{
	struct rig *r = arg;

	receiver_drain(r->receiver, on_drained, r);
}

static void test_drain(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rig *r = *state;

	put_health(&b, false, "n1");
	assert_int_equal(post(r, &(struct question){.body = &b}), 200);
	assert_int_equal(loop_call(r->loop, begin_drain, r), 0);
	while (!r->drained)
		loop_run(r->loop);
	assert_int_equal(post(r, &(struct question){.body = &b}), -ECONNREFUSED);
}

static void *run_loop(void *arg)
{
	loop_run(arg);
	return NULL;
}

/* A call whose message is still coming when the end begins: its sender is told to come again. */
static void test_drain_during_a_call(void **state)
{
	_cleanup_buf_ struct buf head = BUF_INIT(4096);
	struct rig *r = *state;
	struct bench b = {0};
	pthread_t thread;
	struct peer p;

	assert_int_equal(address_parse(receiver_grpc_address(r->receiver), &b.address, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, run_loop, r->loop), 0);
	put_request(&head, "POST", GRPC);
	put_field(&head, "content-type", "application/grpc");
	put_field(&head, "authorization", "Bearer " TOKEN);
	put_field(&head, "expect", "100-continue");
	meet(&b, &p);
	send_frame(&p, NGHTTP2_HEADERS, END_HEADERS, 1, head.data, head.len);
	while (hear_frame(&p)->type != NGHTTP2_HEADERS)
		; /* the head has been read */
	assert_int_equal(loop_call(r->loop, begin_drain, r), 0);
	while (hear_frame(&p)->type != NGHTTP2_GOAWAY)
		;
	send_frame(&p, NGHTTP2_DATA, END_STREAM, 1, "\0\0\0\0", 5);
	assert_int_equal(h2_status(&p, 1), 200);
	assert_has(p.fields, "grpc-status: 14\n");
	assert_has(p.fields, "grpc-status-details-bin: ");
	part(&p);
	pthread_join(thread, NULL);
	assert_true(r->drained);
	assert_int_equal(stats(r).refused[RECEIVER_BUSY], 1);
}

/* ---- keeping ---- */

static void test_answered_when_kept(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rig *r = *state;

	put_health(&b, false, "n1");
	for (int i = 0; i < 2; i++) {
		r->at_once = i;
		assert_int_equal(post(r, &(struct question){.body = &b}), 200);
		assert_int_equal(call(r, &(struct question){.path = GRPC, .body = &b}), 0);
	}
	assert_int_equal(r->keeps, 4);
	assert_int_equal(r->kept.len, b.len);
	assert_int_equal(r->kept.signal, OTLP_METRICS);
	assert_int_equal(r->kept.credential, token_number(TOKEN, strlen(TOKEN)));
	assert_int_equal(stats(r).requests[OTLP_METRICS], 4);
	r->result = (struct keeper_result){.taken = 3, .rejected = 2, .why = "two are not numbers"};
	assert_int_equal(call(r, &(struct question){.path = GRPC, .body = &b}), 0);
	assert_has(r->body + 2, "two are not numbers");
}

static void test_statuses_of_what_is_not_kept(void **state)
{
	static const struct {
		int err, http, grpc;
		enum receiver_reason reason;
		bool again;
	} rows[] = {
		{-EBADMSG, 400, 3, RECEIVER_MALFORMED, false},
		{-E2BIG, 413, 8, RECEIVER_TOO_COMPLEX, false},
		{-EACCES, 403, 7, RECEIVER_TENANT, false},
		{-EAGAIN, 429, 8, RECEIVER_NO_ROOM, true},
		{-ENOBUFS, 429, 8, RECEIVER_NO_ROOM, true},
		{-ENOSPC, 503, 14, RECEIVER_STORE, true},
		{-EIO, 503, 14, RECEIVER_STORE, true},
		{-ECANCELED, 503, 14, RECEIVER_STORE, true},
	};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rig *r = *state;

	put_health(&b, false, "n1");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t before = stats(r).refused[rows[i].reason];

		r->result = (struct keeper_result){.err = rows[i].err, .why = "because"};
		assert_int_equal(post(r, &(struct question){.body = &b}), rows[i].http);
		assert_int_equal(strstr(r->head, "retry-after: ") != NULL, rows[i].again);
		assert_int_equal(
			call(r, &(struct question){.path = GRPC, .body = &b}), rows[i].grpc);
		assert_has(r->head, "because");
		assert_int_equal(stats(r).refused[rows[i].reason], before + 2);
	}
	assert_int_equal(r->forwards, 0);
	assert_int_equal(stats(r).requests[OTLP_METRICS], 0);
}

static void test_fleet_beside_keeping(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20), bad = BUF_INIT(1 << 20);
	struct rig *r = *state;

	put_health(&b, false, "n1");
	assert_int_equal(post(r, &(struct question){.body = &b}), 200);
	assert_has(r->head, "x-ingero-threshold: 0.875\n");
	assert_int_equal(r->healths, 1);
	assert_int_equal(r->keeps, 1);
	assert_int_equal(r->forwards, 1);
	/* what cannot be kept reaches the fleet all the same, and nobody behind */
	r->result.err = -ENOSPC;
	assert_int_equal(post(r, &(struct question){.body = &b}), 503);
	assert_int_equal(r->healths, 2);
	assert_int_equal(r->forwards, 1);
	/* what the fleet has no room for is kept, what makes no sense is not */
	r->result.err = 0;
	put_health(&bad, false, "full");
	assert_int_equal(post(r, &(struct question){.body = &bad}), 200);
	assert_int_equal(r->keeps, 3);
	bad.len = 3;
	assert_int_equal(post(r, &(struct question){.body = &bad}), 400);
	assert_int_equal(r->keeps, 3);
}

/* Its requests are more than its token may send: the fleet hears nothing of them. */
static void test_who_is_let_in(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rig *r = *state;

	put_health(&b, false, "n1");
	r->admits = -EAGAIN;
	assert_int_equal(post(r, &(struct question){.body = &b}), 429);
	assert_has(r->body, "too many");
	r->admits = -EACCES;
	assert_int_equal(post(r, &(struct question){.body = &b}), 403);
	assert_int_equal(r->healths + r->keeps + r->forwards, 0);
	r->admits = 0;
	assert_int_equal(post(r, &(struct question){.body = &b}), 200);
	assert_int_equal(r->healths, 1);
}

/* A token for one cluster sends points of another one, too: as a whole that is not handed on. */
static void test_what_is_refused_is_not_forwarded(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rig *r = *state;

	put_health(&b, false, "n1");
	r->is_scoped = true;
	assert_int_equal(post(r, &(struct question){.body = &b}), 200);
	assert_int_equal(r->forwards, 1);
	r->result.rejected = 1;
	assert_int_equal(post(r, &(struct question){.body = &b}), 200);
	assert_int_equal(r->forwards, 1);
	assert_int_equal(stats(r).withheld, 1);
	r->is_scoped =
		false; /* of whoever may write all, what makes no sense is in nobody's name */
	assert_int_equal(post(r, &(struct question){.body = &b}), 200);
	assert_int_equal(r->forwards, 2);
}

static void test_receiver_goes_before_the_result(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rig *r = *state;
	struct http_field fields[2];
	struct http_endpoint to;
	const struct question q = {.body = &b};
	struct http_ask a;

	put_health(&b, false, "n1");
	a = ask_of(&q, &to, fields, receiver_http_address(r->receiver));
	assert_int_equal(http_ask(r->client, &a, on_reply, r, NULL), 0);
	r->held = true;
	loop_run(r->loop);
	assert_int_equal(r->keeps, 1);
	receiver_free(r->receiver);
	r->receiver = NULL;
	r->done(r->done_arg, &r->result);
	loop_run(r->loop);
	assert_true(r->status < 0); /* the client has lost its connection */
}

#define LARGE_NODES 2000

static void on_small(void *arg, const struct http_response *p, int err, const struct errinfo *e)
{
	struct rig *r = arg;

	r->small_status = err < 0 ? err : p->status;
	r->healths_then = r->healths;
}

static void ask_small(struct rig *r)
{
	const struct question q = {.body = r->small};
	struct http_field fields[2];
	struct http_endpoint to;
	struct http_ask a = ask_of(&q, &to, fields, receiver_http_address(r->receiver));

	assert_int_equal(http_ask(r->client, &a, on_small, r, NULL), 0);
}

/* Requests one after the other are one with all that they hold. */
static void put_large(struct buf *b)
{
	for (int i = 0; i < LARGE_NODES; i++) {
		char node[32];

		snprintf(node, sizeof(node), i % 4 == 3 ? "nan" : "n%d", i);
		put_health(b, false, node);
	}
	assert_int_equal(b->err, 0);
	assert_true(b->len > DECODER_LEAST);
}

/* What a large request holds is handed over a node a turn: the small one that comes meanwhile does not wait. */
static void test_a_small_one_is_answered_while_a_large_one_is_decoded(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20), small = BUF_INIT(1 << 20);
	struct rig *r = *state;

	put_large(&large);
	put_health(&small, false, "other");
	r->small = &small;
	assert_int_equal(post(r, &(struct question){.body = &large}), 200);
	assert_int_equal(r->small_status, 200);
	assert_in_range(r->healths_then, 1, LARGE_NODES / 2);
	/* all of it came, and was counted as a request that is decoded at once is */
	assert_int_equal(r->healths, LARGE_NODES - LARGE_NODES / 4 + 1);
	assert_non_null(strstr(r->body, "node nan: "));
	assert_int_equal(receiver_stats(r->receiver).requests[OTLP_METRICS], 2);
	assert_true(receiver_stats(r->receiver).rejected > 0);
}

static void test_a_large_one_that_is_no_request(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20);
	struct rig *r = *state;

	put_large(&large);
	buf_append(&large, "\x0a\xff\xff\xff\x7f", 5); /* longer than what follows */
	assert_int_equal(post(r, &(struct question){.body = &large}), 400);
	assert_int_equal(receiver_stats(r->receiver).refused[RECEIVER_MALFORMED], 1);
}

static void stop_loop(void *arg)
{
	loop_stop(((struct rig *)arg)->loop);
}

/* The receiver goes while its thread waits for the loop. */
static void test_receiver_goes_while_it_decodes(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20);
	struct rig *r = *state;
	const struct question q = {.body = &large};
	struct http_field fields[2];
	struct http_endpoint to;
	struct http_ask a;
	size_t then;

	put_large(&large);
	a = ask_of(&q, &to, fields, receiver_http_address(r->receiver));
	assert_int_equal(http_ask(r->client, &a, on_reply, r, NULL), 0);
	while (!r->healths) {
		assert_int_equal(loop_call(r->loop, stop_loop, r), 0);
		loop_run(r->loop);
	}
	assert_true(r->healths < LARGE_NODES / 2);
	then = r->healths;
	receiver_free(r->receiver);
	r->receiver = NULL;
	r->status = 0;
	while (!r->status)
		loop_run(r->loop);
	assert_true(r->status < 0);
	assert_int_equal(r->healths, then); /* nobody is told after it has gone */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_both_encodings_plain_and_gzip, start, stop),
		cmocka_unit_test_setup_teardown(test_grpc, start, stop),
		cmocka_unit_test_setup_teardown(test_partial_success, start, stop),
		cmocka_unit_test_setup_teardown(test_whole_refusals, start, stop),
		cmocka_unit_test_setup_teardown(test_threshold_of_a_named_cluster, start, stop),
		cmocka_unit_test_setup_teardown(test_logs_and_what_the_sink_says, start, stop),
		cmocka_unit_test_setup_teardown(test_traces_are_forwarded, start, stop),
		cmocka_unit_test_setup_teardown(test_what_is_not_otlp, start, stop),
		cmocka_unit_test_setup_teardown(test_a_bomb_has_no_effect_on_others, start, stop),
		cmocka_unit_test_setup_teardown(test_too_many_attributes, start, stop),
		cmocka_unit_test_setup_teardown(test_drain, start, stop),
		cmocka_unit_test_setup_teardown(test_drain_during_a_call, start, stop),
		cmocka_unit_test_setup_teardown(test_answered_when_kept, start_echo, stop),
		cmocka_unit_test_setup_teardown(
			test_statuses_of_what_is_not_kept, start_echo, stop),
		cmocka_unit_test_setup_teardown(test_fleet_beside_keeping, start_all, stop),
		cmocka_unit_test_setup_teardown(test_who_is_let_in, start_all, stop),
		cmocka_unit_test_setup_teardown(
			test_what_is_refused_is_not_forwarded, start_all, stop),
		cmocka_unit_test_setup_teardown(
			test_receiver_goes_before_the_result, start_echo, stop),
		cmocka_unit_test_setup_teardown(
			test_a_small_one_is_answered_while_a_large_one_is_decoded, start, stop),
		cmocka_unit_test_setup_teardown(test_a_large_one_that_is_no_request, start, stop),
		cmocka_unit_test_setup_teardown(test_receiver_goes_while_it_decodes, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
