/* SPDX-License-Identifier: Apache-2.0 */
/* test_array.c - room that doubles up to a ceiling, and stays as it was where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/macros.h"

struct pair {
	uint64_t a, b;
};

static void test_elements_stay_while_the_room_doubles(void **state)
{
	_cleanup_free_ struct pair *items = NULL;
	size_t room = 0, grown = 0;

	for (size_t n = 0; n < 1000; n++) {
		size_t before = room;

		assert_int_equal(ARRAY_RESERVE(items, room, n + 1, 4096), 0);
		assert_true(room > n);
		grown += room != before;
		items[n] = (struct pair){n, ~(uint64_t)n};
	}
	assert_in_range(grown, 5, 10); /* not once for each element, and not at once */
	for (size_t n = 0; n < 1000; n++) {
		assert_int_equal(items[n].a, n);
		assert_int_equal(items[n].b, ~(uint64_t)n);
	}
}

static void test_room_that_is_there_is_kept(void **state)
{
	_cleanup_free_ int *items = NULL;
	size_t room = 0;
	int *was;

	assert_int_equal(ARRAY_RESERVE(items, room, 100, 1000), 0);
	assert_int_equal(room, 100);
	was = items;
	assert_int_equal(ARRAY_RESERVE(items, room, 100, 1000), 0);
	assert_int_equal(ARRAY_RESERVE(items, room, 1, 1000), 0);
	assert_int_equal(room, 100);
	assert_ptr_equal(items, was);
}

static void test_nothing_needed_takes_nothing(void **state)
{
	int *items = NULL;
	size_t room = 0, need = 0;

	assert_int_equal(ARRAY_RESERVE(items, room, need, 0), 0);
	assert_null(items);
	assert_int_equal(room, 0);
}

static void test_ceiling(void **state)
{
	_cleanup_free_ int *items = NULL;
	size_t room = 0;

	assert_int_equal(ARRAY_RESERVE(items, room, 4, 3), -ENOBUFS);
	assert_null(items);
	assert_int_equal(room, 0);
	assert_int_equal(ARRAY_RESERVE(items, room, 1, 3), 0);
	assert_int_equal(room, 3); /* never more than the ceiling */
	items[2] = 7;
	assert_int_equal(ARRAY_RESERVE(items, room, 4, 3), -ENOBUFS);
	assert_int_equal(room, 3);
	assert_int_equal(items[2], 7);
	assert_int_equal(ARRAY_RESERVE(items, room, 4, 100), 0); /* the same with a higher one */
	assert_int_equal(items[2], 7);
}

/* More bytes than a size_t can count, and the largest room: neither wraps round to a small one. */
static void test_sizes_that_overflow(void **state)
{
	_cleanup_free_ struct pair *items = NULL;
	size_t room = 0;

	assert_int_equal(
		ARRAY_RESERVE(items, room, SIZE_MAX / sizeof(*items) + 1, SIZE_MAX), -ENOMEM);
	assert_null(items);
	assert_int_equal(ARRAY_RESERVE(items, room, 2, SIZE_MAX), 0);
	items[1].b = 5;
	assert_int_equal(ARRAY_RESERVE(items, room, SIZE_MAX, SIZE_MAX), -ENOMEM);
	assert_int_equal(items[1].b, 5);
	room = SIZE_MAX / 2 + 1;
	assert_int_equal(array_grow(&items, &room, room + 1, sizeof(*items), SIZE_MAX), -ENOMEM);
	assert_int_equal(room, SIZE_MAX / 2 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elements_stay_while_the_room_doubles),
		cmocka_unit_test(test_room_that_is_there_is_kept),
		cmocka_unit_test(test_nothing_needed_takes_nothing),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_sizes_that_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
