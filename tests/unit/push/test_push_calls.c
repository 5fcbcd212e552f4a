/* SPDX-License-Identifier: Apache-2.0 */
/* test_push_calls.c - calls as bytes and back: every value survives, the bytes are few, and no bytes
 * do harm. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "push/push_wire.h"

static void assert_call_equal(const struct push_call *a, const struct push_call *b)
{
	assert_int_equal(a->comm, b->comm);
	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->enter_ns, b->enter_ns);
	assert_int_equal(a->leave_ns, b->leave_ns);
	assert_true(a->wait_ns == b->wait_ns);
	assert_int_equal(a->rank, b->rank);
	assert_int_equal(a->nranks, b->nranks);
	assert_int_equal(a->peer, b->peer);
	assert_int_equal(a->world_rank, b->world_rank);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->op, b->op);
	assert_int_equal(a->datatype, b->datatype);
}

static void assert_round_trip(const struct push_calls *c)
{
	_cleanup_buf_ struct buf b = BUF_INIT(64 << 20);
	struct push_calls back = {.who.rank = 7};

	push_calls_pack(&b, c);
	assert_int_equal(b.err, 0);
	assert_int_equal(push_calls_unpack(b.data, b.len, &back), 0);
	assert_int_equal(back.who.rank, 7); /* not the batch's to say */
	assert_int_equal(back.batch, c->batch);
	assert_int_equal(back.sent_ns, c->sent_ns);
	assert_int_equal(back.lost, c->lost);
	assert_int_equal(back.count, c->count);
	for (size_t i = 0; i < c->count; i++)
		assert_call_equal(&back.items[i], &c->items[i]);
	free(back.items);
}

static struct push_call ordinary(size_t i)
{
	return (struct push_call){.comm = 0x9e3779b97f4a7c15,
		.seq = 1000 + i,
		.bytes = 25 << 20,
		.enter_ns = 1700000000000000000 + (int64_t)i * 10000019,
		.leave_ns = 1700000000000000000 + (int64_t)i * 10000019 + 3000017,
		.wait_ns = 2000003,
		.rank = 0,
		.nranks = 8,
		.peer = -1,
		.world_rank = 0,
		.pid = 4242,
		.op = 3,
		.datatype = 7};
}

static void test_extremes_survive(void **state)
{
	struct push_call items[] = {
		ordinary(0), ordinary(1), ordinary(2), ordinary(3), ordinary(4), ordinary(5)};
	struct push_calls c = {.batch = UINT64_MAX,
		.sent_ns = INT64_MIN,
		.lost = UINT64_MAX,
		.items = items,
		.count = 6};

	items[0].peer = 0; /* a peer, as 0 is a rank */
	items[1].wait_ns = UINT64_MAX;
	items[1].datatype = UINT16_MAX;
	items[1].op = UINT16_MAX;
	items[2].wait_ns = UINT64_MAX - 1;
	items[2].enter_ns = INT64_MIN;
	items[2].leave_ns = INT64_MAX;
	items[3].enter_ns = INT64_MAX;
	items[3].leave_ns = INT64_MIN;
	items[3].bytes = items[3].seq = UINT64_MAX;
	items[4].seq = 0;
	items[4].comm = UINT64_MAX;
	items[4].rank = items[4].nranks = items[4].world_rank = INT32_MIN;
	items[4].pid = UINT32_MAX;
	items[4].peer = INT32_MAX;
	items[5].rank = items[5].nranks = items[5].world_rank = INT32_MAX;
	items[5].pid = 0;
	items[5].wait_ns = 0;
	assert_round_trip(&c);
	c.count = 0;
	assert_round_trip(&c);
}

/* Ranks of one node interleave, with three communicators each and sends to two peers. */
static void test_many(void **state)
{
	static struct push_call items[20000];
	struct push_calls c = {.batch = 1, .items = items, .count = 20000};

	for (size_t i = 0; i < c.count; i++) {
		items[i] = ordinary(i);
		items[i].pid += i % 8;
		items[i].rank = items[i].world_rank = (int32_t)(i % 8);
		items[i].comm += i % 3;
		items[i].bytes >>= i % 5;
		if (i % 7 == 0) {
			items[i].peer = (int32_t)(i % 2);
			items[i].seq = i / 14;
		}
	}
	assert_round_trip(&c);
}

static void test_a_call_takes_a_dozen_bytes(void **state)
{
	static struct push_call items[10000];
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct push_calls c = {.items = items, .count = 10000};

	for (size_t i = 0; i < c.count; i++) {
		items[i] = ordinary(i);
		items[i].bytes = (uint64_t)(i % 10) << 20;
	}
	push_calls_pack(&b, &c);
	assert_int_equal(b.err, 0);
	assert_true(b.len <= 14 * c.count);
}

/* One whose communicator or number is not known travels as the others do, under another event's name. */
static void test_a_call_of_a_late_tracer(void **state)
{
	static const char numbered[] = "ingero.collectives",
			  own[] = "ingero.collectives.unnumbered";
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct push_call items[] = {ordinary(0), ordinary(1), ordinary(2)};
	struct push_calls c = {.who.node = "n", .lost = 4, .items = items, .count = 3};

	push_calls_protobuf(&b, &c);
	assert_non_null(memmem(b.data, b.len, numbered, strlen(numbered)));
	assert_null(memmem(b.data, b.len, own, strlen(own)));
	items[1].comm = 0;
	items[1].seq = -(UINT64_C(0x1234) << 40 | 7);
	items[2].seq = -UINT64_C(1);
	assert_round_trip(&c);
	buf_clear(&b);
	push_calls_protobuf(&b, &c);
	assert_non_null(memmem(b.data, b.len, own, strlen(own)));
}

static void test_too_many(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(64 << 20);
	struct push_calls c = {.count = PUSH_CALLS_MAX + 1}, back = {.batch = 9};
	char *body;

	c.items = calloc(c.count, sizeof(*c.items));
	assert_non_null(c.items);
	for (size_t i = 0; i < c.count; i++)
		c.items[i] = ordinary(i);
	push_calls_pack(&b, &c);
	assert_int_equal(b.err, -ENOBUFS);
	buf_clear(&b);
	c.count--;
	push_calls_pack(&b, &c); /* as many as may be */
	assert_int_equal(b.err, 0);
	assert_int_equal(push_calls_unpack(b.data, b.len, &back), 0);
	assert_int_equal(back.count, PUSH_CALLS_MAX);
	free(back.items);
	free(c.items);
	/* A count beyond the ceiling with bytes enough for it, and one without. */
	body = calloc(1, 2000000);
	assert_non_null(body);
	memcpy(body, "ICL\1\1\0\0\xc1\x9a\x0c", 10); /* 200001 */
	back = (struct push_calls){.batch = 9};
	assert_int_equal(push_calls_unpack(body, 2000000, &back), -E2BIG);
	assert_int_equal(push_calls_unpack(body, 1000000, &back), -EBADMSG);
	assert_int_equal(back.batch, 9);
	assert_null(back.items);
	free(body);
}

static void test_cut_anywhere(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct push_call items[] = {ordinary(0), ordinary(1), ordinary(2)};
	struct push_calls c = {.items = items, .count = 3}, back = {0};

	items[2].comm++;
	push_calls_pack(&b, &c);
	for (size_t len = 0; len < b.len; len++) {
		char *copy = malloc(len + 1); /* so that a sanitizer sees a read beyond it */

		assert_non_null(copy);
		memcpy(copy, b.data, len);
		copy = realloc(copy, len ? len : 1);
		assert_int_equal(push_calls_unpack(copy, len, &back), -EBADMSG);
		assert_null(back.items);
		free(copy);
	}
	buf_putc(&b, 0);
	assert_int_equal(push_calls_unpack(b.data, b.len, &back), -EBADMSG);
}

static int unpack(const char *bytes, size_t len)
{
	struct push_calls back = {0};
	int r = push_calls_unpack(bytes, len, &back);

	free(back.items);
	return r;
}
#define UNPACK(text) unpack("" text, sizeof(text) - 1)

static void test_hostile(void **state)
{
#define HEAD "ICL\1\1\0\0\1"    /* one call */
#define COMM "\1\0\0\0\0\0\0\0" /* its hash */
#define REST "\3\7\1\5"         /* op, datatype, peer -1, bytes */
#define CALL "\2\2\2\1"         /* seq, enter, leave, wait */
	assert_int_equal(UNPACK(HEAD "\0\0" COMM "\x10\0\0\1" REST CALL), 0); /* the control */
	/* no communicator: whoever takes it in sees to that */
	assert_int_equal(UNPACK(HEAD "\0\0\0\0\0\0\0\0\0\0\x10\0\0\1" REST CALL), 0);
	assert_int_equal(UNPACK(HEAD "\1\0" COMM "\x10\0\0\1" REST CALL), -EBADMSG); /* line 1 */
	assert_int_equal(UNPACK(HEAD "\0\1" COMM "\x10\0\0\1" REST CALL), -EBADMSG); /* comm 1 */
	assert_int_equal(UNPACK(HEAD "\0\0" COMM "\x80\x80\x80\x80\x20\0\0\1" REST CALL), -EBADMSG);
	assert_int_equal(
		UNPACK(HEAD "\0\0" COMM "\x10\0\0\x80\x80\x80\x80\x10" REST CALL), -EBADMSG);
	assert_int_equal(UNPACK(HEAD "\0\0" COMM "\x10\0\0\1\x80\x80\4\7\1\5" CALL), -EBADMSG);
	assert_int_equal(UNPACK(HEAD "\0\0" COMM "\x10\0\0\1" REST
				     "\xff\xff\xff\xff\xff\xff\xff\xff\xff\2\2\2\1"),
		-EBADMSG);                                   /* 65 bits */
	assert_int_equal(UNPACK("ICL\2\1\0\0\0"), -EBADMSG); /* another version */
	assert_int_equal(UNPACK("ICL\1\1\0\0\0"), 0);
	assert_int_equal(unpack(NULL, 0), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extremes_survive),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_a_call_takes_a_dozen_bytes),
		cmocka_unit_test(test_a_call_of_a_late_tracer),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
