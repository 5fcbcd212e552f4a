/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_calls.c - collectives as they are pushed: times, ranks, numbers of Sends and Recvs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/push/pusher_recording.h"

static const wall_time NOW = {1000 * (int64_t)NS_PER_S};

static struct collective_row row_of(uint16_t op, int32_t peer)
{
	return (struct collective_row){.start.ns = NOW.ns - 100,
		.dur_ns = 7,
		.pid = 11,
		.op = op,
		.c = {.comm_hash = 0xabc,
			.seq = 5,
			.bytes = 64,
			.rank = 0,
			.nranks = 8,
			.datatype = -1,
			.peer = peer,
			.wait_ns = -1}};
}

static void test_values(void **state)
{
	struct collective_row row = row_of(NCCL_ALL_REDUCE, -1);
	struct pusher_calls c;
	struct push_calls got = {0};

	pusher_calls_init(&c);
	assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	row.c.wait_ns = 30;
	row.c.datatype = 7;
	assert_int_equal(pusher_calls_add(&c, &row, -1, NOW), 0);
	assert_int_equal(pusher_calls_take(&c, 10, &got), 0);
	assert_int_equal(got.count, 2);
	assert_true(got.items[0].enter_ns == NOW.ns - 100 && got.items[0].leave_ns == NOW.ns - 93);
	assert_true(got.items[0].wait_ns == UINT64_MAX && got.items[0].datatype == UINT16_MAX);
	assert_int_equal(got.items[0].world_rank, 0); /* 0 is a rank */
	assert_int_equal(got.items[0].rank, 0);
	assert_true(got.items[1].leave_ns == NOW.ns - 63 && got.items[1].wait_ns == 30);
	assert_int_equal(got.items[1].world_rank, -1);
	free(got.items);
	pusher_calls_done(&c);
}

/* Two calls that waited as long shared the synchronisation after the second one, and leave with it; a third did not, nor
 * did another process. */
static void test_calls_share_a_wait(void **state)
{
	static const struct {
		int64_t start_ns, wait_ns;
		uint32_t pid;
		int64_t leave_ns;
	} rows[] = {{100, 500, 11, 647}, {120, 500, 12, 627}, {140, 500, 11, 647},
		{900, 500, 11, 1407}, {910, 60, 11, 977}};
	struct pusher_calls c;
	struct push_calls got = {0};

	pusher_calls_init(&c);
	for (size_t i = 0; i < 5; i++) {
		struct collective_row row = row_of(NCCL_ALL_REDUCE, -1);

		row.start.ns = NOW.ns - 10000 + rows[i].start_ns;
		row.c.wait_ns = rows[i].wait_ns;
		row.pid = rows[i].pid;
		assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	}
	assert_int_equal(pusher_calls_take(&c, 10, &got), 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(got.items[i].leave_ns - (NOW.ns - 10000), rows[i].leave_ns);
	free(got.items);
	pusher_calls_done(&c);
}

/* Each end counts from the recording's first one on, peer 0 among them. */
static void test_sends_are_numbered_by_peer(void **state)
{
	static const int32_t peers[] = {0, 1, 0, 0, 1};
	static const uint64_t want[] = {42, 1, 43, 44, 2};
	const struct recent_points before = {
		.pid = 11, .comm = 0xabc, .is_send = true, .peer = 0, .count = 41};
	struct collective_row row;
	struct pusher_calls c;
	struct push_calls got = {0};

	pusher_calls_init(&c);
	assert_int_equal(pusher_calls_points(&c, &before), 0);
	for (size_t i = 0; i < 5; i++) {
		row = row_of(NCCL_SEND, peers[i]);
		assert_int_equal(pusher_calls_add(&c, &row, 3, NOW), 0);
	}
	row = row_of(NCCL_RECV, 0);
	assert_int_equal(pusher_calls_add(&c, &row, 3, NOW), 0);
	assert_int_equal(pusher_calls_take(&c, 10, &got), 0);
	for (size_t i = 0; i < 5; i++)
		assert_true(got.items[i].seq == want[i] && got.items[i].peer == peers[i]);
	assert_true(got.items[5].seq == 1);
	free(got.items);
	pusher_calls_done(&c);
}

/* What a tracer that came late knows goes in a batch of its own, with the rank's own numbers. */
static void test_calls_of_a_late_tracer(void **state)
{
	struct collective_row row = row_of(NCCL_ALL_REDUCE, -1);
	struct pusher_calls c;
	struct push_calls got = {0};
	const uint64_t tag = UINT64_C(0x12) << COLLECTIVE_TAG;

	pusher_calls_init(&c);
	assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	row.c.seq = -UINT64_C(9); /* its number is not known, */
	assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	row.c.comm_hash = 0; /* nor its communicator; */
	row.c.seq = -(tag | 3);
	assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	row.c.seq = 4; /* as older tracers write it */
	assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	for (int i = 0; i < 2; i++) { /* a Send is counted by peer */
		row = row_of(NCCL_SEND, 1);
		row.c.comm_hash = 0;
		row.c.seq = -(tag | 1);
		assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	}
	row = row_of(NCCL_ALL_REDUCE, -1);
	assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	assert_int_equal(pusher_calls_take(&c, 10, &got), 0);
	assert_int_equal(got.count, 2);
	assert_true(got.items[0].seq == 5 && got.items[1].seq == 5);
	free(got.items);
	assert_int_equal(pusher_calls_take(&c, 10, &got), 0);
	assert_int_equal(got.count, 5);
	assert_true(got.items[0].seq == -UINT64_C(9) && got.items[0].comm == 0xabc);
	assert_true(got.items[1].seq == -(tag | 3) && got.items[1].comm == 0);
	assert_true(got.items[2].seq == -UINT64_C(4));
	assert_true(got.items[3].seq == -(tag | 1) && got.items[4].seq == -(tag | 2));
	assert_true(got.lost == 0 && c.count == 0 && c.nameless == 4);
	free(got.items);
	pusher_calls_done(&c);
}

static void test_what_is_left_out_is_counted(void **state)
{
	struct collective_row row = row_of(NCCL_ALL_REDUCE, -1);
	struct pusher_calls c;
	struct push_calls got = {0};

	pusher_calls_init(&c);
	row.c.seq = 0; /* nobody can match it */
	assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	row = row_of(NCCL_ALL_REDUCE, -1);
	row.start.ns = NOW.ns - PUSHER_CALL_AGE - 1;
	assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	assert_true(c.count == 0 && c.lost == 2);
	row = row_of(NCCL_ALL_REDUCE, -1);
	for (int i = 0; i < PUSHER_CALLS_MAX + 1; i++)
		assert_int_equal(pusher_calls_add(&c, &row, 0, NOW), 0);
	assert_true(c.count + c.lost == PUSHER_CALLS_MAX + 3 && c.count <= PUSHER_CALLS_MAX);
	assert_int_equal(pusher_calls_take(&c, 10, &got), 0);
	assert_true(got.count == 10 && got.lost > 2 && c.lost == 0);
	free(got.items);
	pusher_calls_done(&c);
}

/* As many pairs as there is room for, of one process: those of another one wait until the first has made no such call for long. */
static void test_pairs_of_processes_that_are_gone(void **state)
{
	struct collective_row row = row_of(NCCL_SEND, 0);
	struct pusher_calls c;
	struct push_calls got = {0};
	wall_time now = NOW;

	pusher_calls_init(&c);
	for (row.c.peer = 0; row.c.peer < PUSHER_POINTS_MAX; row.c.peer++)
		assert_int_equal(pusher_calls_add(&c, &row, 3, now), 0);
	for (int minutes = 0; minutes < 20; minutes++) {
		row = row_of(NCCL_SEND, minutes);
		row.start.ns = now.ns;
		if (minutes < 5) /* it is still there, though it uses few of its pairs */
			assert_int_equal(pusher_calls_add(&c, &row, 3, now), 0);
		row.pid = 12;
		assert_int_equal(pusher_calls_add(&c, &row, 4, now), 0);
		if (minutes < 13)
			assert_int_equal(c.lost, minutes + 1);
		now.ns += 60 * (int64_t)NS_PER_S;
	}
	assert_in_range(c.lost, 14, 16);
	assert_int_equal(pusher_calls_take(&c, PUSHER_CALLS_MAX, &got), 0);
	assert_int_equal(got.items[got.count - 1].pid, 12);
	assert_true(got.items[got.count - 1].seq == 1);
	assert_int_equal(got.count + got.lost, PUSHER_POINTS_MAX + 5 + 20);
	free(got.items);
	pusher_calls_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_calls_share_a_wait),
		cmocka_unit_test(test_sends_are_numbered_by_peer),
		cmocka_unit_test(test_calls_of_a_late_tracer),
		cmocka_unit_test(test_what_is_left_out_is_counted),
		cmocka_unit_test(test_pairs_of_processes_that_are_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
