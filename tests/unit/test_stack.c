/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/macros.h"
#include "model/stack.h"

static void found_by_hash(void **state)
{
	static struct stack a = {.hash = 3}, b = {.hash = 5}, c = {.hash = UINT64_MAX - 2};
	struct stack *items[] = {&a, &b, &c};
	struct stack_list list = {items, 3}, empty = {NULL, 0};

	assert_ptr_equal(stack_find(&list, 3), &a);
	assert_ptr_equal(stack_find(&list, 5), &b);
	assert_ptr_equal(stack_find(&list, UINT64_MAX - 2), &c);
	assert_null(stack_find(&list, 4));
	assert_null(stack_find(&list, 0));
	assert_null(stack_find(&empty, 3));
	assert_null(stack_find(NULL, 3));
}

static void a_place_is_python_or_outside_cuda(void **state)
{
	static const struct stack_frame python[] = {
		{.symbol = "cudaStreamSynchronize", .file = "libcudart.so.12"},
		{.symbol = "at::native::copy_", .file = "libtorch_cpu.so"},
		{.py_file = "/w/train.py", .py_func = "forward", .py_line = 142},
		{.py_file = "/w/train.py", .py_func = "<module>", .py_line = 9},
	};
	static const struct stack_frame native[] = {
		{.symbol = "cuLaunchKernel", .file = "static-program"},
		{.symbol = "internal", .file = "libcudart.so.12"},
		{.symbol = "ncclAllReduce", .file = "net.c", .line = 3},
		{.ip = 0x1000, .file = "libfoo.so"},
		{.symbol = "cutlass_gemm", .file = "libgemm.so"},
		{.symbol = "main", .file = "main.c", .line = 9},
	};
	struct stack s = {.frames = python, .count = ARRAY_SIZE(python)};

	assert_ptr_equal(stack_place(&s), &python[2]);
	s = (struct stack){.frames = native, .count = ARRAY_SIZE(native)};
	assert_ptr_equal(stack_place(&s), &native[4]);
	s.count = 4;
	assert_null(stack_place(&s));
	s.count = 0;
	assert_null(stack_place(&s));
}

static void names(void **state)
{
	static const struct stack_frame bare[] = {{.ip = 1}, {.ip = 2, .file = "libx.so"}};
	static const struct stack_frame python[] = {{.ip = 1}, {.py_file = "", .py_func = "f"}};
	static const struct stack_frame native[] = {{.symbol = "f"}};

	assert_false(stack_has_names(&(struct stack){.frames = bare, .count = 2}));
	assert_true(stack_has_names(&(struct stack){.frames = python, .count = 2}));
	assert_true(stack_has_names(&(struct stack){.frames = native, .count = 1}));
	assert_false(stack_has_names(&(struct stack){0}));
}

static void base_names(void **state)
{
	assert_string_equal(stack_base_name("/a/b/train.py"), "train.py");
	assert_string_equal(stack_base_name("train.py"), "train.py");
	assert_string_equal(stack_base_name("/lib/torch/__init__.py"), "torch/__init__.py");
	assert_string_equal(stack_base_name("__init__.py"), "__init__.py");
	assert_string_equal(stack_base_name("/__init__.py"), "/__init__.py");
	assert_string_equal(stack_base_name("/a/"), "/a/");
	assert_string_equal(stack_base_name(""), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_hash),
		cmocka_unit_test(a_place_is_python_or_outside_cuda),
		cmocka_unit_test(names),
		cmocka_unit_test(base_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
