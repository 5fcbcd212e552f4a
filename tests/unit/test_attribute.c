/* SPDX-License-Identifier: Apache-2.0 */
/* test_attribute.c - the arithmetic of overlap: what counts of which stay, to the microsecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/calls/attribute.h"
#include "scene.h"

#define MS      1000
#define CALL_US 10000000 /* start of the first of three slow calls, 100 ms long, 1 s apart */

struct work {
	struct scene s;
	struct detection d;
	struct attribution_index x;
	struct part_list l;
};

static void work_done(struct work *w)
{
	part_list_done(&w->l);
	attribute_index_done(&w->x);
	detect_done(&w->d);
	scene_done(&w->s);
}

/* Calls of 1 ms as a baseline and three of 100 ms; the test adds stays before work_run(). */
static void work_init(struct work *w)
{
	*w = (struct work){.s.seed = 1};
	for (int i = 0; i < 50; i++)
		scene_call(&w->s, CUDA_MEMCPY, i * 20000, 1 * MS);
	for (int i = 0; i < 3; i++)
		scene_call(&w->s, CUDA_MEMCPY, CALL_US + i * 1000 * MS, 100 * MS);
}

static void work_run(struct work *w)
{
	struct recording rec = scene_recording(&w->s);

	assert_int_equal(detect_run(&rec, &w->d), 0);
	assert_int_equal(w->d.episode_count, 1);
	assert_int_equal(attribute_index(&rec, &w->d, &w->x), 0);
	assert_int_equal(attribute_episode(&rec, &w->d, &w->x, &w->d.slow_episodees[0], &w->l), 0);
}

static uint64_t us_of(const struct work *w, enum cause cause)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < w->l.count; i++)
		if (w->l.items[i].cause == cause)
			ns += w->l.items[i].ns;
	return ns / 1000;
}

/* What requests prove of the time on a disk. */
static uint64_t us_of_requests(const struct work *w)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < w->l.count; i++)
		if (w->s.events[w->l.items[i].event].source == SOURCE_IO)
			ns += w->l.items[i].ns;
	return ns / 1000;
}

#define WORK                                                                                       \
	_cleanup_(work_done) struct work w;                                                        \
	work_init(&w)

static void test_only_the_last_part_of_a_sleep_is_runnable(void **state)
{
	WORK;

	scene_stay(&w.s, VICTIM, CALL_US + 10 * MS, 50 * MS, 20 * MS, 0, HOG, "hog");
	work_run(&w);
	assert_int_equal(us_of(&w, CAUSE_RUN_QUEUE), 20 * MS);
	assert_int_equal(w.l.asleep_ns / 1000, 30 * MS);
	assert_int_equal(w.l.items[0].start_ns, SCENE_T0_NS + (CALL_US + 40 * MS) * 1000LL);
	assert_true(w.l.has_switches);
}

static void test_stays_are_clipped_to_the_call(void **state)
{
	WORK;

	scene_stay(&w.s, VICTIM, CALL_US - 30 * MS, 50 * MS, 50 * MS, WIRE_PREEMPTED, HOG, "hog");
	scene_stay(&w.s, VICTIM, CALL_US + 95 * MS, 50 * MS, 50 * MS, WIRE_PREEMPTED, HOG, "hog");
	scene_stay(&w.s, VICTIM, CALL_US + 200 * MS, 50 * MS, 50 * MS, WIRE_PREEMPTED, HOG, "hog");
	work_run(&w);
	assert_int_equal(us_of(&w, CAUSE_PREEMPTED), 25 * MS);
}

static void test_a_woken_part_outside_the_call_does_not_count(void **state)
{
	WORK;

	/* blocked inside the call, runnable only after it */
	scene_stay(&w.s, VICTIM, CALL_US + 50 * MS, 100 * MS, 50 * MS, 0, HOG, "hog");
	work_run(&w);
	assert_int_equal(w.l.count, 0);
	assert_int_equal(w.l.asleep_ns / 1000, 50 * MS);
}

static void test_wait_longer_than_the_stay(void **state)
{
	WORK;

	scene_stay(&w.s, VICTIM, CALL_US + 10 * MS, 20 * MS, 500 * MS, 0, HOG, "hog");
	work_run(&w);
	assert_int_equal(us_of(&w, CAUSE_RUN_QUEUE), 20 * MS);
}

static void test_overlapping_stays_count_once(void **state)
{
	WORK;

	scene_stay(&w.s, VICTIM, CALL_US + 10 * MS, 40 * MS, 40 * MS, WIRE_PREEMPTED, HOG, "hog");
	scene_stay(&w.s, VICTIM, CALL_US + 20 * MS, 40 * MS, 40 * MS, WIRE_PREEMPTED, HOG, "hog");
	scene_stay(&w.s, VICTIM, CALL_US + 30 * MS, 5 * MS, 5 * MS, WIRE_PREEMPTED, HOG, "hog");
	work_run(&w);
	assert_int_equal(us_of(&w, CAUSE_PREEMPTED), 50 * MS);
}

static void test_parts_shrink_to_the_excess(void **state)
{
	WORK;

	for (int i = 0; i < 100; i++)
		scene_stay(&w.s, VICTIM, CALL_US + i * MS, MS, MS, WIRE_PREEMPTED, HOG, "hog");
	work_run(&w);
	/* 100 parts of 1 ms; the excess is 99 ms; each part is cut to whole ns */
	assert_in_range(us_of(&w, CAUSE_PREEMPTED), 99 * MS - 1, 99 * MS);
}

static void test_other_threads_do_not_count(void **state)
{
	WORK;

	scene_stay(&w.s, VICTIM + 1, CALL_US, 100 * MS, 100 * MS, WIRE_PREEMPTED, HOG, "hog");
	work_run(&w);
	assert_int_equal(w.l.count, 0);
	assert_false(w.l.has_switches);
}

static void test_disk_requests_at_the_time(void **state)
{
	WORK;

	scene_stay(&w.s, VICTIM, CALL_US + 10 * MS, 50 * MS, 0, WIRE_UNINTERRUPTIBLE, 0, "swapper");
	scene_io(&w.s, IO_READ, VICTIM, "python3", CALL_US, 30 * MS, 64);
	scene_io(&w.s, IO_READ, VICTIM, "python3", CALL_US + 5 * MS, 30 * MS, 64);
	work_run(&w);
	assert_int_equal(us_of_requests(&w), 25 * MS);        /* 10..35 of the call */
	assert_int_equal(us_of(&w, CAUSE_BLOCK_IO), 50 * MS); /* the rest by the stay alone */
}

static void test_request_of_another_thread_of_the_process(void **state)
{
	WORK;

	scene_stay(&w.s, VICTIM, CALL_US + 10 * MS, 50 * MS, 0, WIRE_UNINTERRUPTIBLE, 0, "swapper");
	scene_io(&w.s, IO_READ, VICTIM, "python3", CALL_US, 30 * MS, 64)->tid = VICTIM + 7;
	work_run(&w);
	assert_int_equal(us_of_requests(&w), 20 * MS);
	assert_int_equal(us_of(&w, CAUSE_BLOCK_IO), 50 * MS);
}

static void test_asleep_during_a_request_is_not_the_disk(void **state)
{
	WORK;

	scene_stay(&w.s, VICTIM, CALL_US + 10 * MS, 50 * MS, 0, 0, 0, "swapper");
	scene_io(&w.s, IO_READ, VICTIM, "python3", CALL_US, 90 * MS, 64);
	work_run(&w);
	assert_int_equal(w.l.count, 0);
}

static void test_the_last_stays_of_a_wait(void **state)
{
	WORK;
	int64_t end = SCENE_T0_NS + (CALL_US + 100 * MS) * 1000LL;

	scene_stay(&w.s, VICTIM, CALL_US + 10 * MS, 5 * MS, 5 * MS, WIRE_PREEMPTED, HOG, "hog");
	scene_stay(&w.s, VICTIM, CALL_US + 50 * MS, 20 * MS, 20 * MS, WIRE_PREEMPTED, HOG, "hog");
	scene_stay(&w.s, VICTIM, CALL_US + 70500, 29 * MS, 29 * MS, WIRE_PREEMPTED, HOG, "hog");
	work_run(&w);
	assert_int_equal(
		attribute_tail_ns(&w.x, VICTIM, end - 100 * MS * 1000, end), end - 50 * MS * 1000);
	assert_int_equal(attribute_tail_ns(&w.x, VICTIM, end - 40 * MS * 1000, end),
		end - 40 * MS * 1000); /* no earlier than the wait */
	assert_int_equal(attribute_tail_ns(&w.x, VICTIM, end - 100 * MS * 1000, end + 2000000),
		end + 2000000); /* it went on waiting */
	assert_int_equal(attribute_tail_ns(&w.x, VICTIM + 1, end - 100 * MS * 1000, end), end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_stays_of_a_wait),
		cmocka_unit_test(test_only_the_last_part_of_a_sleep_is_runnable),
		cmocka_unit_test(test_stays_are_clipped_to_the_call),
		cmocka_unit_test(test_a_woken_part_outside_the_call_does_not_count),
		cmocka_unit_test(test_wait_longer_than_the_stay),
		cmocka_unit_test(test_overlapping_stays_count_once),
		cmocka_unit_test(test_parts_shrink_to_the_excess),
		cmocka_unit_test(test_other_threads_do_not_count),
		cmocka_unit_test(test_disk_requests_at_the_time),
		cmocka_unit_test(test_request_of_another_thread_of_the_process),
		cmocka_unit_test(test_asleep_during_a_request_is_not_the_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
