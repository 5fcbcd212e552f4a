/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_open.c - in which time of a unit the GPU may have work of a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/units/boundaries.h"
#include "ledger_fixture.h"

#define SCENE _cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s))

enum { STEPS = 20 };

/* Of all units but the first the same: what it is. */
static uint64_t open_of(struct ledger_scene *s, const struct aggregate *calls, size_t call_count)
{
	struct recording rec = ledger_recording(s);
	struct timeline timeline;
	struct step_table waits;
	struct step_spans spans;
	uint64_t ns;

	rec.aggregates = calls;
	rec.aggregate_count = call_count;
	assert_int_equal(timeline_make(&rec, &timeline), 0);
	assert_int_equal(steps_find(&rec, &waits), 0);
	assert_int_equal(boundaries_find(&timeline, &waits, JOB, &spans), 0);
	assert_true(spans.count >= STEPS - 2);
	ns = spans.items[1].open_ns;
	for (size_t i = 1; i < spans.count; i++)
		assert_int_equal(spans.items[i].open_ns, ns);
	boundaries_done(&spans);
	steps_done(&waits);
	timeline_done(&timeline);
	return ns;
}

static void ask(struct ledger_thread *t)
{
	spend(t, LEDGER_RUN, MS(1));
	stay(t, LEDGER_SOCKET, MS(40), 0, 0, 0);
}

static void compute(struct ledger_thread *t)
{
	spend(t, LEDGER_RUN, MS(1));
	spend(t, LEDGER_LAUNCH, MS(1));
}

static void wait(struct ledger_thread *t)
{
	spend(t, LEDGER_GPU_WAIT, MS(3));
	mark(t, MARK_WAIT);
}

static void test_from_the_first_launch_to_the_wait(void **state)
{
	SCENE;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	for (int i = 0; i < STEPS; i++) {
		mark(&t, MARK_OPTIMIZER);
		ask(&t);
		compute(&t);
		wait(&t);
	}
	assert_int_equal(open_of(s, NULL, 0), MS(5));
}

static void test_work_that_is_given_before(void **state)
{
	SCENE;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	for (int i = 0; i < STEPS; i++) {
		mark(&t, MARK_OPTIMIZER);
		compute(&t);
		ask(&t);
		wait(&t);
		ask(&t);
	}
	assert_int_equal(open_of(s, NULL, 0), MS(2 + 41 + 3));
}

/* A thread that gives work and never waits for it: another one does. */
static void test_autograd(void **state)
{
	SCENE;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread a = thread_at(s, JOB, AUTOGRAD, "pt_autograd_0", LEDGER_T0);

	for (int i = 0; i < STEPS; i++) {
		mark(&t, MARK_OPTIMIZER);
		ask(&t);
		stay(&a, LEDGER_LOCK, MS(41), 0, JOB, MAIN);
		spend(&a, LEDGER_LAUNCH, MS(2));
		mark(&a, MARK_BACKWARD);
		stay(&t, LEDGER_LOCK, MS(2), 0, JOB, AUTOGRAD);
		wait(&t);
		stay(&a, LEDGER_LOCK, MS(3), 0, JOB, MAIN);
	}
	assert_int_equal(open_of(s, NULL, 0), MS(2 + 3));
}

/* After a wait for an event there may be more, and where launches are not probed there may be some. */
static void test_what_is_not_known(void **state)
{
	SCENE;
	struct aggregate calls = {.pid = JOB, .source = SOURCE_CUDA, .op = CUDA_EVENT_SYNC};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	calls.sketch.count = STEPS;
	for (int i = 0; i < STEPS; i++) {
		mark(&t, MARK_OPTIMIZER);
		t.row.launches_off = 1;
		ask(&t);
		compute(&t);
		wait(&t);
	}
	assert_int_equal(open_of(s, NULL, 0), MS(46));
	assert_int_equal(open_of(s, &calls, 1), 0);
	calls.op = CUDA_STREAM_SYNC;
	assert_int_equal(open_of(s, &calls, 1), MS(46));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_the_first_launch_to_the_wait),
		cmocka_unit_test(test_work_that_is_given_before),
		cmocka_unit_test(test_autograd),
		cmocka_unit_test(test_what_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
