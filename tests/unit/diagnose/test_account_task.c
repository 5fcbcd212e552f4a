/* SPDX-License-Identifier: Apache-2.0 */
/* test_account_task.c - the accounts are the same whoever makes them, and are made once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/contrasts/account_task.h"
#include "scene.h"

/* A job of @steps steps, with ten calls each. */
static void steps_scene(struct scene *s, int steps)
{
	for (int i = 0; i < steps; i++) {
		for (int k = 0; k < 9; k++)
			scene_call(s, CUDA_LAUNCH, i * 10000 + k * 100, 50);
		scene_call(s, CUDA_STREAM_SYNC, i * 10000 + 1000, i % 50 ? 8000 : 8900);
	}
	scene_aggregate(s);
}

static struct recording recording(const struct scene *s)
{
	return (struct recording){.events = s->events,
		.event_count = s->event_count,
		.aggregates = s->aggregates,
		.aggregate_count = s->aggregate_count,
		.node = "n1"};
}

static void expect_same(const struct step_report *a, const struct step_report *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_int_equal(a->items[i].pid, b->items[i].pid);
		assert_int_equal(a->items[i].steps, b->items[i].steps);
		assert_memory_equal(
			a->items[i].total_ns, b->items[i].total_ns, sizeof(a->items[i].total_ns));
	}
}

static void test_beside_is_the_same(void **state)
{
	static const int sizes[] = {20, 10500}; /* the larger one gets a thread */

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct account_task beside = {0}, at_once = {0}, own = {0};
		const struct step_report *got = NULL;
		struct scene s = {0};
		struct recording rec;

		steps_scene(&s, sizes[i]);
		rec = recording(&s);
		account_task_begin(&at_once, &rec, false);
		assert_false(at_once.has_thread);
		assert_int_equal(account_task_end(&at_once), 0);
		assert_int_equal(at_once.report.count, 1);
		rec.accounts = &beside;
		account_task_begin(&beside, &rec, true);
		assert_int_equal(beside.has_thread, i == 1);
		assert_int_equal(account_get(&rec, &own, &got), 0);
		assert_ptr_equal(got, &beside.report);
		assert_null(own.rec); /* not made again */
		assert_int_equal(account_task_end(&beside), 0);
		expect_same(got, &at_once.report);
		account_task_done(&beside);
		account_task_done(&at_once);
		account_task_done(&own);
		scene_done(&s);
	}
}

static void test_made_when_needed(void **state)
{
	struct account_task own = {0};
	const struct step_report *got = NULL;
	struct scene s = {0};
	struct recording rec;

	steps_scene(&s, 20);
	rec = recording(&s);
	assert_int_equal(account_get(&rec, &own, &got), 0);
	assert_ptr_equal(got, &own.report);
	assert_int_equal(got->count, 1);
	account_task_done(&own);
	scene_done(&s);
}

/* One that nobody asks ends with its owner. */
static void test_dropped(void **state)
{
	struct account_task t = {0};
	struct scene s = {0};
	struct recording rec;

	account_task_done(&t); /* never begun */
	steps_scene(&s, 10500);
	rec = recording(&s);
	account_task_begin(&t, &rec, true);
	account_task_done(&t);
	scene_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside_is_the_same),
		cmocka_unit_test(test_made_when_needed),
		cmocka_unit_test(test_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
