/* SPDX-License-Identifier: Apache-2.0 */
/* Long work beside the loop: where its parts run, what the loop does meanwhile, and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>

#include "net/loop.h"

struct rig {
	struct loop *loop;
	struct aside *aside;
	pthread_t loop_thread, work_thread;
	size_t questions, ended, canceled, others;
	int answer, last;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	assert_int_equal(loop_new(&r->loop), 0);
	assert_int_equal(aside_new(r->loop, 2, &r->aside), 0);
	r->loop_thread = pthread_self();
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	if (r->aside)
		aside_free(r->aside);
	loop_free(r->loop);
	free(r);
	return 0;
}

static int question(void *arg)
{
	struct rig *r = arg;

	assert_true(pthread_equal(pthread_self(), r->loop_thread));
	r->questions++;
	return r->answer;
}

#define QUESTIONS 50

static void work(struct aside_work *w, void *arg)
{
	struct rig *r = arg;

	r->work_thread = pthread_self();
	for (int i = 0; i < QUESTIONS; i++)
		r->last = aside_ask(w, question, r);
}

static void on_end(void *arg, bool canceled)
{
	struct rig *r = arg;

	assert_true(pthread_equal(pthread_self(), r->loop_thread));
	r->ended++;
	r->canceled += canceled;
	loop_stop(r->loop);
}

static void test_who_does_what(void **state)
{
	struct rig *r = *state;

	r->answer = -EACCES;
	assert_int_equal(aside_push(r->aside, 1, work, on_end, r), 0);
	assert_int_equal(r->questions, 0); /* nothing before the loop runs */
	loop_run(r->loop);
	assert_int_equal(r->ended, 1);
	assert_int_equal(r->canceled, 0);
	assert_int_equal(r->questions, QUESTIONS);
	assert_int_equal(r->last, -EACCES);
	assert_false(pthread_equal(r->work_thread, r->loop_thread));
}

static void other(void *arg)
{
	struct rig *r = arg;

	r->others++;
	if (!r->ended)
		loop_call(r->loop, other, r);
}

/* Others have a turn after each question. */
static void test_others_have_their_turn(void **state)
{
	struct rig *r = *state;

	assert_int_equal(aside_push(r->aside, 1, work, on_end, r), 0);
	assert_int_equal(loop_call(r->loop, other, r), 0);
	loop_run(r->loop);
	assert_int_equal(r->ended, 1);
	assert_true(r->others >= QUESTIONS / 2);
}

static void hold(struct aside_work *w, void *arg)
{
	aside_ask(w, question, arg);
}

/* One runs, which waits for the loop, and two wait: there is no place for the next. */
static void test_queue_has_an_end(void **state)
{
	struct rig *r = *state;
	int taken = 0;

	for (uint64_t i = 0; i < 20; i++)
		taken += aside_push(r->aside, i, hold, on_end, r) == 0;
	assert_in_range(taken, 2, 3);
	assert_int_equal(aside_push(r->aside, 99, hold, on_end, r), -EBUSY);
	while (r->ended < (size_t)taken)
		loop_run(r->loop);
	assert_int_equal(r->questions, taken);
	assert_int_equal(aside_push(r->aside, 99, hold, on_end, r), 0); /* the control */
	loop_run(r->loop);
	assert_int_equal(r->ended, taken + 1);
}

/* It goes while the thread waits for an answer, and while work waits for the thread. */
static void test_free_while_it_asks(void **state)
{
	struct rig *r = *state;

	assert_int_equal(aside_push(r->aside, 1, work, on_end, r), 0);
	assert_int_equal(aside_push(r->aside, 2, work, on_end, r), 0);
	aside_free(r->aside);
	r->aside = NULL;
	while (r->ended < 2)
		loop_run(r->loop);
	assert_int_equal(r->canceled, 2);
	assert_int_equal(r->questions, 0);
	assert_int_equal(r->last, -ECANCELED);
}

#define ASIDE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ASIDE_TEST(test_who_does_what),
		ASIDE_TEST(test_others_have_their_turn),
		ASIDE_TEST(test_queue_has_an_end),
		ASIDE_TEST(test_free_while_it_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
