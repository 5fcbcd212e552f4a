/* SPDX-License-Identifier: Apache-2.0 */
/* test_health_state.c - the four states and all ways between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/health/health_monitor.h"
#include "base/clock.h"

static const struct health_state_settings *const S = &health_state_defaults;

static struct health_step good(struct health_state *h, int64_t launches)
{
	const struct health_reading r = {.launches = launches};

	return health_state_observe(h, S, &r);
}

static struct health_step bad(struct health_state *h)
{
	const struct health_reading r = {.failed = true, .launches = 10};

	return health_state_observe(h, S, &r);
}

static void activate(struct health_state *h)
{
	health_state_init(h, true);
	assert_int_equal(h->now, PUSH_ACTIVE);
}

static void test_calibrates_for_thirty(void **state)
{
	struct health_state h;
	struct health_step s;

	health_state_init(&h, false);
	for (int i = 0; i < 29; i++) {
		s = good(&h, 5);
		assert_int_equal(h.now, PUSH_CALIBRATING);
		assert_true(s.push && s.is_good && !s.classify && !s.changed);
	}
	s = good(&h, 5);
	assert_int_equal(h.now, PUSH_ACTIVE);
	assert_true(s.changed && s.classify && s.push);
}

static void test_idle_after_three_and_back(void **state)
{
	struct health_state h;
	struct health_step s;

	activate(&h);
	good(&h, 0);
	s = good(&h, 0);
	assert_int_equal(h.now, PUSH_ACTIVE);
	assert_false(s.classify); /* on its way to idle */
	good(&h, 1);
	good(&h, 0);
	good(&h, -7); /* counts as 0 */
	s = good(&h, 0);
	assert_int_equal(h.now, PUSH_IDLE);
	assert_true(s.push && s.changed && !s.classify);
	s = good(&h, 0);
	assert_true(s.push && !s.changed);
	s = good(&h, 1);
	assert_int_equal(h.now, PUSH_CALIBRATING);
	assert_true(s.reset_baseline && !s.push && s.is_good && s.changed);
	for (int i = 0; i < 28; i++) /* that one was the first of thirty */
		good(&h, 1);
	assert_int_equal(h.now, PUSH_CALIBRATING);
	good(&h, 1);
	assert_int_equal(h.now, PUSH_ACTIVE);
}

static void test_stale_after_three_failures_from_any_state(void **state)
{
	struct health_state h;
	struct health_step s;

	for (enum push_state from = PUSH_CALIBRATING; from <= PUSH_IDLE; from++) {
		h = (struct health_state){.now = from};
		bad(&h);
		s = bad(&h);
		assert_int_equal(h.now, from);
		assert_false(s.push || s.is_good);
		s = bad(&h);
		assert_int_equal(h.now, PUSH_STALE);
		assert_true(s.changed && !s.push);
		s = bad(&h);
		assert_true(!s.changed && !s.push);
		s = good(&h, 0);
		assert_int_equal(h.now, PUSH_CALIBRATING);
		assert_int_equal(h.warm, 1);
		assert_true(s.push && s.is_good);
	}
	activate(&h);
	bad(&h);
	bad(&h);
	good(&h, 1); /* in a row */
	bad(&h);
	assert_int_equal(h.now, PUSH_ACTIVE);
}

static void test_the_future_is_a_failed_reading(void **state)
{
	struct health_reading r = {.launches = 1, .at_ns = 61 * (int64_t)NS_PER_S};
	struct health_state h;

	activate(&h);
	assert_false(health_state_observe(&h, S, &r).is_good);
	r.at_ns = 59 * (int64_t)NS_PER_S;
	assert_true(health_state_observe(&h, S, &r).is_good);
	r.at_ns = INT64_MIN; /* long ago is no matter of this rule, and must not overflow */
	assert_true(health_state_observe(&h, S, &r).is_good);
}

static void test_settings_are_checked(void **state)
{
	struct health_state_settings s = *S;
	struct errinfo e = {0};

	assert_int_equal(health_state_check(&s, &e), 0);
	s.idle_intervals = HEALTH_IDLE_INTERVALS_MAX + 1;
	assert_true(health_state_check(&s, &e) < 0);
	s.idle_intervals = 0;
	assert_true(health_state_check(&s, &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calibrates_for_thirty),
		cmocka_unit_test(test_idle_after_three_and_back),
		cmocka_unit_test(test_stale_after_three_failures_from_any_state),
		cmocka_unit_test(test_the_future_is_a_failed_reading),
		cmocka_unit_test(test_settings_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
