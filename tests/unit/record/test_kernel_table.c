/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel_table.c - names and counts of kernels meet, whichever comes first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/trace/kernel_table.h"

struct seen {
	struct kernel_row rows[8];
	size_t count, asked;
	bool full;
};

static bool take(void *arg, const struct kernel_row *row)
{
	struct seen *s = arg;

	if (s->full)
		return false;
	assert_in_range(s->count, 0, 7);
	s->rows[s->count++] = *row;
	return true;
}

static void ask(void *arg, uint32_t pid, uint64_t function)
{
	((struct seen *)arg)->asked++;
}

static const wall_time first = {1000}, later = {2000};

static void test_a_row_goes_out_once_it_is_launched(void **state)
{
	_cleanup_(kernel_table_freep) struct kernel_table *t = NULL;
	struct seen s = {0};

	assert_int_equal(kernel_table_new(&t), 0);
	kernel_table_name(t, 1, 0x10, first, KERNEL_REGISTERED, "_Z3addv", false);
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.count, 0); /* only registered */
	kernel_table_count(t, 1, 0x10, later, 4, 33, ask, &s);
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.asked, 0);
	assert_string_equal(s.rows[0].name, "_Z3addv");
	assert_int_equal(s.rows[0].launches, 4 * 33 / 2);
	assert_int_equal(s.rows[0].since.ns, 0);
	assert_int_equal(s.rows[0].first.ns, later.ns);
	kernel_table_count(t, 1, 0x10, (wall_time){3000}, 4, 33, ask, &s);
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.count, 1); /* nothing new */
	kernel_table_count(t, 1, 0x10, first, 5, 33, ask, &s);
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.rows[1].launches, 16); /* 16.5: the half is kept */
	assert_int_equal(s.rows[1].first.ns, later.ns);
	kernel_table_count(t, 1, 0x10, first, 6, 33, ask, &s);
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.rows[2].launches, 17);
}

static void test_a_name_may_come_after_the_launch(void **state)
{
	_cleanup_(kernel_table_freep) struct kernel_table *t = NULL;
	struct seen s = {0};

	assert_int_equal(kernel_table_new(&t), 0);
	kernel_table_count(t, 1, 0x10, first, 0, 33, ask, &s);
	kernel_table_count(t, 1, 0x10, first, 1, 33, ask, &s);
	assert_int_equal(s.asked, 1); /* once */
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.rows[0].origin, KERNEL_UNKNOWN);
	kernel_table_symbol(t, 1, 0x10, KERNEL_UNKNOWN, "libx.so+0x10");
	kernel_table_symbol(t, 1, 0x10, KERNEL_SYMBOL, "add()");
	kernel_table_flush(t, take, &s);
	assert_string_equal(s.rows[1].name, "add()");
	kernel_table_symbol(t, 1, 0x10, KERNEL_SYMBOL, "other()"); /* a name stays */
	kernel_table_name(t, 1, 0x10, first, KERNEL_REGISTERED, "_Z3addv", false);
	kernel_table_flush(t, take, &s);
	assert_string_equal(s.rows[2].name, "_Z3addv");
	assert_int_equal(s.rows[2].since.ns, 0); /* the same kernel, better known */
	assert_int_equal(s.count, 3);
}

static void test_a_handle_may_become_another_kernels(void **state)
{
	_cleanup_(kernel_table_freep) struct kernel_table *t = NULL;
	struct seen s = {0};

	assert_int_equal(kernel_table_new(&t), 0);
	kernel_table_name(t, 1, 0x10, first, KERNEL_HANDLE, "one", false);
	kernel_table_alias(t, 1, 0x20, 0x10, first);
	kernel_table_alias(t, 2, 0x20, 0x10, first); /* another process knows nothing */
	kernel_table_count(t, 1, 0x10, first, 1, 2, ask, &s);
	kernel_table_flush(t, take, &s);
	kernel_table_name(t, 1, 0x10, later, KERNEL_HANDLE, "two", false);
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.count, 2);
	assert_string_equal(s.rows[1].name, "two");
	assert_int_equal(s.rows[1].since.ns, later.ns);
	assert_int_equal(s.rows[0].first.ns, first.ns);
	assert_int_equal(s.rows[1].first.ns, later.ns); /* of the other kernel */
	assert_int_equal(s.rows[1].launches, 0);
	kernel_table_count(t, 1, 0x20, first, 1, 2, ask, &s);
	assert_int_equal(s.asked, 0);
	kernel_table_flush(t, take, &s);
	assert_string_equal(s.rows[2].name, "one");
	kernel_table_count(t, 2, 0x20, first, 1, 2, ask, &s);
	assert_int_equal(s.asked, 1);
}

static void test_what_finds_no_room_comes_again(void **state)
{
	_cleanup_(kernel_table_freep) struct kernel_table *t = NULL;
	struct seen s = {.full = true};

	assert_int_equal(kernel_table_new(&t), 0);
	kernel_table_name(t, 1, 0x10, first, KERNEL_REGISTERED, "add", false);
	kernel_table_count(t, 1, 0x10, first, 2, 33, ask, &s);
	kernel_table_flush(t, take, &s);
	s.full = false;
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.rows[0].launches, 33);
	kernel_table_renew(t); /* a new file: the name again, the launches not */
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.rows[1].launches, 0);
	kernel_table_gone(t, 1);
	kernel_table_renew(t);
	kernel_table_flush(t, take, &s);
	assert_int_equal(s.count, 2);
}

static void test_there_is_a_ceiling(void **state)
{
	_cleanup_(kernel_table_freep) struct kernel_table *t = NULL;

	assert_int_equal(kernel_table_new(&t), 0);
	for (uint64_t i = 0; i < KERNEL_TABLE_MAX + 3; i++)
		kernel_table_name(t, (uint32_t)(i % 8), i, first, KERNEL_REGISTERED, "k", false);
	assert_in_range(kernel_table_dropped(t), 3, 8); /* keys may meet */
}

/* A process with names without end has its share; its neighbour's come all the same. */
static void test_a_flood_hides_nobody(void **state)
{
	_cleanup_(kernel_table_freep) struct kernel_table *t = NULL;

	assert_int_equal(kernel_table_new(&t), 0);
	for (uint64_t i = 1; i <= KERNEL_TABLE_MAX + 10; i++)
		kernel_table_name(t, 1, i, first, KERNEL_HANDLE, "flood", false);
	assert_int_equal(kernel_table_dropped(t), KERNEL_TABLE_MAX + 10 - KERNEL_TABLE_SHARE);
	assert_string_equal(kernel_table_find(t, 1, 1), "flood");
	assert_null(kernel_table_find(t, 1, KERNEL_TABLE_SHARE + 1));
	kernel_table_name(t, 2, 7, first, KERNEL_HANDLE, "neighbour", false);
	assert_string_equal(kernel_table_find(t, 2, 7), "neighbour");
	kernel_table_gone(t, 1);
	kernel_table_name(t, 1, 5, first, KERNEL_HANDLE, "again", false);
	assert_string_equal(kernel_table_find(t, 1, 5), "again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_row_goes_out_once_it_is_launched),
		cmocka_unit_test(test_a_name_may_come_after_the_launch),
		cmocka_unit_test(test_a_handle_may_become_another_kernels),
		cmocka_unit_test(test_what_finds_no_room_comes_again),
		cmocka_unit_test(test_there_is_a_ceiling),
		cmocka_unit_test(test_a_flood_hides_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
