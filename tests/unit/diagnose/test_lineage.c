/* SPDX-License-Identifier: Apache-2.0 */
/* test_lineage.c - ancestors by recorded forks: at which time, through which execs, of any rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/accounts/lineage.h"
#include "scene.h"

static int64_t at(int64_t us)
{
	return SCENE_T0_NS + us * 1000;
}

static struct lineage lineage_of(const struct scene *s)
{
	struct recording rec = scene_recording(s);
	struct lineage l;

	assert_int_equal(lineage_build(&rec, &l), 0);
	return l;
}

static void test_root(void **state)
{
	_cleanup_(scene_done) struct scene s = {0};
	_cleanup_(lineage_done) struct lineage l = {0};

	scene_fork(&s, 3, 4, 3000); /* in no order */
	scene_fork(&s, 1, 2, 1000);
	scene_fork(&s, 2, 3, 2000);
	scene_fork(&s, 9, 4, 9000); /* 4 was used again */
	scene_fork(&s, 7, 8, 1000);
	s.events[s.event_count - 1].flags |= WIRE_THREAD;
	l = lineage_of(&s);
	assert_int_equal(lineage_root(&l, 4, at(3500)), 1);
	assert_int_equal(lineage_root(&l, 4, at(9500)), 9);
	assert_int_equal(lineage_root(&l, 4, at(2500)), 4); /* not forked yet */
	assert_int_equal(lineage_root(&l, 8, at(5000)), 8); /* a thread is no process */
	assert_int_equal(lineage_root(&l, 77, at(5000)), 77);
}

static void test_forked_after_use(void **state)
{
	_cleanup_(scene_done) struct scene s = {0};
	_cleanup_(lineage_done) struct lineage l = {0};
	struct op_table ops = {0};
	struct recording rec;
	uint32_t ancestor = 0;

	scene_add(&s, SOURCE_CUDA, CUDA_MALLOC, 1, 1, 2000, 10);
	scene_fork(&s, 1, 2, 1000); /* before the first call */
	scene_fork(&s, 1, 3, 3000);
	scene_fork(&s, 3, 4, 4000);
	scene_fork(&s, 1, 5, 5000);
	scene_add(&s, SOURCE_HOST, HOST_PROCESS_EXEC, 5, 5, 6000, 0);
	l = lineage_of(&s);
	rec = scene_recording(&s);
	assert_int_equal(baseline_run(&rec, &ops), 0);
	assert_false(lineage_forked_after_use(&l, &ops, 1, at(9000), &ancestor));
	assert_false(lineage_forked_after_use(&l, &ops, 2, at(9000), &ancestor));
	assert_true(lineage_forked_after_use(&l, &ops, 3, at(9000), &ancestor));
	assert_int_equal(ancestor, 1);
	ancestor = 0;
	assert_true(lineage_forked_after_use(&l, &ops, 4, at(9000), &ancestor));
	assert_int_equal(ancestor, 1);
	assert_true(lineage_forked_after_use(&l, &ops, 5, at(5500), &ancestor)); /* control */
	assert_false(lineage_forked_after_use(&l, &ops, 5, at(9000), &ancestor));
	baseline_done(&ops);
}

static void test_is_from(void **state)
{
	_cleanup_(scene_done) struct scene s = {0};
	_cleanup_(lineage_done) struct lineage l = {0};

	scene_fork(&s, 1, 2, 1000);
	scene_fork(&s, 2, 3, 2000);
	scene_fork(&s, 1, 4, 3000);
	scene_add(&s, SOURCE_HOST, HOST_PROCESS_EXEC, 4, 4, 3500, 0);
	scene_fork(&s, 4, 5, 4000);
	l = lineage_of(&s);
	assert_true(lineage_is_from(&l, 1, 1, at(9000), true));
	assert_true(lineage_is_from(&l, 3, 1, at(9000), true));
	assert_false(lineage_is_from(&l, 3, 1, at(1500), true)); /* not forked yet */
	assert_true(lineage_is_from(&l, 4, 1, at(3200), true));
	assert_false(lineage_is_from(&l, 4, 1, at(9000), true)); /* another program by then */
	assert_false(lineage_is_from(&l, 5, 1, at(9000), true)); /* and that one's child */
	assert_true(lineage_is_from(&l, 5, 4, at(9000), true));
	assert_true(lineage_is_from(&l, 5, 1, at(9000), false));
	assert_false(lineage_is_from(&l, 1, 3, at(9000), false));
	assert_false(lineage_is_from(&l, 7, 1, at(9000), false));
}

/* Rows that no kernel writes: circles, a process that forked itself, times without sense. */
static void test_hostile(void **state)
{
	_cleanup_(scene_done) struct scene s = {0};
	_cleanup_(lineage_done) struct lineage l = {0};
	struct op_table ops = {0};
	uint32_t ancestor;

	scene_fork(&s, 1, 2, 1000);
	scene_fork(&s, 2, 1, 1000);
	scene_fork(&s, 3, 3, 1000);
	scene_fork(&s, 4, 5, 1000);
	s.events[s.event_count - 1].start.ns = INT64_MIN;
	scene_fork(&s, 6, 0, 1000);
	l = lineage_of(&s);
	assert_in_range(lineage_root(&l, 1, at(2000)), 1, 2);
	assert_int_equal(lineage_root(&l, 3, at(2000)), 3);
	assert_int_equal(lineage_root(&l, 5, at(2000)), 5);
	assert_int_equal(lineage_root(&l, 0, INT64_MAX), 0);
	assert_false(lineage_forked_after_use(&l, &ops, 1, at(2000), &ancestor));
	assert_false(lineage_is_from(&l, 1, 77, at(2000), true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_forked_after_use),
		cmocka_unit_test(test_is_from),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
