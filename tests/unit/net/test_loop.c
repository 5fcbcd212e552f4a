/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/loop.h"

struct heard {
	struct loop *loop;
	char text[64];
	int fd;
};

static void note(struct heard *h, char c)
{
	size_t n = strlen(h->text);

	assert_true(n + 1 < sizeof(h->text));
	h->text[n] = c;
}

static void say_a(void *arg)
{
	note(arg, 'a');
}

static void say_b(void *arg)
{
	note(arg, 'b');
}

static void say_stop(void *arg)
{
	struct heard *h = arg;

	note(h, '.');
	loop_stop(h->loop);
}

static void begin(struct heard *h)
{
	*h = (struct heard){0};
	assert_int_equal(loop_new(&h->loop), 0);
}

static void test_calls_are_in_order(void **state)
{
	struct heard h;

	begin(&h);
	loop_call(h.loop, say_a, &h);
	loop_call(h.loop, say_b, &h);
	loop_call(h.loop, say_a, &h);
	loop_call(h.loop, say_stop, &h);
	assert_int_equal(loop_run(h.loop), 0);
	assert_string_equal(h.text, "aba.");
	loop_stop(h.loop); /* before the run: it ends at once */
	assert_int_equal(loop_run(h.loop), 0);
	loop_call(h.loop, say_a, &h); /* never run, and not lost memory */
	loop_free(h.loop);
}

/* Posts stand in the caller's memory, in one order with calls; a task may free what it is in. */
struct posted {
	struct loop_task task;
	struct heard *heard;
};

static void say_and_free(void *arg)
{
	struct posted *p = arg;

	note(p->heard, 'p');
	free(p);
}

static void test_posts(void **state)
{
	struct posted *own = malloc(sizeof(*own));
	struct loop_task tasks[3], never;
	struct heard h;

	begin(&h);
	own->heard = &h;
	loop_post(h.loop, &tasks[0], say_a, &h);
	loop_call(h.loop, say_b, &h);
	loop_post(h.loop, &own->task, say_and_free, own);
	loop_post(h.loop, &tasks[1], say_b, &h);
	loop_post(h.loop, &tasks[2], say_stop, &h);
	assert_int_equal(loop_run(h.loop), 0);
	assert_string_equal(h.text, "abpb.");
	loop_post(h.loop, &never, say_a, &h); /* never run, and not freed */
	loop_free(h.loop);
}

static void *call_often(void *arg)
{
	struct heard *h = arg;

	for (int i = 0; i < 20; i++)
		loop_call(h->loop, say_a, h);
	loop_call(h->loop, say_stop, h);
	return NULL;
}

static void test_calls_from_another_thread(void **state)
{
	pthread_t thread;
	struct heard h;

	begin(&h);
	assert_int_equal(pthread_create(&thread, NULL, call_often, &h), 0);
	assert_int_equal(loop_run(h.loop), 0);
	pthread_join(thread, NULL);
	assert_string_equal(h.text, "aaaaaaaaaaaaaaaaaaaa.");
	loop_free(h.loop);
}

static void test_timers(void **state)
{
	struct loop_timer *a, *b, *stop;
	struct heard h;

	begin(&h);
	assert_int_equal(loop_timer_new(h.loop, say_a, &h, &a), 0);
	assert_int_equal(loop_timer_new(h.loop, say_b, &h, &b), 0);
	assert_int_equal(loop_timer_new(h.loop, say_stop, &h, &stop), 0);
	loop_timer_set(b, 20 * NS_PER_MS);
	loop_timer_set(a, 0);
	loop_timer_set(stop, 60 * NS_PER_MS);
	assert_int_equal(loop_run(h.loop), 0);
	assert_string_equal(h.text, "ab.");
	loop_timer_set(a, 10 * NS_PER_MS);
	loop_timer_set(a, 10 * NS_PER_S); /* replaces */
	loop_timer_set(b, 20 * NS_PER_MS);
	loop_timer_clear(b);
	loop_timer_set(stop, 30 * NS_PER_MS);
	assert_int_equal(loop_run(h.loop), 0);
	assert_string_equal(h.text, "ab..");
	loop_timer_free(a);
	loop_timer_free(b);
	loop_timer_free(stop);
	loop_free(h.loop);
}

static void read_one(void *arg)
{
	struct heard *h = arg;
	char c = 0;

	if (read(h->fd, &c, 1) == 1) {
		note(h, c);
		return;
	}
	note(h, '$'); /* the other end is gone */
	loop_watch(h->loop, h->fd, NULL, NULL);
	loop_stop(h->loop);
}

static void test_watches(void **state)
{
	struct heard h;
	int fds[2];

	begin(&h);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	h.fd = fds[0];
	assert_int_equal(loop_watch(h.loop, fds[0], read_one, &h), 0);
	assert_int_equal(write(fds[1], "xyz", 3), 3);
	close(fds[1]);
	assert_int_equal(loop_run(h.loop), 0);
	assert_string_equal(h.text, "xyz$");
	close(fds[0]);
	loop_free(h.loop);
}

static void test_signals(void **state)
{
	struct heard h;

	begin(&h);
	assert_int_equal(loop_signal(h.loop, SIGUSR1, say_stop, &h), 0);
	for (int i = 0; i < 2; i++) {
		raise(SIGUSR1);
		assert_int_equal(loop_run(h.loop), 0);
	}
	assert_string_equal(h.text, "..");
	loop_free(h.loop);
}

/* A peer that is gone is an error of write(2), not the end of the program. */
static void test_no_sigpipe(void **state)
{
	struct heard h;
	int fds[2];

	begin(&h);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(write(fds[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(fds[1]);
	loop_free(h.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_are_in_order),
		cmocka_unit_test(test_posts),
		cmocka_unit_test(test_calls_from_another_thread),
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_watches),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_no_sigpipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
