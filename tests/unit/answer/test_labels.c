/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/macros.h"
#include "answer/incidents.h"

static const struct incident during = {.pid = 7, .first.ns = 100, .last.ns = 200};

static void test_a_moment_holds_until_set_again(void **state)
{
	static const struct annotation_label labels[] = {
		{.time_ns = 10, .key = "phase", .value = "load"},
		{.time_ns = 50, .key = "phase", .value = "train"},
		{.time_ns = 60, .key = "other", .value = "x", .pid = 8},
		{.time_ns = 90, .key = "step", .value = "1", .pid = 7},
		{.time_ns = 150, .key = "step", .value = "2"},
		{.time_ns = 160, .key = "step", .value = "2"},
		{.time_ns = 250, .key = "phase", .value = "eval"},
	};
	struct label_range r[LABELS_KEYS_MAX];
	size_t more;

	assert_int_equal(labels_during(labels, ARRAY_SIZE(labels), &during, r, &more), 2);
	assert_int_equal(more, 0);
	assert_string_equal(r[0].key, "phase");
	assert_int_equal(r[0].total, 1);
	assert_string_equal(r[0].values[0], "train");
	assert_string_equal(r[1].key, "step");
	assert_int_equal(r[1].total, 2);
	assert_string_equal(r[1].values[0], "1");
	assert_string_equal(r[1].values[1], "2");
}

static void test_spans_hold_inside(void **state)
{
	static const struct annotation_label labels[] = {
		{.time_ns = 1,
			.span_start_ns = 10,
			.span_end_ns = 99,
			.key = "a",
			.value = "before"},
		{.time_ns = 2,
			.span_start_ns = 201,
			.span_end_ns = 300,
			.key = "a",
			.value = "after"},
		{.time_ns = 3, .span_start_ns = 150, .span_end_ns = 160, .key = "b", .value = "in"},
		{.time_ns = 900,
			.span_start_ns = 1,
			.span_end_ns = 900,
			.key = "c",
			.value = "over"},
	};
	struct label_range r[LABELS_KEYS_MAX];
	size_t more;

	assert_int_equal(labels_during(labels, ARRAY_SIZE(labels), &during, r, &more), 2);
	assert_string_equal(r[0].values[0], "in");
	assert_string_equal(r[1].values[0], "over");
}

static void test_many_values_and_keys(void **state)
{
	static struct annotation_label labels[140];
	struct label_range r[LABELS_KEYS_MAX];
	size_t more;

	for (int i = 0; i < 100; i++) {
		labels[i] = (struct annotation_label){.time_ns = 101 + i / 2, .key = "step"};
		snprintf(labels[i].value, sizeof(labels[i].value), "%d", i);
	}
	for (int i = 100; i < 140; i++) {
		labels[i] = (struct annotation_label){.time_ns = 180, .value = "x"};
		snprintf(labels[i].key, sizeof(labels[i].key), "k%d", i);
	}
	assert_int_equal(labels_during(labels, 140, &during, r, &more), LABELS_KEYS_MAX);
	assert_int_equal(more, 41 - LABELS_KEYS_MAX);
	assert_int_equal(r[0].total, 100);
	assert_int_equal(r[0].value_count, LABELS_VALUES_MAX);
	assert_string_equal(r[0].values[0], "0");
	assert_string_equal(r[0].values[LABELS_VALUES_MAX - 1], "99");
	assert_int_equal(labels_during(NULL, 0, &during, r, &more), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_moment_holds_until_set_again),
		cmocka_unit_test(test_spans_hold_inside),
		cmocka_unit_test(test_many_values_and_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
