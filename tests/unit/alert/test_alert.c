/* SPDX-License-Identifier: Apache-2.0 */
/* test_alert.c - notices to receivers of our own: one incident an episode, a receiver that fails and
 * another that does not, budgets and digests. */
#include "alert_fixture.h"

#include "alert/alert.h"
#include "net/server/server.h"
#include "net/digest.h"

struct scene {
	struct loop *loop;
	struct http_server *server;
	struct alerts *alerts;
	struct alert_receiver to[2];
	size_t count;
	int fail; /* so many times more, at /bad */
	struct buf seen[2];
	char signature[128], authorization[64];
};

static void on_request(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct scene *s = arg;
	bool is_bad = !strcmp(q->path, "/bad");
	const char *signature = http_head_get(&q->head, ALERT_SIGNATURE_FIELD);
	const char *authorization = http_head_get(&q->head, "authorization");

	if (is_bad && s->fail-- > 0) {
		http_reply(x, 500, NULL, "{}", 2);
		return;
	}
	buf_append(&s->seen[is_bad], q->body, q->body_len);
	snprintf(s->signature, sizeof(s->signature), "%s", signature ? signature : "");
	snprintf(s->authorization, sizeof(s->authorization), "%s",
		authorization ? authorization : "");
	http_reply(x, 202, NULL, "{}", 2);
}

static void scene_open(struct scene *s)
{
	static const struct http_route routes[] = {
		{.method = "POST", .path = "/good", .handler = on_request},
		{.method = "POST", .path = "/bad", .handler = on_request},
		{0},
	};
	struct http_server_settings server = {.address = "127.0.0.1:0", .routes = routes, .arg = s};
	struct errinfo e = {0};

	assert_int_equal(loop_new(&s->loop), 0);
	if (http_server_new(s->loop, &server, &s->server, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < s->count; i++) {
		s->seen[i] = BUF_INIT(1 << 20);
		s->to[i].path = s->to[i].path ? s->to[i].path : "/good";
		assert_int_equal(http_endpoint_parse(http_server_address(s->server), false, 0,
					 &s->to[i].endpoint, &e),
			0);
	}
	if (alerts_new(s->loop, s->to, s->count, &s->alerts, &e) < 0)
		fail_msg("%s", e.text);
}

static void scene_close(struct scene *s)
{
	alerts_free(s->alerts);
	http_server_free(s->server);
	loop_free(s->loop);
	buf_done(&s->seen[0]);
	buf_done(&s->seen[1]);
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void finish(struct scene *s)
{
	alerts_finish(s->alerts, stop, s->loop);
	assert_int_equal(loop_run(s->loop), 0);
}

static void give(struct scene *s, enum alert_kind kind, uint64_t id)
{
	struct alert_notice n = notice(kind, id);

	alerts_give(s->alerts, &n);
}

static struct alert_stats stats_of(const struct scene *s, size_t i)
{
	struct alert_stats stats;

	assert_true(alerts_stats(s->alerts, i, &stats));
	return stats;
}

static int count_of(const struct buf *b, const char *words)
{
	int n = 0;

	for (const char *p = buf_str(b); (p = strstr(p, words)); p++)
		n++;
	return n;
}

static void test_one_incident(void **state)
{
	struct scene s = {.count = 1,
		.to = {{.type = ALERT_PAGERDUTY, .look = {.routing_key = "k"}, .bearer = "b"}}};

	scene_open(&s);
	give(&s, ALERT_BEGAN, 1);
	finish(&s);
	assert_int_equal(stats_of(&s, 0).open, 1);
	for (int i = 0; i < 5; i++) {
		give(&s, ALERT_CHANGED, 1);
		finish(&s);
	}
	give(&s, ALERT_ENDED, 1);
	finish(&s);
	assert_int_equal(count_of(&s.seen[0], "\"trigger\",\"dedup_key\":\"event-1\""), 6);
	assert_int_equal(count_of(&s.seen[0], "\"resolve\",\"dedup_key\":\"event-1\""), 1);
	assert_int_equal(stats_of(&s, 0).sent, 7);
	assert_int_equal(stats_of(&s, 0).open, 0);
	assert_string_equal(s.authorization, "Bearer b");
	scene_close(&s);
}

static void test_failures_are_isolated(void **state)
{
	struct scene s = {.count = 2,
		.fail = 1,
		.to = {{.type = ALERT_WEBHOOK, .sign_secret = "shared"},
			{.type = ALERT_SLACK, .path = "/bad"}}};
	char hex[DIGEST_HEX], wanted[128];

	scene_open(&s);
	give(&s, ALERT_BEGAN, 1);
	finish(&s);
	assert_int_equal(count_of(&s.seen[0], "\"began\""), 1);
	digest_hmac("shared", 6, s.seen[0].data, s.seen[0].len, hex);
	snprintf(wanted, sizeof(wanted), "sha256=%s", hex);
	assert_string_equal(s.signature, wanted);
	assert_int_equal(s.seen[1].len, 0);
	assert_int_equal(stats_of(&s, 1).retries, 1);
	assert_int_equal(stats_of(&s, 1).waiting, 1);
	finish(&s); /* it is asked again */
	assert_int_equal(count_of(&s.seen[1], "Began: straggler"), 1);
	assert_int_equal(stats_of(&s, 1).waiting, 0);
	scene_close(&s);
}

static void test_the_rest_of_a_minute_is_summed_up(void **state)
{
	struct scene s = {.count = 2,
		.to = {{.type = ALERT_SLACK, .per_minute = 3},
			{.type = ALERT_PAGERDUTY,
				.per_minute = 3,
				.path = "/bad",
				.look = {.routing_key = "k"}}}};

	scene_open(&s);
	/* Both senders are busy with the first, so that what follows waits. */
	for (uint64_t id = 1; id <= 40; id++)
		give(&s, ALERT_BEGAN, id);
	finish(&s);
	assert_int_equal(stats_of(&s, 0).sent, 3);
	assert_int_equal(stats_of(&s, 1).sent, 3);
	assert_int_equal(count_of(&s.seen[1], "\"trigger\""), 3);
	for (uint64_t id = 4; id <= 40; id++) /* never told: nothing to resolve */
		give(&s, ALERT_ENDED, id);
	assert_int_equal(stats_of(&s, 1).brief, 2 * 37);
	assert_int_equal(stats_of(&s, 1).waiting, 0);
	give(&s, ALERT_ENDED, 1);
	assert_int_equal(stats_of(&s, 1).waiting, 1); /* in the next minute */
	scene_close(&s);
}

static void wait_briefly(struct scene *s)
{
	struct loop_timer *t;

	assert_int_equal(loop_timer_new(s->loop, stop, s->loop, &t), 0);
	loop_timer_set(t, 20 * NS_PER_MS);
	assert_int_equal(loop_run(s->loop), 0);
	loop_timer_free(t);
}

static void test_digest(void **state)
{
	struct scene s = {.count = 2,
		.to = {{.type = ALERT_SLACK, .per_minute = 2, .period_ns = 300 * NS_PER_MS},
			{.type = ALERT_WEBHOOK,
				.per_minute = 2,
				.period_ns = 300 * NS_PER_MS,
				.path = "/bad"}}};

	scene_open(&s);
	for (uint64_t id = 1; id <= 40; id++)
		give(&s, ALERT_BEGAN, id);
	while (stats_of(&s, 0).waiting || stats_of(&s, 1).waiting)
		wait_briefly(&s);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(stats_of(&s, i).sent, 4); /* two, one, and the sum of 37 */
		assert_int_equal(stats_of(&s, i).digests, 1);
		assert_int_equal(stats_of(&s, i).digested, 37);
		assert_int_equal(stats_of(&s, i).open, 40); /* told: they will be resolved */
		assert_int_equal(stats_of(&s, i).lost, 0);
	}
	assert_int_equal(count_of(&s.seen[0], "37 notices at once"), 1);
	assert_int_equal(count_of(&s.seen[1], "\"kind\":\"digest\",\"count\":37"), 1);
	scene_close(&s);
}

static void test_alertmanager_gets_all_at_once(void **state)
{
	struct scene s = {
		.count = 1, .to = {{.type = ALERT_ALERTMANAGER, .repeat_ns = 50 * NS_PER_MS}}};

	scene_open(&s);
	for (uint64_t id = 1; id <= 40; id++)
		give(&s, ALERT_BEGAN, id);
	finish(&s);
	assert_true(stats_of(&s, 0).sent < 20);
	assert_int_equal(count_of(&s.seen[0], "\"event_id\":\"event-40\""), 1);
	give(&s, ALERT_ENDED, 40);
	finish(&s);
	buf_clear(&s.seen[0]);
	while (count_of(&s.seen[0], "\"event_id\":\"event-1\"") < 2) /* what lasts is repeated */
		wait_briefly(&s);
	assert_int_equal(count_of(&s.seen[0], "\"event_id\":\"event-40\""), 0);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_incident),
		cmocka_unit_test(test_failures_are_isolated),
		cmocka_unit_test(test_the_rest_of_a_minute_is_summed_up),
		cmocka_unit_test(test_digest),
		cmocka_unit_test(test_alertmanager_gets_all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
