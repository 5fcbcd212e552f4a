/* SPDX-License-Identifier: Apache-2.0 */
/* test_time_request.c - the same words mean the same time, whoever is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "answer/answer.h"

#define S(n) ((int64_t)(n) * (int64_t)NS_PER_S)

static const struct time_end saved = {.range = {S(1000), S(2000)}, .flag = ""};
static const struct time_end live = {.range = {S(1000), S(2000)}, .live = true, .flag = ""};

static struct scope resolved(struct time_request t, const struct time_end *end, uint64_t otherwise)
{
	struct errinfo e = {0};
	struct scope s = {0};

	assert_int_equal(time_request_resolve(&t, end, otherwise, &s, &e), 0);
	return s;
}

static void assert_time(struct scope got, int64_t from_ns, int64_t to_ns)
{
	assert_int_equal(got.from_ns, from_ns);
	assert_int_equal(got.to_ns, to_ns);
}

static void test_defaults(void **state)
{
	assert_time(resolved((struct time_request){0}, &saved, 0), S(1000), S(2000));
	assert_time(resolved((struct time_request){0}, &saved, 60 * NS_PER_S), S(1940), S(2000));
	assert_time(resolved((struct time_request){0}, &live, 0), S(1700), S(2000));
	assert_time(resolved((struct time_request){.all = true}, &live, 60), S(1000), S(2000));
}

static void test_relative_to_the_end(void **state)
{
	struct time_end now = live;

	now.live_ns = S(2100);
	assert_time(resolved((struct time_request){.since_ns = 10 * NS_PER_S}, &live, 0), S(1990),
		S(2000));
	assert_time(resolved((struct time_request){.since_ns = 10 * NS_PER_S}, &now, 0), S(2090),
		S(2100));
	now.live = false; /* then it ended when it ended */
	assert_time(resolved((struct time_request){.since_ns = 10 * NS_PER_S}, &now, 0), S(1990),
		S(2000));
	/* no sooner than it began */
	assert_time(resolved((struct time_request){.since_ns = UINT64_MAX}, &saved, 0), S(1000),
		S(2000));
}

/* Samples go on while a workload hangs. */
static void test_a_live_one_ends_with_its_last_event(void **state)
{
	struct time_end hung = live;

	hung.live_ns = S(1500);
	assert_time(resolved((struct time_request){0}, &hung, 0), S(1200), S(1500));
	assert_time(resolved((struct time_request){.since_ns = 10 * NS_PER_S}, &hung, 0), S(1990),
		S(2000)); /* control: asked for, it is the end */
}

static void test_from_and_to(void **state)
{
	struct time_request backwards = {
		.from = "1970-01-01T00:30:00Z", .to = "1970-01-01T00:20:00Z"};
	struct errinfo e = {0};
	struct scope s = {0};

	assert_time(resolved((struct time_request){.from = "1970-01-01T00:20:00Z"}, &saved, 0),
		S(1200), S(2000));
	assert_int_equal(
		resolved((struct time_request){.to = "1970-01-01T00:30:00Z"}, &saved, 0).from_ns,
		S(1000));
	assert_int_equal(time_request_resolve(&backwards, &saved, 0, &s, &e), -EINVAL);
	backwards.from = "x\x1b";
	assert_int_equal(time_request_resolve(&backwards, &saved, 0, &s, &e), -EINVAL);
	assert_null(strchr(e.text, '\x1b'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_relative_to_the_end),
		cmocka_unit_test(test_a_live_one_ends_with_its_last_event),
		cmocka_unit_test(test_from_and_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
