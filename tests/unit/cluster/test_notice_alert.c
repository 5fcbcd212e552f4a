/* SPDX-License-Identifier: Apache-2.0 */
/* test_notice_alert.c - a notice of the cluster loses nothing on its way to receivers of alerts. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "cluster/notify/notify.h"

static void every_field_arrives(void **state)
{
	struct fleet_notice n = {.kind = FLEET_NOTICE_CHANGED,
		.episode = {.id = 7,
			.event = "event-7",
			.cluster = "c1",
			.problem = FLEET_STRAGGLER,
			.node = "node-3",
			.rank = 5,
			.stage = -1,
			.share = 0.25,
			.confidence = 0.5,
			.lag_ns = 9,
			.period = 3,
			.signal = "throughput",
			.score = 0.5,
			.threshold = 0.88,
			.since_ns = 1,
			.until_ns = 2,
			.text = "late",
			.cause = "disk",
			.fix = "move",
			.cost = {.priced = true,
				.per_hour = 1,
				.total = 2,
				.gpu_seconds = 3,
				.watt_hours = 4,
				.currency = "USD",
				.symbol = "$",
				.unpriced = "H9"}}};
	struct alert_notice a;
	const struct alert_matter *m = &a.matter;

	notice_alert(&n, &a);
	assert_int_equal(a.kind, ALERT_CHANGED);
	assert_string_equal(m->name, "IngeroStraggler");
	assert_string_equal(m->problem, fleet_problem_id(FLEET_STRAGGLER));
	assert_true(
		m->id == 7 && m->rank == 5 && m->stage == -1 && m->lag_ns == 9 && m->period == 3);
	assert_true(m->since_ns == 1 && m->until_ns == 2 && m->is_job && !m->severity && !m->pid);
	assert_true(m->share == 0.25 && m->confidence == 0.5 && m->score == 0.5 &&
		    m->threshold == 0.88);
	assert_string_equal(m->event, "event-7");
	assert_string_equal(m->cluster, "c1");
	assert_string_equal(m->node, "node-3");
	assert_string_equal(m->signal, "throughput");
	assert_string_equal(m->text, "late");
	assert_string_equal(m->cause, "disk");
	assert_string_equal(m->fix, "move");
	assert_true(m->cost.priced && m->cost.per_hour == 1 && m->cost.total == 2 &&
		    m->cost.gpu_seconds == 3 && m->cost.watt_hours == 4);
	assert_string_equal(m->cost.currency, "USD");
	assert_string_equal(m->cost.symbol, "$");
	assert_string_equal(m->cost.unpriced, "H9");
	n.kind = FLEET_NOTICE_BEGAN;
	notice_alert(&n, &a);
	assert_int_equal(a.kind, ALERT_BEGAN);
	n.kind = FLEET_NOTICE_ENDED;
	notice_alert(&n, &a);
	assert_int_equal(a.kind, ALERT_ENDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_field_arrives)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
