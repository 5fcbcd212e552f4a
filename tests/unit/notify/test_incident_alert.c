/* SPDX-License-Identifier: Apache-2.0 */
/* test_incident_alert.c - an incident of a node as what receivers of alerts are told. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "notify/alert/alerter.h"
#include "alert/alert_body.h"

static struct incident made(void)
{
	struct incident i = {.severity = SEVERITY_HIGH,
		.pid = 42,
		.culprit_rank = -1,
		.first = {1500000000},
		.confidence = 0.9,
		.fix_count = 1};

	snprintf(i.id, sizeof(i.id), "slow-7");
	snprintf(i.comm, sizeof(i.comm), "python");
	snprintf(i.summary, sizeof(i.summary), "cudaStreamSync took 9 times as long");
	snprintf(i.root_cause, sizeof(i.root_cause), "<hog> had the CPU");
	snprintf(i.fixes[0], sizeof(i.fixes[0]), "pin it");
	return i;
}

static void its_fields(void **state)
{
	struct incident i = made();
	struct alert_matter m;

	incident_alert(&i, "node-1", &m);
	assert_string_equal(m.event, "slow-7@node-1");
	assert_string_equal(m.severity, "error");
	assert_string_equal(m.node, "node-1");
	assert_string_equal(m.cluster, "");
	assert_string_equal(m.fix, "pin it");
	assert_int_equal(m.since_ns, 1500000000);
	assert_int_equal(m.until_ns, 0);
	assert_int_equal(m.id, incident_alert_id(&i));
	i.id[0] = 'x';
	assert_int_not_equal(m.id, incident_alert_id(&i));
	memset(i.id, 'i', sizeof(i.id) - 1);
	incident_alert(&i, "a-node-with-a-name-that-is-longer-than-there-is-room-for", &m);
	assert_int_equal(strlen(m.event), ALERT_EVENT_MAX - 1); /* the id is whole */
	assert_memory_equal(m.event + strlen(i.id), "@a-node", 7);
}

static void what_receivers_are_sent(void **state)
{
	_cleanup_buf_ struct buf slack = BUF_INIT(ALERT_BODY_MAX), pager = BUF_INIT(ALERT_BODY_MAX),
				 hook = BUF_INIT(ALERT_BODY_MAX),
				 manager = BUF_INIT(ALERT_BODY_MAX);
	struct alert_look look = {.routing_key = "key"};
	struct alert_notice n = {.kind = ALERT_BEGAN};
	struct alert_episode pair = {&n.matter, &n.matter};
	struct incident i = made();

	incident_alert(&i, "node-1", &n.matter);
	alert_slack(&slack, &look, &n);
	alert_pagerduty(&pager, &look, &n);
	alert_webhook(&hook, &n);
	alert_alertmanager(&manager, &look, &pair, 1, (wall_time){0});
	assert_non_null(strstr(buf_str(&slack), "in node node-1, python (42)"));
	assert_non_null(strstr(buf_str(&slack), "&lt;hog&gt; had the CPU"));
	assert_non_null(strstr(buf_str(&pager), "\"severity\":\"error\""));
	assert_non_null(strstr(buf_str(&pager), "\"summary\":\"node-1: cudaStreamSync"));
	assert_non_null(strstr(buf_str(&pager), "\"dedup_key\":\"slow-7@node-1\""));
	assert_non_null(strstr(buf_str(&hook), "\"process\":\"python\""));
	assert_null(strstr(buf_str(&hook), "cluster_id")); /* there is none */
	assert_null(strstr(buf_str(&hook), "cost"));
	assert_non_null(strstr(buf_str(&manager), "\"alertname\":\"IngeroIncident\""));
	look.severity = "info"; /* the user's word wins */
	buf_clear(&pager);
	alert_pagerduty(&pager, &look, &n);
	assert_non_null(strstr(buf_str(&pager), "\"severity\":\"info\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_fields),
		cmocka_unit_test(what_receivers_are_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
