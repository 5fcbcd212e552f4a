// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "memory.h"

#define PIECE (1u << 16)

static int setup(void **state)
{
	static struct memory m;

	*state = &m;
	return memory_init(&m, 8 * PIECE);
}

static int teardown(void **state)
{
	memory_done(*state);
	return 0;
}

static void test_capacity_is_kept(void **state)
{
	struct memory *m = *state;
	uintptr_t p[8], over = 1;

	for (int i = 0; i < 8; i++)
		assert_int_equal(memory_alloc(m, PIECE, &p[i]), 0);
	assert_int_equal(memory_alloc(m, 1, &over), -ENOMEM);
	assert_int_equal(over, 1);
	assert_int_equal(m->used, m->capacity);
	for (int i = 0; i < 8; i++)
		assert_int_equal(memory_free(m, p[i]), 0);
	assert_int_equal(m->used, 0);
	assert_int_equal(memory_alloc(m, 8 * PIECE, &p[0]), 0);
}

static void test_bad_sizes_and_pointers(void **state)
{
	struct memory *m = *state;
	uintptr_t p;

	assert_int_equal(memory_alloc(m, 0, &p), -EINVAL);
	assert_int_equal(memory_alloc(m, SIZE_MAX, &p), -ENOMEM);
	assert_int_equal(memory_free(m, 0), -EINVAL);
	assert_int_equal(memory_alloc(m, 100, &p), 0);
	assert_int_equal(memory_free(m, p + 1), -EINVAL);
	assert_int_equal(memory_free(m, p), 0);
	assert_int_equal(memory_free(m, p), -EINVAL);
}

static void test_fragmented_pool_refuses(void **state)
{
	struct memory *m = *state;
	uintptr_t p[8], q;

	for (int i = 0; i < 8; i++)
		assert_int_equal(memory_alloc(m, PIECE, &p[i]), 0);
	for (int i = 0; i < 8; i += 2)
		assert_int_equal(memory_free(m, p[i]), 0);
	assert_int_equal(m->used, 4 * PIECE);
	assert_int_equal(
		memory_alloc(m, 2 * PIECE, &q), -ENOMEM); /* half is free, not in one piece */
	assert_int_equal(memory_free(m, p[1]), 0);
	assert_int_equal(memory_alloc(m, 2 * PIECE, &q), 0);
	assert_int_equal(q, p[0]);
}

static void test_span_ends_with_the_allocation(void **state)
{
	struct memory *m = *state;
	uintptr_t p, q;

	assert_int_equal(memory_alloc(m, 1000, &p), 0);
	assert_int_equal(memory_alloc(m, 1000, &q), 0);
	assert_int_equal(memory_span(m, p, false), 1000);
	assert_int_equal(memory_span(m, p + 999, false), 1);
	assert_int_equal(memory_span(m, p + 1000, false), 0);
	assert_int_equal(memory_span(m, (uintptr_t)&p, false), 0);
	memset((void *)p, 1, 1000);
}

static void test_retired_once(void **state)
{
	struct memory *m = *state;
	uintptr_t p;

	assert_int_equal(memory_alloc(m, 1000, &p), 0);
	assert_int_equal(memory_retire(m, p), 0);
	assert_int_equal(memory_retire(m, p), -EINVAL);
	assert_int_equal(memory_free(m, p), 0);
}

static void test_freed_pages_come_back_empty(void **state)
{
	struct memory *m = *state;
	uintptr_t p;

	assert_int_equal(memory_alloc(m, PIECE, &p), 0);
	assert_int_equal(memory_span(m, p, true), PIECE);
	memset((void *)p, 0xff, PIECE);
	assert_int_equal(memory_free(m, p), 0);
	assert_int_equal(memory_alloc(m, PIECE, &p), 0);
	assert_int_equal(*(unsigned char *)p, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_capacity_is_kept),
		T(test_bad_sizes_and_pointers),
		T(test_fragmented_pool_refuses),
		T(test_span_ends_with_the_allocation),
		T(test_retired_once),
		T(test_freed_pages_come_back_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
