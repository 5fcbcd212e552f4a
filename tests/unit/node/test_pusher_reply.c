/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_reply.c - thresholds in replies: taken, missing, refused; what is answered to questions in them. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/problem.h"
#include "node/push/pusher_private.h"

static enum pusher_hint fields(const char *value, const char *quorum, struct health_threshold *t)
{
	struct http_head h = {0};

	if (value)
		h.field[h.count++] = (struct http_field){"x-ingero-threshold", value};
	if (quorum)
		h.field[h.count++] = (struct http_field){"x-ingero-quorum-met", quorum};
	return pusher_reply_fields(&h, 5, t);
}

static void test_fields(void **state)
{
	struct health_threshold t = {0};

	assert_int_equal(fields(NULL, NULL, &t), PUSHER_HINT_MISSING);
	assert_int_equal(fields("0.9", NULL, &t), PUSHER_HINT_MISSING);
	assert_int_equal(fields(NULL, "true", &t), PUSHER_HINT_MISSING);
	assert_false(t.known);
	assert_int_equal(fields("0.9", "True", &t), PUSHER_HINT_TAKEN);
	assert_true(t.known && t.value == 0.9 && t.quorum && t.at_ns == 5);
	assert_int_equal(fields("0.8", "FALSE", &t), PUSHER_HINT_TAKEN);
	assert_true(t.value == 0.8 && !t.quorum);
}

static void test_bad_ones_leave_the_one_before(void **state)
{
	static const char *const bad[][2] = {{"1", "true"}, {"0.0999", "true"}, {"0.991", "false"},
		{"nan", "true"}, {"inf", "true"}, {"", "true"}, {"0.9x", "true"}, {" 0.9", "true"},
		{"0.9", "yes"}, {"0.9", "1"}, {"0.9", ""}, {"-0.5", "true"}, {"0", "true"}};
	struct health_threshold t = {.known = true, .value = 0.7, .quorum = true, .at_ns = 1};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (fields(bad[i][0], bad[i][1], &t) != PUSHER_HINT_REFUSED)
			fail_msg("%s, %s", bad[i][0], bad[i][1]);
	assert_true(t.value == 0.7 && t.at_ns == 1);
}

/* 0 and false: a fleet below its quorum, or one that has just been started. */
static void test_a_cold_fleet(void **state)
{
	struct health_threshold t = {0};

	assert_int_equal(fields("0", "false", &t), PUSHER_HINT_TAKEN);
	assert_true(t.known && t.value == 0);
	assert_int_equal(fields("0.9", "true", &t), PUSHER_HINT_TAKEN);
	assert_int_equal(fields("0", "false", &t), PUSHER_HINT_TAKEN);
	assert_true(t.value == 0.9); /* what it said before is better than nothing */
}

static enum pusher_hint body(const char *text, struct health_threshold *t)
{
	return pusher_reply_body(text, strlen(text), 9, t);
}

static void test_body(void **state)
{
	static const char *const bad[] = {"", "{}", "[]", "{\"threshold\":0.9}",
		"{\"threshold\":\"0.9\",\"quorum_met\":true}",
		"{\"threshold\":0.9,\"quorum_met\":1}", "{\"threshold\":2,\"quorum_met\":true}",
		"{\"threshold\":0.9,\"quorum_met\":true",
		"{\"threshold\":0.9,\"quorum_met\":true} x"};
	struct health_threshold t = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (body(bad[i], &t) != PUSHER_HINT_REFUSED)
			fail_msg("%s", bad[i]);
	assert_false(t.known);
	assert_int_equal(body("{\"threshold\":0.88,\"more\":[1,{}],\"quorum_met\":true}", &t),
		PUSHER_HINT_TAKEN);
	assert_true(t.value == 0.88 && t.quorum && t.at_ns == 9);
}

static void test_jitter(void **state)
{
	assert_true(pusher_jitter(1000, 0.1, 0) == 900);
	assert_true(pusher_jitter(1000, 0.1, UINT64_MAX) <= 1100);
	assert_true(pusher_jitter(1000, 0.1, UINT64_MAX) >= 1099);
	assert_true(pusher_jitter(1000, 0.1, UINT64_MAX / 2) >= 999);
	assert_true(pusher_jitter(0, 0.1, 77) == 0);
}

/* What an incident says of the whole job. */
static void test_line(void **state)
{
	struct incident i = {.problem = PROBLEM_STRAGGLER,
		.severity = SEVERITY_HIGH,
		.culprit_rank = -1,
		.unit = INCIDENT_UNIT_LOAD};

	assert_string_equal(pusher_cause_line(&i), PUSH_LINE_LOAD);
	i.unit = INCIDENT_UNIT_LINK;
	assert_string_equal(pusher_cause_line(&i), PUSH_LINE_LINK);
	i.culprit_rank = 0;
	i.unit = INCIDENT_UNIT_LOAD;
	assert_string_equal(pusher_cause_line(&i), PUSH_LINE_LATE);
	i.unit = "late steps"; /* the fleet sees these itself */
	assert_string_equal(pusher_cause_line(&i), "");
	i.problem = PROBLEM_GOODPUT;
	assert_string_equal(pusher_cause_line(&i), PUSH_LINE_LATE);
	i.problem = PROBLEM_GPU_SHARING;
	assert_string_equal(pusher_cause_line(&i), "");
	i.problem = PROBLEM_NCCL_HANG;
	assert_string_equal(pusher_cause_line(&i), "");
	i.problem = PROBLEM_GOODPUT;
	i.severity = SEVERITY_LOW;
	assert_string_equal(pusher_cause_line(&i), "");
}

/* Who is asked about four ranks and knows of one, or guesses, has to look again, unless that says what the job waits for. */
static void test_whole(void **state)
{
	struct push_report found[2] = {
		{.pid = 1, .confidence = 0.9}, {.pid = 2, .confidence = 0.4}};

	assert_false(pusher_cause_is_whole(found, -EIO, 1));
	assert_false(pusher_cause_is_whole(found, 0, 0));
	assert_false(pusher_cause_is_whole(found, 1, 4));
	assert_false(pusher_cause_is_whole(found, 2, 2));
	assert_true(pusher_cause_is_whole(found, 1, 1));
	strcpy(found[1].line, PUSH_LINE_LATE);
	assert_false(pusher_cause_is_whole(found, 2, 4));
	found[1].confidence = 0.6;
	assert_true(pusher_cause_is_whole(found, 2, 4));
}

#define S UINT64_C(1000000000)

/* How long after a look that took so long there is another one at the same question. */
static uint64_t wait_after(struct cause_looks *l, bool is_whole, uint64_t took_ns)
{
	const uint64_t now_ns = 1000 * S;

	pusher_cause_looked(l, is_whole, took_ns, now_ns);
	assert_false(pusher_cause_is_due(l, false, l->due_ns - 1));
	assert_true(pusher_cause_is_due(l, false, l->due_ns));
	return l->due_ns - now_ns;
}

/* More and more seldom while nothing new is found; what is known is looked at every ten seconds, and soon again once it
 * is so no more. */
static void test_waits(void **state)
{
	struct cause_looks l = {0};

	for (uint64_t wait = 1; wait <= 32; wait *= 2)
		assert_true(wait_after(&l, false, 0) == wait * S);
	assert_true(wait_after(&l, false, 0) == 32 * S);
	assert_true(wait_after(&l, false, 20 * S) == 80 * S); /* what is dear, seldom */
	assert_true(wait_after(&l, true, 0) == 10 * S);
	assert_true(wait_after(&l, true, 0) == 10 * S);
	assert_true(wait_after(&l, false, 0) == S);
	assert_true(wait_after(&l, false, 0) == 2 * S);
}

/* Who is late anew is looked at at once, but never for more than a fifth of the time, however often a fleet asks anew. */
static void test_rests(void **state)
{
	struct cause_looks l = {0};
	uint64_t looked_ns = 0;

	for (int i = 0; i < 5; i++)
		wait_after(&l, false, 0);
	assert_true(pusher_cause_is_due(&l, true, 1000 * S));
	assert_int_equal(l.count, 0);
	for (uint64_t now_ns = 2000 * S; now_ns < 2100 * S; now_ns += S / 10)
		if (pusher_cause_is_due(&l, true, now_ns)) {
			looked_ns += S;
			pusher_cause_looked(&l, false, S, now_ns + S);
		}
	assert_in_range(looked_ns, 19 * S, 20 * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_bad_ones_leave_the_one_before),
		cmocka_unit_test(test_a_cold_fleet),
		cmocka_unit_test(test_body),
		cmocka_unit_test(test_jitter),
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
