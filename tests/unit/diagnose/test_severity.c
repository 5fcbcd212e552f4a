/* SPDX-License-Identifier: Apache-2.0 */
/* test_severity.c - one function of how much is lost and how sure that is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/compose/severity.h"

static void test_no_alarm_without_being_sure(void **state)
{
	for (int is_whole = 0; is_whole < 2; is_whole++)
		for (int s = 0; s <= 100; s++)
			for (int c = 0; c <= 100; c++) {
				enum severity is = severity_of(s / 100.0, c / 100.0, is_whole != 0);

				assert_true(is < SEVERITY_HIGH || c >= 60);
				assert_true(is < SEVERITY_MEDIUM || c >= 40);
				assert_true(is <= SEVERITY_HIGH);
			}
}

/* More lost, or surer, is never less severe. */
static void test_monotonous(void **state)
{
	for (int is_whole = 0; is_whole < 2; is_whole++)
		for (int s = 1; s <= 100; s++)
			for (int c = 1; c <= 100; c++) {
				enum severity is = severity_of(s / 100.0, c / 100.0, is_whole != 0);

				assert_true(is >=
					    severity_of((s - 1) / 100.0, c / 100.0, is_whole != 0));
				assert_true(is >=
					    severity_of(s / 100.0, (c - 1) / 100.0, is_whole != 0));
			}
}

/* Of what every unit has, some is in every program. */
static void test_what_every_unit_has_weighs_less(void **state)
{
	assert_int_equal(severity_of(0.12, 0.9, false), SEVERITY_HIGH);
	assert_int_equal(severity_of(0.12, 0.9, true), SEVERITY_LOW);
	assert_int_equal(severity_of(0.2, 0.9, true), SEVERITY_MEDIUM);
	assert_int_equal(severity_of(0.98, 0.9, true), SEVERITY_HIGH);
	assert_int_equal(severity_of(0.04, 0.9, false), SEVERITY_MEDIUM);
	assert_int_equal(severity_of(0.02, 0.9, false), SEVERITY_LOW);
	for (int s = 0; s <= 100; s++)
		assert_true(severity_of(s / 100.0, 1, true) <= severity_of(s / 100.0, 1, false));
}

static void test_sure(void **state)
{
	assert_int_equal(severity_sure(SEVERITY_CRITICAL, 0.6), SEVERITY_CRITICAL);
	assert_int_equal(severity_sure(SEVERITY_CRITICAL, 0.59), SEVERITY_MEDIUM);
	assert_int_equal(severity_sure(SEVERITY_HIGH, 0.4), SEVERITY_MEDIUM);
	assert_int_equal(severity_sure(SEVERITY_HIGH, 0.39), SEVERITY_LOW);
	assert_int_equal(severity_sure(SEVERITY_LOW, 1), SEVERITY_LOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_alarm_without_being_sure),
		cmocka_unit_test(test_monotonous),
		cmocka_unit_test(test_what_every_unit_has_weighs_less),
		cmocka_unit_test(test_sure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
