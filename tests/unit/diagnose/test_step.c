/* SPDX-License-Identifier: Apache-2.0 */
/* test_step.c - steps are found where waits repeat, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/units/step.h"
#include "scene.h"

#define SCENE _cleanup_(scene_done) struct scene s = {.seed = 1}
enum { SERVER = 4242 };

#define STEPS _cleanup_(steps_done) struct step_table t = {0}

static const struct step_list *find(const struct scene *s, struct step_table *t)
{
	struct recording rec = scene_recording(s);

	assert_int_equal(steps_find(&rec, t), 0);
	return steps_of(t, VICTIM);
}

static void sync_on(struct scene *s, uint64_t stream, int64_t at_us, int64_t dur_us)
{
	scene_call(s, CUDA_STREAM_SYNC, at_us, dur_us)->arg0 = stream;
}

static void test_one_wait_a_step(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;

	for (int i = 0; i < 101; i++)
		sync_on(&s, 7, i * 25000, 5000 + (i == 50 ? 15000 : 0));
	scene_aggregate(&s);
	l = find(&s, &t);
	assert_non_null(l);
	assert_int_equal(l->count, 100);
	assert_int_equal(l->ordinary_ns, 25000000);
	assert_true(l->confidence > 0.9);
	assert_int_equal(l->items[0].start_ns, SCENE_T0_NS + 5000000);
	assert_int_equal(l->items[49].end_ns - l->items[49].start_ns, 40000000);
	assert_null(steps_of(&t, HOG));
}

/* Two streams, four micro-batches with an event each, and a device sync of a logger now and then.
 */
static void test_the_last_wait_of_a_pattern_closes(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;

	for (int i = 0; i < 101; i++) {
		for (int k = 0; k < 4; k++)
			scene_call(&s, CUDA_EVENT_SYNC, i * 25000 + k * 4000, 1000)->arg0 =
				1000 + (uint64_t)(i * 4 + k);
		sync_on(&s, 7, i * 25000 + 17000, 1000);
		sync_on(&s, 8, i * 25000 + 18100, 500);
		if (i % 50 == 49)
			scene_call(&s, CUDA_DEVICE_SYNC, i * 25000 + 19000, 100);
	}
	scene_aggregate(&s);
	l = find(&s, &t);
	assert_non_null(l);
	assert_int_equal(l->count, 100);
	assert_int_equal(l->items[0].end_ns, SCENE_T0_NS + (25000 + 18600) * 1000);
}

/* Five requests at a time, whose results are fetched one right after the other: 20 ms, not 40 us. */
static void test_waits_in_bursts_are_one_step(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;

	for (int i = 0; i < 101; i++)
		for (int k = 0; k < 5; k++)
			sync_on(&s, 7, i * 20000 + k * 40, k ? 5 : 30);
	scene_aggregate(&s);
	l = find(&s, &t);
	assert_non_null(l);
	assert_in_range(l->count, 99, 101);
	assert_int_equal(l->ordinary_ns, 20000000);
}

/* As many short ones, but with a tenth of the time: steps of their own. */
static void test_short_steps_stay_steps(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;

	for (int i = 0; i < 101; i++)
		for (int k = 0; k < 20; k++)
			sync_on(&s, 7, i * 20000 + k * 150, 30);
	scene_aggregate(&s);
	l = find(&s, &t);
	assert_non_null(l);
	assert_in_range(l->count, 2000, 2019);
}

static void test_stacks_tell_places_apart(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;

	for (int i = 0; i < 201; i++) {
		sync_on(&s, 0, i * 25000, 1000);
		s.events[s.event_count - 1].stack_hash = 11;
		if (i % 2)
			continue;
		sync_on(&s, 0, i * 25000 + 20000, 1000);
		s.events[s.event_count - 1].stack_hash = 12; /* every second time round */
	}
	scene_aggregate(&s);
	l = find(&s, &t);
	assert_non_null(l);
	assert_int_equal(l->count, 100);
	assert_int_equal(l->ordinary_ns, 50000000);
}

/* At first the stacks cannot be walked to their end: another hash, the same place. */
static void test_early_stacks_differ(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;

	for (int i = 0; i < 1001; i++) {
		sync_on(&s, 0, i * 5000, 3000);
		s.events[s.event_count - 1].stack_hash = i < 80 ? 11 : 12;
	}
	scene_aggregate(&s);
	l = find(&s, &t);
	assert_non_null(l);
	assert_int_equal(l->count, 1000);
}

/* Six streams that are waited for in turn: the first one takes long, and the others once, in the warm-up, and since
 * the last hundred times round. These are no steps of another kind: each step ends with the last stream. */
static void test_waits_that_became_long(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;
	int64_t at = 0;

	for (int i = 0; i < 601; i++) {
		bool slow = i >= 500 || i == 0;

		for (uint64_t k = 0; k < 6; k++) {
			int64_t dur = slow || k == 0 ? 3000 : 5;

			sync_on(&s, 7 + k, at, dur);
			at += dur + 10;
		}
		at += 100;
	}
	scene_aggregate(&s);
	l = find(&s, &t);
	assert_non_null(l);
	assert_int_equal(l->count, 600);
	assert_int_equal(l->ordinary_ns, 3185000);
	assert_int_equal(l->items[550].end_ns - l->items[550].start_ns, 18160000);
}

static void test_a_selection_has_no_steps(void **state)
{
	SCENE;
	STEPS;

	for (int i = 0; i < 101; i++)
		sync_on(&s, 7, i * 25000, 5000);
	assert_null(find(&s, &t)); /* no aggregates: a published file */
	steps_done(&t);
	scene_aggregate(&s);
	s.aggregates[0].stored -= 30; /* --stack-samples */
	assert_null(find(&s, &t));
	steps_done(&t);
	s.aggregates[0].stored += 30;
	assert_non_null(find(&s, &t));
}

static void test_no_pattern_no_steps(void **state)
{
	SCENE;
	STEPS;

	for (int i = 0; i < 300; i++) {
		sync_on(&s, 1 + scene_random(&s, 5), i * 10000, 1000);
		s.events[s.event_count - 1].stack_hash = 1 + scene_random(&s, 1000);
	}
	scene_aggregate(&s);
	assert_null(find(&s, &t));
}

static void test_hostile(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;

	assert_null(find(&s, &t));
	steps_done(&t);
	sync_on(&s, 7, 0, 10);
	scene_aggregate(&s);
	assert_null(find(&s, &t));
	steps_done(&t);
	for (int i = 0; i < 40; i++) {
		sync_on(&s, 7, i * 25000, 10);
		if (i % 3 == 0)
			s.events[s.event_count - 1].dur_ns = UINT64_MAX;
		if (i % 5 == 0)
			s.events[s.event_count - 1].start.ns = INT64_MIN + i;
	}
	s.aggregates[0].sketch.count = s.aggregates[0].stored = UINT64_MAX;
	l = find(&s, &t);
	assert_non_null(l);
	assert_true(l->count >= 12);
	for (size_t k = 0; k < l->count; k++)
		assert_true(l->items[k].start_ns <= l->items[k].end_ns);
}

/* The main thread waits for each of the many copies of a model; another one serves with it, and waits less often. */
static void test_the_thread_that_goes_on(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;

	for (int i = 0; i < 300; i++)
		sync_on(&s, 7, i * 100, 20);
	for (int i = 0; i < 101; i++) {
		struct event *e = scene_call(&s, CUDA_STREAM_SYNC, 100000 + i * 25000, 5000);

		e->arg0 = 8;
		e->tid = SERVER;
	}
	scene_aggregate(&s);
	l = find(&s, &t);
	assert_non_null(l);
	assert_int_equal(l->tid, SERVER);
	assert_int_equal(l->count, 100);
	assert_int_equal(l->ordinary_ns, 25000000);
}

/* The same in one thread: a loop with a wait of another kind now and then is half of the time, if not of the waits. */
static void test_a_loop_after_many_waits(void **state)
{
	SCENE;
	STEPS;
	const struct step_list *l;

	for (int i = 0; i < 300; i++)
		scene_call(&s, CUDA_DEVICE_SYNC, i * 100, i % 7 ? 20 : 30)->stack_hash =
			1 + (uint64_t)(i * i % 11);
	for (int i = 0; i < 101; i++) {
		sync_on(&s, 8, 100000 + i * 25000, 5000);
		if (i % 20 == 10)
			scene_call(&s, CUDA_DEVICE_SYNC, 100000 + i * 25000 + 10000, 100);
	}
	scene_aggregate(&s);
	l = find(&s, &t);
	assert_non_null(l);
	assert_int_equal(l->count, 100);
	assert_int_equal(l->ordinary_ns, 25000000);
}

/* A model's copy to the GPU waits where a logger does later: together they are rarer than the loop's own waits. */
static void test_a_loop_after_a_set_up(void **state)
{
	enum { UPLOADS = 200, LOOPS = 251, EACH_US = 25000 };
	static struct ledger_row rows[UPLOADS + LOOPS];
	SCENE;
	STEPS;
	struct recording rec;
	const struct step_list *l;

	for (int i = 0; i < UPLOADS + LOOPS; i++) {
		bool copies = i < UPLOADS;
		int64_t at_us = copies ? i * 100 : 100000 + (i - UPLOADS) * EACH_US;

		if (copies)
			sync_on(&s, 7, at_us, 20);
		else
			sync_on(&s, 8, at_us, 5000);
		if (!copies && i % 60 == 0)
			sync_on(&s, 7, at_us + 6000, 20);
		rows[i] = (struct ledger_row){.start.ns = SCENE_T0_NS + at_us * 1000,
			.dur_ns = 20000,
			.pid = VICTIM,
			.tid = VICTIM,
			.waits = 1,
			.copies = copies,
			.launches = copies ? 0 : 900};
	}
	scene_aggregate(&s);
	rec = scene_recording(&s);
	assert_int_equal(steps_find(&rec, &t), 0);
	assert_null(steps_of(&t, VICTIM)); /* control: launches tell a set-up */
	steps_done(&t);
	rec.ledger = rows;
	rec.ledger_count = ARRAY_SIZE(rows);
	assert_int_equal(steps_find(&rec, &t), 0);
	l = steps_of(&t, VICTIM);
	assert_non_null(l);
	assert_int_equal(l->count, LOOPS - 1);
	assert_int_equal(l->ordinary_ns, EACH_US * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_wait_a_step),
		cmocka_unit_test(test_the_last_wait_of_a_pattern_closes),
		cmocka_unit_test(test_waits_in_bursts_are_one_step),
		cmocka_unit_test(test_short_steps_stay_steps),
		cmocka_unit_test(test_stacks_tell_places_apart),
		cmocka_unit_test(test_early_stacks_differ),
		cmocka_unit_test(test_waits_that_became_long),
		cmocka_unit_test(test_the_thread_that_goes_on),
		cmocka_unit_test(test_a_loop_after_many_waits),
		cmocka_unit_test(test_a_loop_after_a_set_up),
		cmocka_unit_test(test_a_selection_has_no_steps),
		cmocka_unit_test(test_no_pattern_no_steps),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
