/* SPDX-License-Identifier: Apache-2.0 */
/* test_verdict.c - which replies are worth another attempt, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deliver/backlog.h"

static void test_http(void **state)
{
	for (int status = 100; status < 600; status++) {
		enum backlog_outcome want = BACKLOG_REFUSED;

		if (status >= 200 && status < 300)
			want = BACKLOG_SENT;
		if (status == 429 || status == 502 || status == 503 || status == 504)
			want = BACKLOG_AGAIN;
		assert_int_equal(verdict_http(status), want);
	}
}

static void test_grpc(void **state)
{
	static const enum backlog_outcome want[] = {BACKLOG_SENT, BACKLOG_AGAIN, BACKLOG_REFUSED,
		BACKLOG_REFUSED, BACKLOG_AGAIN, BACKLOG_REFUSED, BACKLOG_REFUSED, BACKLOG_REFUSED,
		BACKLOG_REFUSED, BACKLOG_REFUSED, BACKLOG_AGAIN, BACKLOG_AGAIN, BACKLOG_REFUSED,
		BACKLOG_REFUSED, BACKLOG_AGAIN, BACKLOG_AGAIN, BACKLOG_REFUSED};

	for (int status = 0; status <= 16; status++)
		assert_int_equal(verdict_grpc(status), want[status]);
}

static void test_retry_after(void **state)
{
	const wall_time now = {784111777 * (int64_t)NS_PER_S + 5}; /* 06 Nov 1994 08:49:37 GMT */

	assert_true(verdict_retry_after(NULL, now) == 0);
	assert_true(verdict_retry_after("", now) == 0);
	assert_true(verdict_retry_after("0", now) == 0);
	assert_true(verdict_retry_after("120", now) == 120 * NS_PER_S);
	assert_true(verdict_retry_after("99999999999999999999999", now) == BACKLOG_ASKED_MAX);
	assert_true(verdict_retry_after("100000", now) == BACKLOG_ASKED_MAX);
	assert_true(verdict_retry_after("-3", now) == 0);
	assert_true(verdict_retry_after("12 parsecs", now) == 0);
	assert_true(verdict_retry_after("Sun, 06 Nov 1994 08:49:47 GMT", now) == 10 * NS_PER_S);
	assert_true(verdict_retry_after("Sun, 06 Nov 1994 08:49:07 GMT", now) == 0);
	assert_true(verdict_retry_after("Sun, 06 Nov 2094 08:49:07 GMT", now) == BACKLOG_ASKED_MAX);
	assert_true(verdict_retry_after("tomorrow", now) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_http),
		cmocka_unit_test(test_grpc),
		cmocka_unit_test(test_retry_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
