/* SPDX-License-Identifier: Apache-2.0 */
/* test_baseline.c - what counts as ordinary, and the table of groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/rows/baseline.h"
#include "scene.h"

#define SCENE _cleanup_(scene_done) struct scene s = {.seed = 5}

static struct op_table baseline(const struct scene *s)
{
	struct recording rec = scene_recording(s);
	struct op_table t;

	assert_int_equal(baseline_run(&rec, &t), 0);
	return t;
}

static void test_baseline_is_the_calm_quartile(void **state)
{
	SCENE;

	/* 12 buckets: 4 calm ones at the end, 8 with every call ten times as long before */
	for (int k = 0; k < 600; k++)
		scene_call(&s, CUDA_MALLOC, k * 100000, k < 400 ? 1000 : 100);
	scene_aggregate(&s);
	_cleanup_(baseline_done) struct op_table d = baseline(&s);

	assert_true(d.groups[0].from_aggregates);
	assert_in_range(d.groups[0].baseline_ns, 96000, 104000);
	assert_in_range(d.groups[0].p50_ns, 960000, 1040000);
	assert_int_equal(d.groups[0].calls, 600);

	s.aggregate_count = 0;
	_cleanup_(baseline_done) struct op_table rows = baseline(&s);
	assert_false(rows.groups[0].from_aggregates);
	assert_int_equal(rows.groups[0].baseline_ns, 1000000);
}

static void test_thin_buckets_have_no_say(void **state)
{
	SCENE;

	for (int k = 0; k < 100; k++)
		scene_call(&s, CUDA_MALLOC, k * 100000, 1000);
	for (int k = 0; k < 20; k++) /* twenty buckets of one very short call each */
		scene_call(&s, CUDA_MALLOC, 20000000 + k * 5000000, 1);
	scene_aggregate(&s);
	_cleanup_(baseline_done) struct op_table d = baseline(&s);
	assert_in_range(d.groups[0].baseline_ns, 960000, 1040000);
}

static void test_many_groups(void **state)
{
	SCENE;

	for (uint32_t k = 0; k < 5000; k++)
		scene_add(&s, SOURCE_CUDA, (uint16_t)(k % 7), k / 7 + 1, 1, k, 5);
	_cleanup_(baseline_done) struct op_table d = baseline(&s);
	assert_int_equal(d.count, 5000 + 5000 / 7 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_baseline_is_the_calm_quartile),
		cmocka_unit_test(test_thin_buckets_have_no_say),
		cmocka_unit_test(test_many_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
