/* SPDX-License-Identifier: Apache-2.0 */
/* test_straggler_table.c - order by age, removal from anywhere, the ceiling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "notify/sink/sink.h"

static struct straggler named(int n)
{
	struct straggler s = {.cluster = "c"};

	snprintf(s.node, sizeof(s.node), "n%d", n);
	return s;
}

static void expect(const struct straggler_table *t, const int *wanted, size_t count)
{
	const struct straggler *s;
	const void *cursor = NULL;
	size_t n = 0;

	while ((s = straggler_table_next(t, &cursor))) {
		struct straggler w = named(wanted[n]);

		assert_true(n++ < count);
		assert_string_equal(s->node, w.node);
	}
	assert_int_equal(n, count);
}
#define EXPECT(t, ...)                                                                             \
	expect(t, (const int[]){__VA_ARGS__}, ARRAY_SIZE(((const int[]){__VA_ARGS__})))

static void test_order_and_ceiling(void **state)
{
	struct straggler_table *t;
	struct straggler s;

	assert_int_equal(straggler_table_new(5, &t), 0);
	for (int i = 0; i < 5; i++) {
		s = named(i);
		assert_int_equal(straggler_table_add(t, &s), 0);
	}
	s = named(0);
	assert_int_equal(straggler_table_add(t, &s), 0); /* already there: keeps its place */
	EXPECT(t, 0, 1, 2, 3, 4);
	s = named(2);
	straggler_table_remove(t, &s);
	straggler_table_remove(t, &s);
	EXPECT(t, 0, 1, 3, 4);
	s = named(4);
	straggler_table_remove(t, &s);
	s = named(0);
	straggler_table_remove(t, &s);
	EXPECT(t, 1, 3);
	for (int i = 10; i < 13; i++) {
		s = named(i);
		assert_int_equal(straggler_table_add(t, &s), 0);
	}
	s = named(13);
	assert_int_equal(straggler_table_add(t, &s), 1);
	EXPECT(t, 3, 10, 11, 12, 13);
	snprintf(s.cluster, sizeof(s.cluster), "other");
	assert_int_equal(straggler_table_add(t, &s), 1); /* the same name in another cluster */
	straggler_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
