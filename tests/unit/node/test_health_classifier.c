/* SPDX-License-Identifier: Apache-2.0 */
/* test_health_classifier.c - episodes, their one id, and which signal is to blame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/health/health_monitor.h"

static enum health_verdict take(struct health_classifier *c, double score)
{
	static uint8_t next;
	struct health_evidence e = {
		.active = true, .has_work = true, .score = score, .threshold = 0.9};

	memset(e.random, ++next, sizeof(e.random));
	return health_classifier_take(c, &health_classifier_defaults, &e);
}

static void test_hysteresis(void **state)
{
	struct health_classifier c = {0};

	assert_int_equal(take(&c, 0.9), HEALTH_VERDICT_NONE);
	assert_int_equal(take(&c, 0.9 - 1e-10), HEALTH_VERDICT_NONE);
	assert_int_equal(take(&c, 0.8999), HEALTH_VERDICT_STRAGGLER);
	assert_int_equal(take(&c, 0.91), HEALTH_VERDICT_STRAGGLER);
	assert_int_equal(take(&c, 0.92), HEALTH_VERDICT_RESOLVED);
	assert_int_equal(take(&c, 0.91), HEALTH_VERDICT_NONE);
}

/* A receiver opens one incident for an event id: a new one at every push would open many. */
static void test_one_id_for_an_episode(void **state)
{
	struct health_classifier c = {0};
	char first[HEALTH_EVENT_MAX];

	take(&c, 0.5);
	strcpy(first, c.event);
	assert_int_equal(strlen(first), 36);
	assert_int_equal(first[14], '4');
	assert_non_null(strchr("89ab", first[19]));
	for (int i = 0; i < 5; i++) {
		take(&c, 0.5);
		assert_string_equal(c.event, first);
	}
	assert_int_equal(take(&c, 1), HEALTH_VERDICT_RESOLVED);
	assert_string_equal(c.event, first);
	take(&c, 0.5);
	assert_string_not_equal(c.event, first);
}

static void test_going_idle_resolves(void **state)
{
	struct health_classifier c = {0};
	struct health_evidence idle = {.threshold = 0.9};

	take(&c, 0.5);
	assert_int_equal(health_classifier_take(&c, &health_classifier_defaults, &idle),
		HEALTH_VERDICT_RESOLVED);
	assert_int_equal(health_classifier_take(&c, &health_classifier_defaults, &idle),
		HEALTH_VERDICT_NONE);
}

static void test_nothing_is_decided_without_a_threshold(void **state)
{
	struct health_classifier c = {0};
	struct health_evidence e = {.active = true, .has_work = true, .score = 0.1};

	assert_int_equal(
		health_classifier_take(&c, &health_classifier_defaults, &e), HEALTH_VERDICT_NONE);
	take(&c, 0.5);
	e.score = 1;
	assert_int_equal(
		health_classifier_take(&c, &health_classifier_defaults, &e), HEALTH_VERDICT_NONE);
	assert_true(c.is_straggler);
}

/* Launches a second are thousands, the others shares: each is compared with its own ordinary value.
 * Compared across, throughput would always win: 1 - 0.9 / 5000 is nearly 1. */
static void test_the_dominant_signal_is_in_its_own_unit(void **state)
{
	const struct health_baseline_settings *s = &health_baseline_defaults;
	const double ordinary[] = {5000, 0.8, 0.9, 0.7};
	struct health_baseline b = {0};

	for (int i = 0; i < 40; i++)
		health_baseline_add(&b, s, ordinary);
	assert_string_equal(health_dominant_signal(&b, s, ordinary), "unknown");
	assert_string_equal(
		health_dominant_signal(&b, s, (double[]){4500, 0.8, 0.05, 0.7}), "memory");
	assert_string_equal(
		health_dominant_signal(&b, s, (double[]){1000, 0.7, 0.9, 0.7}), "throughput");
	assert_string_equal(health_dominant_signal(&b, s, (double[]){5000, 0.8, 0.9, 0.1}), "cpu");
	assert_string_equal(
		health_dominant_signal(&b, s, (double[]){6000, 0.4, 0.9, 0.7}), "compute");
}

static void test_settings_are_checked(void **state)
{
	struct health_classifier_settings s = {.hysteresis = 0.5};
	struct errinfo e = {0};

	assert_true(health_classifier_check(&s, &e) < 0);
	s.hysteresis = 0;
	assert_int_equal(health_classifier_check(&s, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hysteresis),
		cmocka_unit_test(test_one_id_for_an_episode),
		cmocka_unit_test(test_going_idle_resolves),
		cmocka_unit_test(test_nothing_is_decided_without_a_threshold),
		cmocka_unit_test(test_the_dominant_signal_is_in_its_own_unit),
		cmocka_unit_test(test_settings_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
