/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/live/live_window.h"
#include "base/macros.h"

static struct stack *stack_of(uint64_t hash, const char *symbol, size_t *ret_bytes)
{
	const struct stack_frame frame = {.symbol = symbol};
	struct stack s = {.hash = hash, .frames = &frame, .count = 1, .stop = ""};
	struct stack *copy = stack_copy(&s, ret_bytes);

	assert_non_null(copy);
	return copy;
}

static void add(struct live_stacks *l, uint64_t hash, const char *symbol)
{
	size_t bytes;
	struct stack *s = stack_of(hash, symbol, &bytes);

	assert_int_equal(live_stacks_add(l, s, bytes), 0);
}

static void test_in_order_and_replaced(void **state)
{
	static const uint64_t hashes[] = {5, UINT64_MAX, 1, 9, 5};
	struct live_stacks l = {0};

	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++)
		add(&l, hashes[i], i == 4 ? "later" : "first");
	assert_int_equal(l.list.count, 4);
	for (size_t i = 1; i < l.list.count; i++)
		assert_true(l.list.items[i - 1]->hash < l.list.items[i]->hash);
	assert_string_equal(stack_find(&l.list, 5)->frames[0].symbol, "later");
	assert_string_equal(stack_find(&l.list, UINT64_MAX)->frames[0].symbol, "first");
	live_stacks_done(&l);
	assert_int_equal(l.bytes, 0);
}

static void test_those_in_use_stay(void **state)
{
	struct live_stacks l = {0};

	for (uint64_t i = 1; i <= LIVE_STACKS_MAX; i++)
		add(&l, i, "f");
	live_stacks_use(&l, 1);
	live_stacks_use(&l, 0); /* no stack */
	live_stacks_use(&l, UINT64_MAX);
	add(&l, LIVE_STACKS_MAX + 1, "f");
	assert_int_equal(l.list.count, LIVE_STACKS_MAX - LIVE_STACKS_MAX / 4 + 1);
	assert_non_null(stack_find(&l.list, 1));
	assert_null(stack_find(&l.list, 2)); /* the control: as old, and not used since */
	assert_non_null(stack_find(&l.list, LIVE_STACKS_MAX));
	assert_non_null(stack_find(&l.list, LIVE_STACKS_MAX + 1));
	live_stacks_done(&l);
}

static void test_bytes_have_a_ceiling(void **state)
{
	static char name[64 << 10];
	struct live_stacks l = {0};

	memset(name, 'a', sizeof(name) - 1);
	for (uint64_t i = 1; i <= 1000; i++) {
		add(&l, i, name);
		assert_true(l.bytes <= LIVE_STACKS_BYTES);
	}
	assert_non_null(stack_find(&l.list, 1000));
	assert_null(stack_find(&l.list, 1));
	live_stacks_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order_and_replaced),
		cmocka_unit_test(test_those_in_use_stay),
		cmocka_unit_test(test_bytes_have_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
