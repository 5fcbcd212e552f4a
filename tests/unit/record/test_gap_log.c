/* SPDX-License-Identifier: Apache-2.0 */
/* test_gap_log.c - a gap is told once for each process and file, whoever finds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "record/attach/coverage.h"

static bool add(struct gap_log *l, uint32_t pid, uint64_t start, const char *path, bool *ret_is_new)
{
	struct call_gap g = {.pid = pid, .start_ticks = start};

	call_gap_set_file(&g, path);
	return gap_log_add(l, &g, ret_is_new);
}

static void once_for_each_process_and_file(void **state)
{
	struct gap_log l = {0};
	bool is_new;

	assert_true(add(&l, 7, 100, "/lib/libcudart.so.12", &is_new));
	assert_true(is_new);
	assert_false(add(&l, 7, 100, "/lib/libcudart.so.12", &is_new));
	assert_false(is_new);
	assert_true(add(&l, 7, 100, "/lib/libcuda.so.1", &is_new));
	assert_false(is_new);
	assert_true(add(&l, 8, 100, "/lib/libcuda.so.1", &is_new));
	assert_true(is_new);
}

static void a_reused_pid_is_another_and_an_unknown_start_the_same(void **state)
{
	struct gap_log l = {0};
	bool is_new;

	assert_true(add(&l, 7, 100, "/a", &is_new));
	assert_false(add(&l, 7, 0, "/a", &is_new)); /* it has ended since */
	assert_false(is_new);
	assert_true(add(&l, 7, 200, "/a", &is_new));
	assert_true(is_new);
	assert_true(add(&l, 9, 0, "/a", &is_new));
	assert_false(add(&l, 9, 300, "/a", &is_new));
}

static void the_oldest_are_forgotten(void **state)
{
	struct gap_log l = {0};
	bool is_new;

	for (uint32_t pid = 1; pid <= GAP_LOG_MAX; pid++)
		assert_true(add(&l, pid, 1, "/a", &is_new));
	assert_false(add(&l, 1, 1, "/a", &is_new)); /* control: all fit */
	assert_true(add(&l, GAP_LOG_MAX + 1, 1, "/a", &is_new));
	assert_false(add(&l, 2, 1, "/a", &is_new));
	assert_true(add(&l, 1, 1, "/a", &is_new));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once_for_each_process_and_file),
		cmocka_unit_test(a_reused_pid_is_another_and_an_unknown_start_the_same),
		cmocka_unit_test(the_oldest_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
