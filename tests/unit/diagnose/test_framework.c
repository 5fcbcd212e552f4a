/* SPDX-License-Identifier: Apache-2.0 */
/* test_framework.c - what a program computes with, by its stacks and marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "diagnose/sentences/advice.h"

#define BIT(NAME) FRAMEWORK_BIT(FRAMEWORK_##NAME)

static unsigned find(const char *py_file, const char *library, enum step_origin origin)
{
	const struct stack_frame frames[] = {{.symbol = "f", .file = library},
		{.py_file = py_file, .py_func = "g", .py_line = 1}};
	struct stack stack = {.hash = 1, .frames = frames, .count = 2, .stop = ""};
	struct stack *items[] = {&stack};
	struct stack_list list = {items, 1};
	struct recording rec = {.stacks = &list};
	struct step_account a = {
		.origin = origin, .entry_count = 1, .entries = {{.stack_hash = 1}}};

	return frameworks_find(&rec, &a);
}

static void by_files_and_libraries(void **state)
{
	static const char site[] = "/opt/torch/lib/python3.12/site-packages/cupy/_core/core.py";

	assert_int_equal(find(site, "libc.so.6", STEP_BY_WAIT), BIT(CUPY));
	assert_int_equal(find("/home/u/train.py", "libtorch_cuda.so", STEP_BY_WAIT), BIT(TORCH));
	assert_int_equal(find("/v/site-packages/jax/_src/pjit.py", "x", STEP_BY_WAIT), BIT(JAX));
	assert_int_equal(
		find("/v/site-packages/lightning/pytorch/loops/fit_loop.py", "x", STEP_BY_WAIT),
		BIT(LIGHTNING) | BIT(TORCH));
	assert_int_equal(find("/home/u/train.py", "libc.so.6", STEP_BY_WAIT), 0);
}

static void by_marks(void **state)
{
	assert_int_equal(find("/home/u/a.py", "x", STEP_BY_OPTIMIZER), BIT(TORCH));
	assert_int_equal(find("/home/u/a.py", "x", STEP_BY_EXECUTE), BIT(JAX));
	assert_int_equal(find("/home/u/a.py", "x", STEP_BY_TIME), 0);
}

static void another_process_says_nothing_of_this_one(void **state)
{
	struct recording rec = {0};
	struct step_account a = {.origin = STEP_BY_TIME,
		.entry_count = 1,
		.entries = {{.owner = OWNER_PROCESS, .stack_hash = 1}}};

	assert_int_equal(frameworks_find(&rec, &a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_files_and_libraries),
		cmocka_unit_test(by_marks),
		cmocka_unit_test(another_process_says_nothing_of_this_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
