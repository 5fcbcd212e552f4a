/* SPDX-License-Identifier: Apache-2.0 */
/* test_health_monitor.c - a node over time: falls that last, work that ends, fleets that go away. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/health/health_monitor.h"
#include "base/clock.h"

struct node {
	struct health_monitor m;
	struct health_output o;
	int64_t now_ns;
	double threshold; /* of the fleet; 0: it says none */
	struct health_program programs[2];
	size_t program_count;
};

static void begin(struct node *n)
{
	*n = (struct node){.threshold = 0.88};
	health_monitor_init(&n->m, 30, NULL);
}

/* One reading, 5 s after the last. */
static void take(struct node *n, double launch_rate)
{
	struct health_input in = {.reading.launches = (int64_t)(launch_rate * 5),
		.raw = {launch_rate, 0.9, 0.95, 0.8},
		.programs = n->programs,
		.program_count = n->program_count,
		.push_interval_ns = 5 * NS_PER_S,
		.reachable = true};

	n->now_ns += 5 * (int64_t)NS_PER_S;
	in.now_ns = n->now_ns;
	in.cached = (struct health_threshold){.known = n->threshold > 0,
		.value = n->threshold,
		.quorum = true,
		.at_ns = n->now_ns - 1};
	memset(in.random, (int)(n->now_ns >> 32), sizeof(in.random));
	health_monitor_take(&n->m, &in, &n->o);
}

static void warm_up(struct node *n)
{
	for (int i = 0; i < 60; i++)
		take(n, 1000);
	assert_int_equal(n->m.state.now, PUSH_ACTIVE);
	assert_false(n->m.classifier.is_straggler);
	assert_int_equal(n->m.mode, HEALTH_MODE_FLEET);
}

/* Measured against an average that follows, half the throughput would be ordinary after 140 s. */
static void test_a_lasting_fall_does_not_resolve_itself(void **state)
{
	struct node n;

	begin(&n);
	warm_up(&n);
	for (int i = 0; i < 720; i++) { /* an hour */
		take(&n, 500);
		assert_int_equal(n.o.verdict, HEALTH_VERDICT_STRAGGLER);
		assert_string_equal(n.o.dominant, "throughput");
	}
	take(&n, 1000);
	assert_int_equal(n.o.verdict, HEALTH_VERDICT_RESOLVED);
}

enum { JOB = 7, NEIGHBOUR = 9 };

/* Rates of a job and of its neighbour; below 0: it has gone. */
static void take_both(struct node *n, double job, double neighbour, bool is_over)
{
	n->programs[0] = (struct health_program){.id = JOB, .rate = job};
	n->programs[1] = (struct health_program){
		.id = NEIGHBOUR, .rate = fmax(neighbour, 0), .is_over = is_over};
	n->program_count = neighbour < 0 ? 1 : 2;
	take(n, job + fmax(neighbour, 0));
}

static void warm_up_both(struct node *n)
{
	begin(n);
	for (int i = 0; i < 60; i++)
		take_both(n, 1800, 20000, false);
	assert_int_equal(n->m.state.now, PUSH_ACTIVE);
}

static void test_a_neighbour_that_ends_slows_nobody(void **state)
{
	struct node n;

	warm_up_both(&n);
	take_both(&n, 1800, 9000, true); /* what it did last is still in the window */
	assert_int_equal(n.o.verdict, HEALTH_VERDICT_NONE);
	for (int i = 0; i < 720; i++) {
		take_both(&n, 1800, -1, false);
		assert_int_equal(n.o.verdict, HEALTH_VERDICT_NONE);
		assert_true(fabs(n.o.values[HEALTH_THROUGHPUT] - 1) < 1e-6);
		assert_false(n.o.degraded);
	}
	for (int i = 0; i < 720; i++) { /* and the job's own fall is still seen */
		take_both(&n, 900, -1, false);
		assert_int_equal(n.o.verdict, HEALTH_VERDICT_STRAGGLER);
	}
}

/* Without knowing whose the launches were: a node that is slow for good. */
static void test_control_a_neighbour_that_is_not_known(void **state)
{
	struct node n;

	begin(&n);
	for (int i = 0; i < 60; i++)
		take(&n, 21800);
	for (int i = 0; i < 720; i++)
		take(&n, 1800);
	assert_int_equal(n.o.verdict, HEALTH_VERDICT_STRAGGLER);
}

/* One that has stopped making progress has not ended. */
static void test_a_program_that_hangs_is_missed(void **state)
{
	struct node n;

	warm_up_both(&n);
	take_both(&n, 1800, 0, false);
	assert_int_equal(n.o.verdict, HEALTH_VERDICT_STRAGGLER);
}

static void test_a_neighbour_of_an_earlier_run_ends(void **state)
{
	struct node n, again;

	warm_up_both(&n);
	n.m.baseline.part_count = 0; /* as the file has it */
	begin(&again);
	health_monitor_init(&again.m, 30, &n.m.baseline);
	take_both(&again, 1800, 20000, false);
	take_both(&again, 1800, -1, false);
	assert_int_equal(again.o.verdict, HEALTH_VERDICT_NONE);
	assert_true(fabs(again.o.values[HEALTH_THROUGHPUT] - 1) < 1e-6);
	take_both(&again, 900, -1, false);
	assert_int_equal(again.o.verdict, HEALTH_VERDICT_STRAGGLER);
}

static void test_work_that_ends_resolves(void **state)
{
	struct node n;
	char event[HEALTH_EVENT_MAX];

	begin(&n);
	warm_up(&n);
	take(&n, 300);
	assert_int_equal(n.o.verdict, HEALTH_VERDICT_STRAGGLER);
	strcpy(event, n.m.classifier.event);
	take(&n, 0);
	take(&n, 0);
	assert_int_equal(n.o.verdict, HEALTH_VERDICT_NONE);
	take(&n, 0);
	assert_int_equal(n.m.state.now, PUSH_IDLE);
	assert_int_equal(n.o.verdict, HEALTH_VERDICT_RESOLVED);
	assert_string_equal(n.m.classifier.event, event);
	assert_false(n.m.classifier.is_straggler);
}

static void test_no_verdict_before_it_is_active(void **state)
{
	struct node n;

	begin(&n);
	for (int i = 0; i < 29; i++) {
		take(&n, i % 2 ? 1000 : 10);
		assert_int_equal(n.o.verdict, HEALTH_VERDICT_NONE);
	}
}

/* A node whose ordinary throughput is 0 has never worked: it is no straggler. */
static void test_a_node_that_never_worked(void **state)
{
	struct node n;

	begin(&n);
	for (int i = 0; i < 40; i++) {
		take(&n, 0);
		assert_int_equal(n.o.verdict, HEALTH_VERDICT_NONE);
	}
	assert_int_equal(n.m.state.now, PUSH_IDLE);
}

static void test_a_small_cluster_watches_itself(void **state)
{
	struct node n;

	begin(&n);
	warm_up(&n);
	n.threshold = 0;
	take(&n, 1000);
	assert_int_equal(n.m.mode, HEALTH_MODE_LOCAL_BASELINE);
	take(&n, 400);
	assert_int_equal(n.o.verdict, HEALTH_VERDICT_STRAGGLER);
	assert_true(n.o.threshold == HEALTH_LOCAL_THRESHOLD);
}

static void test_restored_is_active_at_once(void **state)
{
	struct node n, again;

	begin(&n);
	warm_up(&n);
	begin(&again);
	health_monitor_init(&again.m, 30, &n.m.baseline);
	take(&again, 500);
	assert_int_equal(again.m.state.now, PUSH_ACTIVE);
	assert_int_equal(again.o.verdict, HEALTH_VERDICT_STRAGGLER);
}

static void test_idle_begins_anew(void **state)
{
	struct node n;

	begin(&n);
	warm_up(&n);
	for (int i = 0; i < 3; i++)
		take(&n, 0);
	take(&n, 7); /* another job, with another ordinary rate */
	assert_false(n.o.step.push);
	assert_true(n.m.baseline.samples == 1);
	assert_true(fabs(health_baseline_fast(
				 &n.m.baseline, &n.m.baseline_settings, HEALTH_THROUGHPUT) -
			    7) < 1e-9);
}

static void test_settings_are_checked(void **state)
{
	struct health_monitor m;
	struct errinfo e = {0};

	health_monitor_init(&m, 30, NULL);
	assert_int_equal(health_monitor_check(&m, &e), 0);
	m.score_settings.weight[0] = 0;
	assert_true(health_monitor_check(&m, &e) < 0 && e.text[0]);
	health_monitor_init(&m, 30, NULL);
	m.classifier_settings.hysteresis = 1;
	assert_true(health_monitor_check(&m, &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_lasting_fall_does_not_resolve_itself),
		cmocka_unit_test(test_a_neighbour_that_ends_slows_nobody),
		cmocka_unit_test(test_control_a_neighbour_that_is_not_known),
		cmocka_unit_test(test_a_program_that_hangs_is_missed),
		cmocka_unit_test(test_a_neighbour_of_an_earlier_run_ends),
		cmocka_unit_test(test_work_that_ends_resolves),
		cmocka_unit_test(test_no_verdict_before_it_is_active),
		cmocka_unit_test(test_a_node_that_never_worked),
		cmocka_unit_test(test_a_small_cluster_watches_itself),
		cmocka_unit_test(test_restored_is_active_at_once),
		cmocka_unit_test(test_idle_begins_anew),
		cmocka_unit_test(test_settings_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
