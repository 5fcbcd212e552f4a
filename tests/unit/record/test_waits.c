/* SPDX-License-Identifier: Apache-2.0 */
/* test_waits.c - which synchronisation waited for which collective, and what nobody waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/capture/waits.h"

struct seen {
	int count;
	uint64_t seq[32];
	int64_t wait_ns[32], span_ns[32];
};

static void take(void *arg, const struct event *e, const struct collective *c)
{
	struct seen *s = arg;

	s->seq[s->count] = c->seq;
	s->span_ns[s->count] = c->span_ns;
	s->wait_ns[s->count++] = c->wait_ns;
}

static void put(
	struct waits *w, uint32_t pid, uint32_t tid, uint64_t stream, int64_t at, uint64_t seq)
{
	struct event e = {.start.ns = at,
		.dur_ns = 10,
		.pid = pid,
		.tid = tid,
		.stream = stream,
		.source = SOURCE_NCCL,
		.op = NCCL_ALL_REDUCE};
	struct collective c = {.seq = seq, .wait_ns = -1};

	waits_collective(w, &e, &c);
}

static struct event sync_of(uint8_t source, uint16_t op, uint32_t pid, uint64_t stream, int64_t at)
{
	return (struct event){.start.ns = at,
		.dur_ns = 1000,
		.pid = pid,
		.tid = pid,
		.stream = stream,
		.source = source,
		.op = op};
}

static void test_a_stream_sync_waits_for_its_stream(void **state)
{
	_cleanup_(waits_freep) struct waits *w = NULL;
	struct seen s = {0};
	struct event e = sync_of(SOURCE_CUDA, CUDA_STREAM_SYNC, 1, 7, 200);

	assert_int_equal(waits_new(take, &s, &w), 0);
	put(w, 1, 1, 7, 100, 1);
	put(w, 1, 1, 8, 110, 2);  /* another stream */
	put(w, 2, 2, 7, 120, 3);  /* another process */
	put(w, 1, 1, 7, 9000, 4); /* enqueued after the wait */
	waits_sync(w, &e);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.seq[0], 1);
	assert_int_equal(s.wait_ns[0], 1000);
	e = sync_of(SOURCE_CUDA, CUDA_DEVICE_SYNC, 1, 0, 10000);
	waits_sync(w, &e); /* the whole device, but only of that process */
	assert_int_equal(s.count, 3);
	assert_int_equal(s.seq[1], 2);
	assert_int_equal(s.seq[2], 4);
}

static void test_others_wait_for_nothing(void **state)
{
	_cleanup_(waits_freep) struct waits *w = NULL;
	struct seen s = {0};
	struct event e = sync_of(SOURCE_DRIVER, DRIVER_STREAM_SYNC, 1, 7, 200);

	assert_int_equal(waits_new(take, &s, &w), 0);
	put(w, 1, 1, 7, 100, 1);
	e.flags = WIRE_NESTED; /* its runtime call tells */
	waits_sync(w, &e);
	e = sync_of(SOURCE_CUDA, CUDA_LAUNCH, 1, 7, 200);
	waits_sync(w, &e);
	assert_int_equal(s.count, 0);
	e = sync_of(SOURCE_DRIVER, DRIVER_STREAM_SYNC, 1, 7, 200);
	waits_sync(w, &e);
	assert_int_equal(s.count, 1);
}

static void test_old_ones_are_handed_on_without_a_wait(void **state)
{
	_cleanup_(waits_freep) struct waits *w = NULL;
	struct seen s = {0};

	assert_int_equal(waits_new(take, &s, &w), 0);
	put(w, 1, 1, 7, 100, 1);
	put(w, 1, 1, 7, 200, 2);
	waits_expire(w, (wall_time){150}, (wall_time){150});
	assert_int_equal(s.count, 1);
	assert_int_equal(s.wait_ns[0], -1);
	waits_expire(w, (wall_time){INT64_MAX}, (wall_time){INT64_MAX});
	assert_int_equal(s.count, 2);
	assert_int_equal(s.seq[1], 2);
}

static void test_the_time_of_one_that_was_waited_for_alone_is_known(void **state)
{
	_cleanup_(waits_freep) struct waits *w = NULL;
	struct seen s = {0};
	struct event e = sync_of(SOURCE_CUDA, CUDA_STREAM_SYNC, 1, 7, 200);

	assert_int_equal(waits_new(take, &s, &w), 0);
	put(w, 1, 1, 7, 100, 1);
	waits_sync(w, &e);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.span_ns[0], 200 + 1000 - 100);
	e.start.ns = 2000;
	put(w, 1, 1, 7, 1500, 2);
	put(w, 1, 1, 7, 1600, 3); /* two: whose time it was is not known */
	waits_sync(w, &e);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.span_ns[1], 0);
	assert_int_equal(s.span_ns[2], 0);
}

/* Likewise where no collective follows: any other call, or the second, hands it on. */
static void test_silent_ones_are_handed_on_by_time(void **state)
{
	for (int by_second = 0; by_second < 2; by_second++) {
		_cleanup_(waits_freep) struct waits *w = NULL;
		struct event e = sync_of(SOURCE_CUDA, CUDA_LAUNCH, 1, 7, 1990000000);
		struct seen s = {0};

		assert_int_equal(waits_new(take, &s, &w), 0);
		for (int i = 0; i < 8; i++)
			put(w, 1, 1, 7, 1000000000 + i, 1);
		waits_expire(w, (wall_time){1500000000}, (wall_time){1500000000});
		assert_int_equal(s.count, 8);
		put(w, 1, 1, 7, 1900000000, 2);
		waits_sync(w, &e);
		assert_int_equal(s.count, 8); /* too soon */
		e.start.ns = 2050000000;
		if (by_second)
			waits_expire(w, (wall_time){0}, (wall_time){2050000000});
		else
			waits_sync(w, &e);
		assert_int_equal(s.count, 9);
		assert_int_equal(s.seq[8], 2);
		assert_int_equal(s.wait_ns[8], -1);
	}
}

/* Of a stream that nobody ever waits for, calls are handed on soon; one that is waited for again is held again. */
static void test_silent_streams_are_not_held_long(void **state)
{
	_cleanup_(waits_freep) struct waits *w = NULL;
	struct event e = sync_of(SOURCE_CUDA, CUDA_STREAM_SYNC, 1, 7, 10150000000);
	struct seen s = {0};

	assert_int_equal(waits_new(take, &s, &w), 0);
	for (int i = 0; i < 8; i++)
		put(w, 1, 1, 7, 1000000000 + i, 1);
	put(w, 1, 1, 7, 1900000000, 2);
	assert_int_equal(s.count, 0); /* it may still be waited for */
	waits_expire(w, (wall_time){1800000000}, (wall_time){1800000000});
	assert_int_equal(s.count, 8);
	put(w, 1, 1, 7, 1990000000, 3);
	assert_int_equal(s.count, 8);
	put(w, 1, 1, 7, 2010000000, 4); /* 2 is over 0.1 s old */
	assert_int_equal(s.count, 9);
	assert_int_equal(s.seq[8], 2);
	put(w, 1, 1, 8, 10000000000, 5); /* another stream */
	assert_int_equal(s.count, 11);
	put(w, 1, 1, 7, 10100000000, 6);
	waits_sync(w, &e);
	assert_int_equal(s.count, 12);
	assert_true(s.wait_ns[11] > 0);
	put(w, 1, 1, 7, 11000000000, 7);
	put(w, 1, 1, 7, 12000000000, 8);
	assert_int_equal(s.count, 12);
}

static void follow(void *arg, const struct event *e, const struct collective *c)
{
	uint64_t *next = arg;

	assert_int_equal(c->seq, *next);
	++*next;
}

/* More than are held: the oldest go first, each once, and what is held is waited for. */
static void test_more_than_are_held(void **state)
{
	_cleanup_(waits_freep) struct waits *w = NULL;
	struct event e = sync_of(SOURCE_CUDA, CUDA_DEVICE_SYNC, 1, 0, 200);
	uint64_t next = 1;

	assert_int_equal(waits_new(follow, &next, &w), 0);
	for (uint64_t seq = 1; seq <= 100000; seq++)
		put(w, 1, 1, 7, 100, seq);
	assert_in_range(next, 100000 - 4096, 100000);
	waits_sync(w, &e);
	assert_int_equal(next, 100001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_time_of_one_that_was_waited_for_alone_is_known),
		cmocka_unit_test(test_a_stream_sync_waits_for_its_stream),
		cmocka_unit_test(test_others_wait_for_nothing),
		cmocka_unit_test(test_old_ones_are_handed_on_without_a_wait),
		cmocka_unit_test(test_silent_streams_are_not_held_long),
		cmocka_unit_test(test_silent_ones_are_handed_on_by_time),
		cmocka_unit_test(test_more_than_are_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
