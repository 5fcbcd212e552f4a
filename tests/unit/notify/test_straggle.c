/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "notify/remediate/remediate.h"
#include "wire/ids.h"

static struct straggle s;
static uint64_t launches; /* of process 1, so far */
static int told;
static struct straggle_verdict last;
static uint32_t preemptor;

static int setup(void **state)
{
	straggle_init(&s);
	launches = 0;
	return 0;
}

static int teardown(void **state)
{
	straggle_done(&s);
	return 0;
}

static void take(void *arg, const struct straggle_verdict *v)
{
	told++;
	last = *v;
	preemptor = v->process->preemptor_count ? v->process->preemptors[0] : 0;
}

/* A second in which process 1 launches @count kernels and is kept from a CPU @switches times. */
static int second(uint64_t count, int switches)
{
	const struct event e = {.source = SOURCE_HOST,
		.op = HOST_SCHED_SWITCH,
		.pid = 1,
		.wait_ns = 1000,
		.peer_pid = 99};

	launches += count;
	straggle_launches(&s, 1, "train", launches / 2);
	straggle_launches(&s, 1, "train", launches - launches / 2); /* by two functions */
	for (int i = 0; i < switches; i++)
		straggle_take(&s, &e);
	told = 0;
	straggle_second(&s, (wall_time){(int64_t)launches}, take, NULL);
	return told;
}

static void test_fewer_launches_for_want_of_a_cpu(void **state)
{
	for (int i = 0; i < 5; i++)
		assert_int_equal(second(1000, 20), 0); /* many switches, as many launches */
	assert_int_equal(second(500, 4), 0);           /* fewer launches, few switches */
	for (int i = 0; i < 30; i++)
		assert_int_equal(second(1000, 0), 0);
	assert_int_equal(second(750, 20), 0); /* not few enough */
	for (int i = 0; i < 30; i++)
		second(1000, 0);
	assert_int_equal(second(600, 5), 1);
	assert_false(last.sustained);
	assert_true(last.drop_pct > 39 && last.drop_pct < 41);
	assert_int_equal(preemptor, 99);
	assert_int_equal(second(900, 5), 1); /* it lasts while it is kept from its CPU */
	assert_true(last.sustained);
	assert_int_equal(second(1000, 4), 0);
}

static void test_no_verdict_before_the_warm_up(void **state)
{
	second(1000, 0);
	second(1000, 0);
	assert_int_equal(second(100, 50), 0);
	for (int i = 0; i < 10; i++)
		second(1000, 0);
	assert_int_equal(second(100, 50), 1);
}

static void test_the_ordinary_stands_still_meanwhile(void **state)
{
	for (int i = 0; i < 10; i++)
		second(1000, 0);
	for (int i = 0; i < 60; i++)
		assert_int_equal(second(300, 10), 1);
	assert_true(last.drop_pct > 69 && last.drop_pct < 71);
}

static void test_who_is_done_is_forgotten(void **state)
{
	const struct event exit = {.source = SOURCE_HOST, .op = HOST_PROCESS_EXIT, .pid = 1};

	second(1000, 0);
	assert_int_equal(s.processes.used, 1);
	straggle_take(&s, &exit);
	assert_int_equal(s.processes.used, 0);
	second(1000, 0);
	for (int i = 0; i < 31; i++)
		straggle_second(&s, (wall_time){i}, take, NULL);
	assert_int_equal(s.processes.used, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fewer_launches_for_want_of_a_cpu),
		TEST(test_no_verdict_before_the_warm_up),
		TEST(test_the_ordinary_stands_still_meanwhile),
		TEST(test_who_is_done_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
