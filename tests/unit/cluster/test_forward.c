/* SPDX-License-Identifier: Apache-2.0 */
/* test_forward.c - requests go on to receivers of our own: paths, types, joining, a receiver that is
 * away while they wait in memory or on disk, and what is lost is counted. */
#include "store_fixture.h"

#include "cluster/notify/forward.h"
#include "net/server/server.h"

struct scene {
	struct loop *loop;
	struct http_server *server;
	struct forward *forward;
	struct endpoint endpoint;
	struct forward_target target;
	int status, requests, stop_at;
	struct buf seen; /* "path type body;" of each that was taken */
};

static void on_request(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct scene *s = arg;

	s->requests++;
	if (s->status == 200)
		buf_printf(&s->seen, "%s %s %.*s;", q->path + strlen("/v1/"),
			strstr(http_head_get(&q->head, "content-type"), "json") ? "json" : "pb",
			(int)q->body_len, q->body);
	http_reply(x, s->status, NULL, "{}", 2);
	if (s->requests == s->stop_at)
		loop_stop(s->loop);
}

static void scene_listen(struct scene *s)
{
	static const struct http_route routes[] = {
		{.method = "POST", .path = "/v1/", .handler = on_request}, {0}};
	struct http_server_settings server = {.address = "127.0.0.1:0", .routes = routes, .arg = s};
	struct endpoint_options o = {.insecure = true};
	struct errinfo e = {0};

	s->status = 200;
	s->seen = BUF_INIT(1 << 20);
	assert_int_equal(loop_new(&s->loop), 0);
	if (http_server_new(s->loop, &server, &s->server, &e) < 0)
		fail_msg("%s", e.text);
	o.text = http_server_address(s->server);
	assert_int_equal(endpoint_parse(&o, &s->endpoint, &e), 0);
	s->target.endpoint = &s->endpoint;
}

static void scene_open(struct scene *s)
{
	struct errinfo e = {0};

	if (forward_new(s->loop, &s->target, 1, &s->forward, &e) < 0)
		fail_msg("%s", e.text);
}

static void scene_close(struct scene *s)
{
	forward_free(s->forward);
	http_server_free(s->server);
	loop_free(s->loop);
	buf_done(&s->seen);
}

static void stop(void *arg)
{
	loop_stop(arg);
}

/* Until everything is delivered, or an attempt has failed. */
static void finish(struct scene *s)
{
	forward_finish(s->forward, stop, s->loop);
	assert_int_equal(loop_run(s->loop), 0);
}

static void give(
	struct scene *s, enum otlp_signal signal, enum forward_encoding e, const char *text)
{
	forward_give(s->forward, signal, e, text, strlen(text));
}

static struct forward_stats stats_of(const struct scene *s)
{
	struct forward_stats stats;

	assert_true(forward_stats(s->forward, 0, &stats));
	assert_false(forward_stats(s->forward, 1, &stats));
	return stats;
}

static void give_some(struct scene *s)
{
	give(s, OTLP_METRICS, FORWARD_PROTOBUF, "a");
	give(s, OTLP_METRICS, FORWARD_PROTOBUF, "b");
	give(s, OTLP_METRICS, FORWARD_PROTOBUF, "c");
	give(s, OTLP_LOGS, FORWARD_PROTOBUF, "d");
	give(s, OTLP_LOGS, FORWARD_JSON, "e");
	give(s, OTLP_LOGS, FORWARD_JSON, "f");
	give(s, OTLP_TRACES, FORWARD_PROTOBUF, "g");
}

/* The first leaves alone, what comes meanwhile is joined where that is possible. */
#define SOME "metrics pb a;metrics pb bc;logs pb d;logs json e;logs json f;traces pb g;"

static void test_in_order_and_joined(void **state)
{
	struct scene s = {0};

	scene_listen(&s);
	scene_open(&s);
	give_some(&s);
	assert_int_equal(stats_of(&s).waiting, 7);
	finish(&s);
	assert_string_equal(buf_str(&s.seen), SOME);
	assert_int_equal(stats_of(&s).requests, 7);
	assert_int_equal(stats_of(&s).delivered, 7);
	assert_int_equal(stats_of(&s).waiting, 0);
	scene_close(&s);
}

static void test_spool_outlives_the_program(void **state)
{
	struct scratch *scratch = *state;
	struct scene s = {0};
	char folder[96];

	snprintf(folder, sizeof(folder), "%s/spool", scratch->folder);
	scene_listen(&s);
	s.target.spool = folder;
	s.target.spool_bytes = 1 << 20;
	scene_open(&s);
	s.status = 503;
	give_some(&s);
	finish(&s);
	assert_string_equal(buf_str(&s.seen), "");
	assert_int_equal(stats_of(&s).waiting, 7);
	assert_true(stats_of(&s).retries >= 1);
	forward_free(s.forward);
	s.status = 200;
	scene_open(&s); /* what was left over is sent, before what comes now */
	give(&s, OTLP_TRACES, FORWARD_PROTOBUF, "h");
	finish(&s);
	assert_string_equal(buf_str(&s.seen),
		"metrics pb a;metrics pb bc;logs pb d;logs json e;logs json f;traces pb gh;");
	assert_int_equal(stats_of(&s).delivered, 8);
	assert_int_equal(stats_of(&s).waiting, 0);
	forward_free(s.forward);
	scene_open(&s);
	finish(&s);
	assert_int_equal(stats_of(&s).delivered, 0); /* nothing comes twice */
	scene_close(&s);
	scratch_files(folder, true);
	rmdir(folder);
}

static void test_losses_are_counted(void **state)
{
	struct scene s = {0};
	char *big = calloc(1, 17 << 20);

	scene_listen(&s);
	scene_open(&s);
	s.status = 400;
	give(&s, OTLP_METRICS, FORWARD_PROTOBUF, "a");
	finish(&s);
	assert_int_equal(stats_of(&s).lost[FORWARD_LOST_REFUSED], 1);
	forward_give(s.forward, OTLP_METRICS, FORWARD_PROTOBUF, big, 17 << 20);
	assert_int_equal(stats_of(&s).lost[FORWARD_LOST_TOO_LARGE], 1);
	s.status = 503;
	for (int i = 0; i < 40; i++) /* one is under way, 16 MiB wait at most */
		forward_give(s.forward, OTLP_METRICS, FORWARD_PROTOBUF, big, 1 << 20);
	assert_true(stats_of(&s).lost[FORWARD_LOST_MEMORY_FULL] >= 20);
	assert_int_equal(stats_of(&s).lost[FORWARD_LOST_MEMORY_FULL] + stats_of(&s).waiting, 40);
	assert_true(stats_of(&s).waiting_bytes <= 18 << 20);
	scene_close(&s);
	free(big);
}

static void test_json_cannot_go_by_grpc(void **state)
{
	struct endpoint_options o = {.text = "grpc://127.0.0.1:9"};
	struct scene s = {0};

	scene_listen(&s);
	assert_int_equal(endpoint_parse(&o, &s.endpoint, NULL), 0);
	scene_open(&s);
	give(&s, OTLP_LOGS, FORWARD_JSON, "{}");
	assert_int_equal(stats_of(&s).lost[FORWARD_LOST_ENCODING], 1);
	assert_int_equal(stats_of(&s).waiting, 0);
	give(&s, OTLP_LOGS, FORWARD_PROTOBUF, "x"); /* control */
	assert_int_equal(stats_of(&s).lost[FORWARD_LOST_ENCODING], 1);
	assert_int_equal(stats_of(&s).waiting, 1);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_in_order_and_joined),
		TEST(test_spool_outlives_the_program),
		TEST(test_losses_are_counted),
		TEST(test_json_cannot_go_by_grpc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
