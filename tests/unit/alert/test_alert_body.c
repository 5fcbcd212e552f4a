/* SPDX-License-Identifier: Apache-2.0 */
/* test_alert_body.c - what each receiver is sent. */
#include "alert_fixture.h"

#include "alert/alert_body.h"

static void contains(const struct buf *b, const char *words)
{
	assert_int_equal(b->err, 0);
	if (!strstr(buf_str(b), words))
		fail_msg("'%s' lacks '%s'", buf_str(b), words);
}

static void lacks(const struct buf *b, const char *words)
{
	if (strstr(buf_str(b), words))
		fail_msg("'%s' has '%s'", buf_str(b), words);
}

static void test_slack(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ALERT_BODY_MAX);
	struct alert_look look = {.channel = "#gpu", .username = "ingero"};
	struct alert_notice n = notice(ALERT_BEGAN, 7), *many[25];

	alert_slack(&b, &look, &n);
	contains(&b, "{\"text\":\"Began: straggler in cluster c1, node node-3, rank 0\\u000a"
		     "rank 0 on node-3 is late\\u000aCause: &lt;disk&gt; &amp; co\\u000a"
		     "Score 0.50, threshold 0.88, dominant signal throughput\\u000a"
		     "Cost: $12.55/h (USD)\\u000aEvent: event-7\","
		     "\"channel\":\"#gpu\",\"username\":\"ingero\"}\n");
	buf_clear(&b);
	look = (struct alert_look){0};
	n.kind = ALERT_ENDED;
	n.matter.cost =
		(struct alert_cost){.priced = false, .unpriced = "H9000"}; /* never "0.00" */
	alert_slack(&b, &look, &n);
	contains(&b, "Resolved: straggler");
	contains(&b, "Unpriced: H9000");
	lacks(&b, "0.00");
	lacks(&b, "channel");
	buf_clear(&b);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = &n;
	alert_slack_digest(&b, &look, (const struct alert_notice *const *)many, ARRAY_SIZE(many));
	contains(&b, "25 notices at once:");
	contains(&b, "and 5 more");
}

static void test_pagerduty(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ALERT_BODY_MAX);
	struct alert_look look = {.routing_key = "key"};
	struct alert_notice n = notice(ALERT_BEGAN, 7);

	alert_pagerduty(&b, &look, &n);
	contains(&b,
		"{\"routing_key\":\"key\",\"event_action\":\"trigger\",\"dedup_key\":\"event-7\",");
	contains(&b,
		"\"payload\":{\"summary\":\"c1: rank 0 on node-3 is late\",\"source\":\"node-3\","
		"\"severity\":\"warning\",\"timestamp\":\"1970-01-01T00:00:01.500000000Z\"");
	contains(&b, "\"class\":\"gpu_straggler\"");
	contains(&b, "\"rank\":0,"); /* rank 0 is a rank */
	buf_clear(&b);
	n.kind = ALERT_CHANGED;
	look.severity = "critical";
	alert_pagerduty(&b, &look, &n);
	contains(&b, "\"event_action\":\"trigger\",\"dedup_key\":\"event-7\"");
	contains(&b, "\"severity\":\"critical\"");
	buf_clear(&b);
	n.kind = ALERT_ENDED;
	alert_pagerduty(&b, &look, &n);
	assert_string_equal(buf_str(&b),
		"{\"routing_key\":\"key\",\"event_action\":\"resolve\",\"dedup_key\":\"event-7\"}\n");
}

static void test_alertmanager(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ALERT_BODY_MAX);
	struct alert_look look = {0};
	struct alert_notice one = notice(ALERT_BEGAN, 1), two = notice(ALERT_ENDED, 2);
	struct alert_episode episodes[] = {{&one.matter, &one.matter}, {&two.matter, &two.matter}};

	alert_alertmanager(&b, &look, episodes, 2, (wall_time){9 * (int64_t)NS_PER_S});
	contains(&b, "[{\"labels\":{\"alertname\":\"IngeroStraggler\",\"problem\":\"straggler\","
		     "\"severity\":\"warning\",\"cluster_id\":\"c1\",\"node_id\":\"node-3\","
		     "\"rank\":\"0\",\"event_id\":\"event-1\"}");
	contains(&b, "\"startsAt\":\"1970-01-01T00:00:01.500000000Z\","
		     "\"endsAt\":\"1970-01-01T00:00:09.000000000Z\"");
	contains(&b, "\"endsAt\":\"1970-01-01T00:00:02.000000000Z\"}]\n");
}

static void test_webhook(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ALERT_BODY_MAX);
	struct alert_notice n = notice(ALERT_BEGAN, 7);
	const struct alert_notice *many[] = {&n, &n};

	alert_webhook(&b, &n);
	contains(&b, "{\"kind\":\"began\",\"event_id\":\"event-7\",\"cluster_id\":\"c1\","
		     "\"problem\":\"straggler\",\"node_id\":\"node-3\",\"rank\":0,");
	contains(&b, "\"cost\":{\"priced\":true,\"currency\":\"USD\",\"per_hour\":12.55,");
	lacks(&b, "ended_at");
	buf_clear(&b);
	alert_webhook_digest(&b, many, 2);
	contains(&b, "{\"kind\":\"digest\",\"count\":2,\"notices\":[{\"kind\":\"began\"");
	buf_clear(&b);
	n = notice(ALERT_ENDED, 7);
	n.matter.rank = -1;
	n.matter.cost = (struct alert_cost){.unpriced = "H9000"};
	alert_webhook(&b, &n);
	contains(&b, "\"ended_at\":\"1970-01-01T00:00:02.000000000Z\"");
	contains(&b, "\"unpriced_model\":\"H9000\"");
	lacks(&b, "per_hour");
	lacks(&b, "\"rank\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slack),
		cmocka_unit_test(test_pagerduty),
		cmocka_unit_test(test_alertmanager),
		cmocka_unit_test(test_webhook),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
