/* SPDX-License-Identifier: Apache-2.0 */
/* test_backlog.c - order, retries and room, with a clock that the test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "deliver/backlog.h"

#define AT(s) ((mono_time){(uint64_t)((s) * (double)NS_PER_S) + 1})

static void put(struct backlog *b, char name, size_t len)
{
	char *data = malloc(len);

	memset(data, name, len);
	backlog_put(b, (struct backlog_batch){.data = data, .len = len, .points = 10});
}

static char begin(struct backlog *b, mono_time now)
{
	const struct backlog_batch *batch = backlog_begin(b, now);

	return batch ? *(const char *)batch->data : 0;
}

static void test_one_after_the_other(void **state)
{
	struct backlog b = {0};

	assert_int_equal(begin(&b, AT(0)), 0);
	assert_true(backlog_wait_ns(&b, AT(0)) == UINT64_MAX);
	put(&b, 'a', 1);
	put(&b, 'b', 1);
	assert_true(backlog_wait_ns(&b, AT(0)) == 0);
	assert_int_equal(begin(&b, AT(0)), 'a');
	assert_int_equal(begin(&b, AT(0)), 0); /* one at a time */
	assert_true(backlog_wait_ns(&b, AT(0)) == UINT64_MAX);
	backlog_end(&b, AT(1), BACKLOG_SENT, 0);
	assert_int_equal(begin(&b, AT(1)), 'b');
	backlog_end(&b, AT(1), BACKLOG_REFUSED, 0);
	assert_int_equal(begin(&b, AT(1)), 0);
	assert_int_equal(b.stats.sent_batches, 1);
	assert_int_equal(b.stats.sent_points, 10);
	assert_int_equal(b.stats.refused_batches, 1);
	assert_int_equal(b.stats.refused_points, 10);
	assert_int_equal(b.bytes, 0);
	backlog_done(&b);
}

/* 1, 2, 4, 8, 16, 30, 30 s, each between half and all of it; the same batch each time. */
static void test_pauses_grow_to_a_limit(void **state)
{
	static const double whole[] = {1, 2, 4, 8, 16, 30, 30, 30};

	for (uint64_t seed = 1; seed < 200; seed++) {
		struct backlog b = {.random = seed * 0x9e3779b97f4a7c15ULL};
		mono_time now = AT(5);

		put(&b, 'a', 1);
		for (size_t i = 0; i < 8; i++) {
			uint64_t wait;

			assert_int_equal(begin(&b, now), 'a');
			backlog_end(&b, now, BACKLOG_AGAIN, 0);
			wait = backlog_wait_ns(&b, now);
			assert_in_range(
				wait, (uint64_t)(whole[i] / 2 * 1e9), (uint64_t)(whole[i] * 1e9));
			assert_int_equal(begin(&b, (mono_time){now.ns + wait - 1}), 0);
			now.ns += wait;
		}
		assert_int_equal(b.stats.retries, 8);
		assert_int_equal(begin(&b, now), 'a');
		backlog_end(&b, now, BACKLOG_SENT, 0);
		put(&b, 'b', 1); /* a success makes it begin anew */
		assert_int_equal(begin(&b, now), 'b');
		backlog_end(&b, now, BACKLOG_AGAIN, 0);
		assert_in_range(backlog_wait_ns(&b, now), NS_PER_S / 2, NS_PER_S);
		backlog_done(&b);
	}
}

static void test_pauses_differ_between_agents(void **state)
{
	struct backlog a = {.random = 1}, b = {.random = 77777};

	put(&a, 'a', 1);
	put(&b, 'b', 1);
	for (int i = 0; i < 3; i++) {
		backlog_begin(&a, AT(1000 * i));
		backlog_begin(&b, AT(1000 * i));
		backlog_end(&a, AT(1000 * i), BACKLOG_AGAIN, 0);
		backlog_end(&b, AT(1000 * i), BACKLOG_AGAIN, 0);
	}
	assert_true(a.due_ns != b.due_ns);
	backlog_done(&a);
	backlog_done(&b);
}

static void test_a_receiver_may_ask_for_more(void **state)
{
	struct backlog b = {.random = 3};

	put(&b, 'a', 1);
	backlog_begin(&b, AT(0));
	backlog_end(&b, AT(0), BACKLOG_AGAIN, 7 * NS_PER_S);
	assert_true(backlog_wait_ns(&b, AT(0)) == 7 * NS_PER_S);
	backlog_begin(&b, AT(7));
	backlog_end(&b, AT(7), BACKLOG_AGAIN, 1); /* less than our own pause */
	assert_in_range(backlog_wait_ns(&b, AT(7)), NS_PER_S, 2 * NS_PER_S);
	backlog_begin(&b, AT(100));
	backlog_end(&b, AT(100), BACKLOG_AGAIN, UINT64_MAX);
	assert_true(backlog_wait_ns(&b, AT(100)) == BACKLOG_ASKED_MAX);
	backlog_hurry(&b);
	assert_int_equal(begin(&b, AT(101)), 'a');
	backlog_done(&b);
}

static void test_the_oldest_goes_when_there_is_no_room(void **state)
{
	struct backlog b = {0};

	for (int i = 0; i < BACKLOG_BATCHES + 3; i++)
		put(&b, (char)('A' + i), 1);
	assert_int_equal(b.count, BACKLOG_BATCHES);
	assert_int_equal(b.stats.dropped_batches, 3);
	assert_int_equal(b.stats.dropped_points, 30);
	assert_int_equal(begin(&b, AT(0)), 'A' + 3);
	put(&b, 'z', 1); /* the first is under way: the second goes */
	assert_int_equal(b.stats.dropped_batches, 4);
	backlog_end(&b, AT(0), BACKLOG_SENT, 0);
	assert_int_equal(begin(&b, AT(0)), 'A' + 5);
	assert_int_equal(b.bytes, b.count);
	backlog_done(&b);
}

static void test_bytes_have_a_limit_too(void **state)
{
	struct backlog b = {0};

	put(&b, 'a', BACKLOG_BYTES / 2);
	put(&b, 'b', BACKLOG_BYTES / 2);
	assert_int_equal(b.stats.dropped_batches, 0);
	put(&b, 'c', 1);
	assert_int_equal(b.stats.dropped_batches, 1);
	assert_int_equal(begin(&b, AT(0)), 'b');
	put(&b, 'd', BACKLOG_BYTES); /* does not fit beside what is under way: c and d go */
	assert_int_equal(b.stats.dropped_batches, 3);
	assert_int_equal(b.count, 1);
	backlog_put(&b, (struct backlog_batch){.len = SIZE_MAX, .points = 5}); /* never */
	assert_int_equal(b.stats.dropped_batches, 4);
	assert_int_equal(b.count, 1);
	assert_int_equal(b.bytes, BACKLOG_BYTES / 2);
	backlog_done(&b);
}

/* Whatever happens in whatever order: each batch leaves once, and is counted once. */
static void test_nothing_is_lost_silently(void **state)
{
	struct backlog b = {.random = 9};
	uint64_t random = 42, given = 0;
	mono_time now = {1};

	for (int i = 0; i < 20000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		now.ns += random % (3 * NS_PER_S);
		if (random % 3 == 0) {
			put(&b, 'x', 1 + random % (1 << 19));
			given++;
		}
		if (random % 5 < 2)
			backlog_begin(&b, now);
		else if (random % 5 < 4)
			backlog_end(&b, now, (enum backlog_outcome)(random / 64 % 3), 0);
		assert_true(b.count <= BACKLOG_BATCHES && b.bytes <= BACKLOG_BYTES);
		assert_int_equal(given, b.count + b.stats.sent_batches + b.stats.dropped_batches +
						b.stats.refused_batches);
	}
	assert_true(b.stats.sent_batches && b.stats.dropped_batches && b.stats.retries);
	backlog_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_pauses_grow_to_a_limit),
		cmocka_unit_test(test_pauses_differ_between_agents),
		cmocka_unit_test(test_a_receiver_may_ask_for_more),
		cmocka_unit_test(test_the_oldest_goes_when_there_is_no_room),
		cmocka_unit_test(test_bytes_have_a_limit_too),
		cmocka_unit_test(test_nothing_is_lost_silently),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
