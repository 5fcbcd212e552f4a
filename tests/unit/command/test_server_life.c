/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/macros.h"
#include "command/server_access.h"

struct trial {
	struct server_life life;
	int drains, reloads, readies;
	bool ends; /* replies under way end at once */
};

static void drain(void *arg)
{
	struct trial *t = arg;

	t->drains++;
	if (t->ends)
		server_life_over(&t->life);
	else
		raise(SIGINT); /* the second one */
}

static void reload(void *arg)
{
	struct trial *t = arg;

	t->reloads++;
	raise(SIGTERM);
}

static void ready(void *arg)
{
	((struct trial *)arg)->readies++;
}

/* Runs until the loop ends, from @signal on. */
static struct trial play(int signal, bool ends, uint64_t patience_ns)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct errinfo e = {0};
	struct trial t = {.ends = ends};

	assert_int_equal(loop_new(&loop), 0);
	t.life = (struct server_life){.loop = loop,
		.patience_ns = patience_ns,
		.drain = drain,
		.reload = reload,
		.ready = ready,
		.arg = &t};
	assert_int_equal(server_life_watch(&t.life, &e), 0);
	raise(signal);
	assert_int_equal(server_life_run(&t.life, &e), 0);
	server_life_done(&t.life);
	assert_null(t.life.patience);
	return t;
}

static void test_it_ends_when_nothing_is_under_way(void **state)
{
	struct trial t = play(SIGTERM, true, 3600 * NS_PER_S);

	assert_int_equal(t.drains, 1);
	assert_int_equal(t.reloads, 0);
	assert_int_equal(t.readies, 1);
}

static void test_a_second_signal_does_not_wait(void **state)
{
	struct trial t = play(SIGINT, false, 3600 * NS_PER_S);

	assert_int_equal(t.drains, 1);
	assert_true(t.life.stopping);
}

static void test_a_hangup_reads_files_again(void **state)
{
	struct trial t = play(SIGHUP, true, 3600 * NS_PER_S);

	assert_int_equal(t.reloads, 1);
	assert_int_equal(t.readies, 2);
	assert_int_equal(t.drains, 1); /* by the signal that followed */
}

static void hold(void *arg)
{
	((struct trial *)arg)->drains++;
}

static void test_patience_has_an_end(void **state)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct errinfo e = {0};
	struct trial t = {0};

	assert_int_equal(loop_new(&loop), 0);
	t.life = (struct server_life){
		.loop = loop, .patience_ns = 1000000, .drain = hold, .reload = reload, .arg = &t};
	assert_int_equal(server_life_watch(&t.life, &e), 0);
	raise(SIGTERM);
	loop_run(loop);
	assert_int_equal(t.drains, 1);
	server_life_done(&t.life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_ends_when_nothing_is_under_way),
		cmocka_unit_test(test_a_second_signal_does_not_wait),
		cmocka_unit_test(test_a_hangup_reads_files_again),
		cmocka_unit_test(test_patience_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
