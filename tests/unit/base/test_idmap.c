/* SPDX-License-Identifier: Apache-2.0 */
/* test_idmap.c - against a plain array as the model, with many removals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>

#include <cmocka.h>

#include "base/idmap.h"

static void test_empty(void **state)
{
	struct idmap m = IDMAP_INIT(4);
	size_t cursor = 0;

	assert_null(idmap_get(&m, 7));
	assert_null(idmap_remove(&m, 7));
	assert_null(idmap_next(&m, &cursor, NULL));
	idmap_done(&m);
}

static void test_ceiling(void **state)
{
	struct idmap m = IDMAP_INIT(2);
	int a, b, c;

	assert_int_equal(idmap_put(&m, 1, &a), 0);
	assert_int_equal(idmap_put(&m, 2, &b), 0);
	assert_int_equal(idmap_put(&m, 3, &c), -ENOBUFS);
	assert_int_equal(idmap_put(&m, 2, &c), 0); /* replacing is no new entry */
	assert_ptr_equal(idmap_get(&m, 2), &c);
	assert_null(idmap_get(&m, 3));
	idmap_done(&m);
}

static void test_against_model(void **state)
{
	enum { IDS = 500 };
	static int cell[IDS];
	int present[IDS] = {0}, count = 0;
	struct idmap m = IDMAP_INIT(IDS);
	uint32_t rng = 12345;

	for (int round = 0; round < 20000; round++) {
		uint64_t id;

		rng = rng * 1664525 + 1013904223;
		id = (rng >> 8) % IDS;
		if (rng & 0x80) {
			assert_int_equal(idmap_put(&m, id, &cell[id]), 0);
			count += !present[id];
			present[id] = 1;
		} else {
			assert_ptr_equal(idmap_remove(&m, id), present[id] ? &cell[id] : NULL);
			count -= present[id];
			present[id] = 0;
		}
		assert_int_equal(m.used, count);
	}
	for (uint64_t id = 0; id < IDS; id++)
		assert_ptr_equal(idmap_get(&m, id), present[id] ? &cell[id] : NULL);
	idmap_done(&m);
}

static void test_walk(void **state)
{
	struct idmap m = IDMAP_INIT(100);
	uint64_t id, sum = 0;
	size_t cursor = 0, n = 0;
	int x;

	for (uint64_t i = 1; i <= 100; i++)
		idmap_put(&m, i << 32, &x);
	while (idmap_next(&m, &cursor, &id)) {
		sum += id >> 32;
		n++;
	}
	assert_int_equal(n, 100);
	assert_int_equal(sum, 5050);
	idmap_done(&m);
}

/* Of a table that is as full as it gets: what is taken out on the way leaves nobody out, however entries move. */
static void test_take_on_a_walk(void **state)
{
	enum { IDS = 3 * 1024 };
	static int cell[IDS];
	struct idmap m = IDMAP_INIT(IDS);
	size_t cursor = 0, seen = 0, taken = 0;
	uint64_t id;

	for (int i = 0; i < IDS; i++)
		assert_int_equal(idmap_put(&m, (uint64_t)i, &cell[i]), 0);
	for (int *c; (c = idmap_next(&m, &cursor, &id)); seen++) {
		assert_ptr_equal(c, &cell[id]);
		++*c;
		if (id % 3) {
			assert_ptr_equal(idmap_take(&m, &cursor), c);
			taken++;
		}
	}
	assert_int_equal(taken, IDS / 3 * 2);
	assert_int_equal(m.used, IDS / 3);
	assert_in_range(seen, IDS, IDS + 64); /* a few at the end that came from the beginning */
	for (int i = 0; i < IDS; i++) {
		assert_true(cell[i] >= 1);
		assert_ptr_equal(idmap_get(&m, (uint64_t)i), i % 3 ? NULL : &cell[i]);
	}
	idmap_done(&m);
}

/* Who replaces what is there cannot fail, and a table at its ceiling does not grow. */
static void test_full(void **state)
{
	struct idmap m = IDMAP_INIT(48);
	int a, b;

	for (uint64_t i = 0; i < 48; i++)
		assert_int_equal(idmap_put(&m, i, &a), 0);
	assert_int_equal(m.capacity, 64);
	assert_int_equal(idmap_put(&m, 7, &b), 0);
	assert_int_equal(idmap_put(&m, 48, &b), -ENOBUFS);
	assert_int_equal(m.capacity, 64);
	idmap_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_against_model),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_take_on_a_walk),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
