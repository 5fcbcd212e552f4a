/* SPDX-License-Identifier: Apache-2.0 */
/* test_incident_stacks.c - the stacks of an incident's slow calls, through the whole engine. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "scene.h"

static struct incident one_incident(const struct scene *s)
{
	struct recording rec = scene_recording(s);
	_cleanup_free_ struct incident *list = NULL;
	size_t n;

	assert_int_equal(correlate_run(&rec, &list, &n), 0);
	assert_int_equal(n, 1);
	return list[0];
}

/* scene_hog() has 400 ordinary syncs and 400 slow ones: ordinary calls do not count. */
static void slow_calls_only(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct incident inc;
	uint64_t ns = 0;
	int slow = 0;

	scene_hog(&s);
	scene_aggregate(&s);
	for (size_t i = 0; i < s.event_count; i++) {
		struct event *e = &s.events[i];

		if (e->source != SOURCE_CUDA)
			continue;
		if (e->dur_ns < 2000000)
			e->stack_hash = 1;
		else
			e->stack_hash = slow++ % 4 == 0 ? 0 : slow % 20 == 0 ? 3 : 2;
	}
	inc = one_incident(&s);
	assert_int_equal(slow, inc.slow_calls);
	assert_int_equal(inc.stack_count, 2);
	assert_int_equal(inc.stack_total, 2);
	assert_int_equal(inc.stacks[0].hash, 2);
	assert_int_equal(inc.stacks[1].hash, 3);
	assert_int_equal(inc.stacks[0].calls + inc.stacks[1].calls, slow - slow / 4);
	for (int i = 0; i < inc.stack_count; i++)
		ns += inc.stacks[i].ns;
	assert_int_equal(ns, inc.stack_ns);
	assert_in_range(inc.stack_ns, inc.excess_ns / 2, inc.excess_ns - 1);
}

static void many_stacks_keep_the_heaviest(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct incident inc;
	uint64_t hash = 0;

	scene_hog(&s);
	scene_aggregate(&s);
	for (size_t i = 0; i < s.event_count; i++)
		s.events[i].stack_hash = ++hash;
	inc = one_incident(&s);
	assert_int_equal(inc.stack_count, INCIDENT_STACKS);
	assert_int_equal(inc.stack_total, inc.slow_calls);
	assert_int_equal(inc.stack_ns, inc.excess_ns);
	for (int i = 1; i < inc.stack_count; i++)
		assert_true(inc.stacks[i - 1].ns >= inc.stacks[i].ns);
}

static void none_is_none(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct incident inc;

	scene_hog(&s);
	scene_aggregate(&s);
	inc = one_incident(&s);
	assert_int_equal(inc.stack_count, 0);
	assert_int_equal(inc.stack_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_calls_only),
		cmocka_unit_test(many_stacks_keep_the_heaviest),
		cmocka_unit_test(none_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
