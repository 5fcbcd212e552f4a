/* SPDX-License-Identifier: Apache-2.0 */
/* test_attribute_pause.c - what a pause between calls was spent on, to the microsecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/calls/attribute.h"
#include "scene.h"

#define AT_US 1000000 /* the pause: 20 ms from here, 19 of them in excess */

struct work {
	struct scene s;
	struct attribution_index x;
	struct part_list l;
};

static void work_done(struct work *w)
{
	part_list_done(&w->l);
	attribute_index_done(&w->x);
	scene_done(&w->s);
}

#define WORK _cleanup_(work_done) struct work w = {.s.seed = 1}

static void work_run(struct work *w)
{
	struct recording rec = scene_recording(&w->s);
	struct span span = {.start_ns = SCENE_T0_NS + AT_US * 1000LL,
		.end_ns = SCENE_T0_NS + (AT_US + 20000) * 1000LL,
		.excess_ns = 19000000,
		.tid = VICTIM,
		.pid = VICTIM};
	uint64_t sum = 0;

	assert_int_equal(attribute_index_spans(&rec, &span, 1, &w->x), 0);
	assert_int_equal(attribute_pause(&rec, &w->x, &span, 0, &w->l), 0);
	for (size_t i = 0; i < w->l.count; i++) {
		assert_true(w->l.items[i].start_ns >= span.start_ns);
		assert_true(w->l.items[i].end_ns <= span.end_ns);
		sum += w->l.items[i].ns;
	}
	assert_true(sum <= span.excess_ns);
}

/* In percent of the pause: the parts are scaled from 20 ms to the excess of 19. */
static uint64_t percent(const struct work *w, enum cause cause)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < w->l.count; i++)
		if (w->l.items[i].cause == cause)
			ns += w->l.items[i].ns;
	return (ns + 95000) / 190000;
}

static void test_all_kinds(void **state)
{
	struct event *e;

	WORK;
	scene_stay(&w.s, VICTIM, AT_US - 1000, 3000, 0, 0, 0, ""); /* asleep: 2 ms inside */
	e = scene_add(&w.s, SOURCE_NET, NET_RECV, VICTIM, VICTIM, AT_US + 3000, 4000);
	e->wait_ns = 1;
	scene_stay(&w.s, VICTIM, AT_US + 3000, 4000, 1000, 0, HOG, "hog"); /* 3 asleep, 1 queued */
	scene_stay(&w.s, VICTIM, AT_US + 8000, 4000, 4000, WIRE_PREEMPTED, HOG, "hog");
	scene_stay(&w.s, VICTIM, AT_US + 13000, 2000, 0, WIRE_UNINTERRUPTIBLE, 0, "");
	scene_io(&w.s, IO_WRITE, VICTIM, "python3", AT_US + 13000, 500, 64);
	scene_add(&w.s, SOURCE_HOST, HOST_DIRECT_RECLAIM, VICTIM, VICTIM, AT_US + 16000, 1000);
	work_run(&w);
	assert_int_equal(percent(&w, CAUSE_ASLEEP), 10);
	assert_int_equal(percent(&w, CAUSE_NETWORK), 15);
	assert_int_equal(percent(&w, CAUSE_RUN_QUEUE), 5);
	assert_int_equal(percent(&w, CAUSE_PREEMPTED), 20);
	assert_int_equal(percent(&w, CAUSE_BLOCK_IO), 10); /* the file system's requests too */
	assert_int_equal(percent(&w, CAUSE_RECLAIM), 5);
	assert_int_equal(percent(&w, CAUSE_HOST_CODE), 35);
}

static void test_blocked_without_a_request_is_a_file_system(void **state)
{
	WORK;
	scene_stay(&w.s, VICTIM, AT_US, 20000, 0, WIRE_UNINTERRUPTIBLE, 0, "");
	scene_io(&w.s, IO_WRITE, HOG, "hog", AT_US, 20000, 64);
	work_run(&w);
	assert_int_equal(percent(&w, CAUSE_BLOCK_IO), 100);
}

static void test_other_threads_do_not_count(void **state)
{
	WORK;
	scene_stay(&w.s, VICTIM + 1, AT_US, 20000, 20000, WIRE_PREEMPTED, HOG, "hog");
	work_run(&w);
	assert_int_equal(w.l.count, 0); /* nor is it known that the thread ran */
	scene_stay(&w.s, VICTIM, 0, 10, 0, 0, 0, "");
	attribute_index_done(&w.x);
	work_run(&w);
	assert_int_equal(percent(&w, CAUSE_HOST_CODE), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_blocked_without_a_request_is_a_file_system),
		cmocka_unit_test(test_other_threads_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
