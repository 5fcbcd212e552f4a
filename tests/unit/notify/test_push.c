/* SPDX-License-Identifier: Apache-2.0 */
/* test_push.c - readings to a receiver of our own: order, another attempt, refusals, the end. What
 * OpenTelemetry makes of the bytes is shown by an integration test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "notify/telemetry/telemetry.h"
#include "net/server/server.h"
#include "protobuf/pb.h"

#define READINGS 8

static const struct metric_desc hits = {.otlp = "hits",
	.prometheus = "hits_total",
	.unit = "1",
	.kind = METRIC_COUNTER,
	.help = "hits"};

struct scene {
	struct loop *loop;
	struct http_server *server;
	struct push *push;
	struct endpoint_fields fields;
	const int *answers; /* ends with 0: 200 from then on */
	int attempts, stop_at;
	size_t lens[READINGS * 2];
	uint64_t sums[READINGS * 2]; /* of the bodies */
	bool finished, has_header;
	const char *reply;
	size_t reply_len;
};

static void on_request(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct scene *s = arg;
	int answer = *s->answers ? *s->answers++ : 200;

	assert_true(s->attempts < READINGS * 2);
	for (size_t i = 0; i < q->body_len; i++)
		s->sums[s->attempts] = s->sums[s->attempts] * 31 + (uint8_t)q->body[i];
	s->lens[s->attempts++] = q->body_len;
	s->has_header = http_head_get(&q->head, "x-scope") &&
			!strcmp(http_head_get(&q->head, "x-scope"), "a b");
	http_reply(x, answer, "application/x-protobuf", s->reply, s->reply_len);
	if (s->attempts == s->stop_at)
		loop_stop(s->loop);
}

static void scene_open(struct scene *s)
{
	static const struct http_route routes[] = {
		{.method = "POST", .path = "/v1/metrics", .handler = on_request}, {0}};
	struct http_server_settings server = {.address = "127.0.0.1:0", .routes = routes, .arg = s};
	struct endpoint endpoint;
	struct push_settings p = {.endpoint = &endpoint, .fields = &s->fields};
	struct endpoint_options o = {.insecure = true};
	struct errinfo e = {0};

	if (!s->reply)
		s->reply = "";
	assert_int_equal(endpoint_fields_parse("x-scope=a%20b", "", &s->fields, &e), 0);
	assert_int_equal(loop_new(&s->loop), 0);
	if (http_server_new(s->loop, &server, &s->server, &e) < 0)
		fail_msg("%s", e.text);
	o.text = http_server_address(s->server);
	assert_int_equal(endpoint_parse(&o, &endpoint, &e), 0);
	assert_int_equal(push_new(s->loop, &p, &s->push, &e), 0);
}

static void scene_close(struct scene *s)
{
	push_free(s->push);
	http_server_free(s->server);
	loop_free(s->loop);
	endpoint_fields_done(&s->fields);
}

static void give(struct scene *s, int64_t value)
{
	struct metric_set *set = metric_set_new((wall_time){value});

	metric_put_int(set, &hits, (wall_time){1}, value, NULL);
	push_give(s->push, set);
	metric_set_free(set);
}

static void on_finished(void *arg)
{
	struct scene *s = arg;

	s->finished = true;
	loop_stop(s->loop);
}

static void finish(struct scene *s)
{
	push_finish(s->push, on_finished, s);
	if (!s->finished)
		assert_int_equal(loop_run(s->loop), 0);
	assert_true(s->finished);
}

static void test_in_order_and_once(void **state)
{
	struct scene s = {.answers = (const int[]){0}};
	struct push_stats f;

	scene_open(&s);
	for (int i = 1; i <= READINGS; i++)
		give(&s, i);
	finish(&s);
	f = push_stats(s.push);
	assert_int_equal(s.attempts, READINGS);
	assert_true(s.has_header);
	assert_int_equal(f.backlog.sent_batches, READINGS);
	assert_int_equal(f.backlog.sent_points, READINGS);
	assert_int_equal(f.queued_batches, 0);
	for (int i = 1; i < READINGS; i++)
		assert_true(s.sums[i] != s.sums[i - 1]);
	s.finished = false;
	finish(&s); /* with nothing left */
	scene_close(&s);
}

static void test_not_now_means_the_same_again(void **state)
{
	struct scene s = {.answers = (const int[]){503, 0}, .stop_at = 3};
	struct push_stats f;

	scene_open(&s);
	give(&s, 1);
	give(&s, 2);
	assert_int_equal(loop_run(s.loop), 0);
	finish(&s);
	f = push_stats(s.push);
	assert_int_equal(s.attempts, 3);
	assert_true(s.sums[0] == s.sums[1] && s.lens[0] == s.lens[1]);
	assert_true(s.sums[2] != s.sums[1]);
	assert_int_equal(f.backlog.retries, 1);
	assert_int_equal(f.backlog.sent_batches, 2);
	scene_close(&s);
}

static void test_a_refusal_is_final(void **state)
{
	struct scene s = {.answers = (const int[]){400, 0}};
	struct push_stats f;

	scene_open(&s);
	give(&s, 1);
	give(&s, 2);
	finish(&s);
	f = push_stats(s.push);
	assert_int_equal(s.attempts, 2);
	assert_true(s.sums[0] != s.sums[1]);
	assert_int_equal(f.backlog.refused_batches, 1);
	assert_int_equal(f.backlog.sent_batches, 1);
	scene_close(&s);
}

static void test_rejected_points_are_counted(void **state)
{
	/* partial_success { rejected_data_points: 5 } */
	struct scene s = {.answers = (const int[]){0}, .reply = "\x0a\x02\x08\x05", .reply_len = 4};

	scene_open(&s);
	give(&s, 1);
	finish(&s);
	assert_int_equal(push_stats(s.push).rejected_points, 5);
	assert_int_equal(push_stats(s.push).backlog.sent_batches, 1);
	scene_close(&s);
}

/* Nobody there: the end comes after one attempt, and what is left is known. */
static void test_the_end_is_not_held_up(void **state)
{
	struct scene s = {.answers = (const int[]){0}};

	scene_open(&s);
	http_server_free(s.server);
	s.server = NULL;
	give(&s, 1);
	give(&s, 2);
	finish(&s);
	assert_int_equal(push_stats(s.push).queued_batches, 2);
	assert_true(push_stats(s.push).queued_bytes > 0);
	push_free(s.push);
	loop_free(s.loop);
	endpoint_fields_done(&s.fields);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order_and_once),
		cmocka_unit_test(test_not_now_means_the_same_again),
		cmocka_unit_test(test_a_refusal_is_final),
		cmocka_unit_test(test_rejected_points_are_counted),
		cmocka_unit_test(test_the_end_is_not_held_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
