/* SPDX-License-Identifier: Apache-2.0 */
/* test_ring.c - a ring in plain memory, written as the kernel writes one: every record comes out once, whole
 * and in order, also over the end; busy ones hold up the rest; discarded ones are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/probe/ring.h"
#include "base/macros.h"

#define SIZE 256

struct memory {
	unsigned long consumer, producer;
	_Alignas(8) char data[SIZE];
	struct ring ring;
	unsigned char taken[64][SIZE];
	size_t lens[64], count;
};

static void take(void *arg, const void *data, size_t len)
{
	struct memory *m = arg;

	assert_in_range(len, 0, SIZE);
	assert_int_equal((uintptr_t)data % 8, 0);
	memcpy(m->taken[m->count], data, len);
	m->lens[m->count++] = len;
}

static void memory_init(struct memory *m)
{
	*m = (struct memory){0};
	m->ring = (struct ring){.consumer = &m->consumer,
		.producer = &m->producer,
		.data = m->data,
		.size = SIZE,
		.epoll_fd = -1,
		.sink = take,
		.arg = m};
}

/* As a program does: @flags in the length. Returns where the length is. */
static size_t put(struct memory *m, unsigned char fill, size_t len, uint32_t flags)
{
	size_t at = m->producer % SIZE;
	uint32_t word = (uint32_t)len | flags;

	assert_true(m->producer + len + RING_HEADER_BYTES - m->consumer <= SIZE);
	memcpy(m->data + at, &word, sizeof(word));
	for (size_t i = 0; i < len; i++)
		m->data[(at + RING_HEADER_BYTES + i) % SIZE] = (char)(fill + i);
	m->producer += (len + RING_HEADER_BYTES + 7) / 8 * 8;
	return at;
}

static void was_taken(const struct memory *m, size_t i, unsigned char fill, size_t len)
{
	assert_true(i < m->count);
	assert_int_equal(m->lens[i], len);
	for (size_t k = 0; k < len; k++)
		assert_int_equal(m->taken[i][k], (unsigned char)(fill + k));
}

static void records_come_in_order_and_once(void **state)
{
	struct memory m;

	memory_init(&m);
	assert_int_equal(ring_consume(&m.ring), 0);
	put(&m, 10, 16, 0);
	put(&m, 20, 13, 0); /* not a multiple of 8 */
	put(&m, 30, 0, 0);
	assert_int_equal(ring_consume(&m.ring), 3);
	was_taken(&m, 0, 10, 16);
	was_taken(&m, 1, 20, 13);
	was_taken(&m, 2, 30, 0);
	assert_int_equal(m.consumer, m.producer);
	assert_int_equal(ring_consume(&m.ring), 0);
	assert_int_equal(m.count, 3);
}

/* Records of 56 bytes in a ring of 256: every place of the end is met. */
static void a_record_over_the_end_is_whole(void **state)
{
	struct memory m;

	memory_init(&m);
	for (unsigned i = 0; i < 64; i++) {
		put(&m, (unsigned char)i, 41 + i % 8, 0);
		assert_int_equal(ring_consume(&m.ring), 1);
		was_taken(&m, i, (unsigned char)i, 41 + i % 8);
	}
	assert_true(m.ring.joined_room > 0); /* some did go over it */
	assert_int_equal(m.consumer, m.producer);
	free(m.ring.joined);
}

static void a_full_ring_can_be_read(void **state)
{
	struct memory m;

	memory_init(&m);
	m.consumer = m.producer = 8 * 31; /* the header is the last there is before the end */
	put(&m, 7, SIZE - RING_HEADER_BYTES, 0);
	assert_int_equal(ring_consume(&m.ring), 1);
	was_taken(&m, 0, 7, SIZE - RING_HEADER_BYTES);
	free(m.ring.joined);
}

static void busy_ones_hold_up_and_discarded_ones_do_not_come(void **state)
{
	struct memory m;
	uint32_t word;
	size_t at;

	memory_init(&m);
	put(&m, 1, 24, 0);
	put(&m, 2, 24, RING_DISCARDED);
	at = put(&m, 3, 24, RING_BUSY);
	put(&m, 4, 24, 0);
	assert_int_equal(ring_consume(&m.ring), 1);
	was_taken(&m, 0, 1, 24);
	assert_int_equal(m.consumer, 2 * 32); /* the space of the first two is free */
	word = 24;
	memcpy(m.data + at, &word, sizeof(word));
	assert_int_equal(ring_consume(&m.ring), 2);
	was_taken(&m, 1, 3, 24);
	was_taken(&m, 2, 4, 24);
}

static void what_is_no_ring_is_refused(void **state)
{
	struct ring *r = NULL;

	assert_true(ring_new(-1, take, NULL, &r) < 0);
	assert_null(r);
	ring_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_in_order_and_once),
		cmocka_unit_test(a_record_over_the_end_is_whole),
		cmocka_unit_test(a_full_ring_can_be_read),
		cmocka_unit_test(busy_ones_hold_up_and_discarded_ones_do_not_come),
		cmocka_unit_test(what_is_no_ring_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
