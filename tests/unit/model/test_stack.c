/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

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
	static const struct stack_frame of_std[] = {
		{.symbol = "void std::__introsort_loop<float*>(float*, float*)",
			.file = "stl_algo.h"},
		{.symbol = "__gnu_cxx::helper()", .file = "stl_algo.h"},
		{.symbol = "Window<std::string>::quantiles(std::vector<float>&)",
			.file = "rank.cpp"},
	};
	struct stack s = {.frames = python, .count = ARRAY_SIZE(python)};

	assert_ptr_equal(stack_place(&s), &python[2]);
	s = (struct stack){.frames = native, .count = ARRAY_SIZE(native)};
	assert_ptr_equal(stack_place(&s), &native[4]);
	s.count = 4;
	assert_null(stack_place(&s));
	s = (struct stack){.frames = of_std, .count = 3};
	assert_ptr_equal(stack_place(&s), &of_std[2]);
	s.count = 2; /* nothing else is known */
	assert_ptr_equal(stack_place(&s), &of_std[0]);
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

/* Libraries call back and forth: the line that its author can change is asked for. */
static void the_users_frame(void **state)
{
	static const char *const libraries[] = {
		"/usr/lib/python3.12/queue.py",
		"/usr/lib64/python3.9/threading.py",
		"/opt/conda/lib/python3.13t/site.py",
		"lib/python3.11/json/decoder.py",
		"/w/venv/lib/python3.11/site-packages/PIL/Image.py",
		"/usr/lib/python3/dist-packages/numpy/core.py",
		"/src/pytorch/torch/optim/adamw.py",
		"torch/utils/data/dataloader.py",
		"<frozen importlib._bootstrap>",
		"",
	};
	static const char *const own[] = {
		"/w/train.py",
		"train.py",
		"/home/u/mytorch/train.py",
		"/w/lib/python/train.py",
		"/w/calib/python3/train.py",
		"/w/python3.12/train.py",
		"/w/my-site-packages/train.py",
		"<stdin>",
		"<ipython-input-3-1f2d>",
	};
	static const char *const made[] = {"<string>", "<eval_with_key>.0"};
	struct stack_frame f[] = {
		{.symbol = "read", .file = "train.py"},
		{.py_func = "get"},
		{.py_func = "load", .py_file = "/w/train.py"},
	};
	struct stack s = {.frames = f, .count = ARRAY_SIZE(f)};

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		f[1].py_file = libraries[i];
		assert_ptr_equal(stack_user_frame(&s), &f[2]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		f[1].py_file = own[i];
		assert_ptr_equal(stack_user_frame(&s), &f[1]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		s.count = 3;
		f[1].py_file = made[i];
		assert_ptr_equal(stack_user_frame(&s), &f[2]);
		s.count = 2; /* python3 -c: there is nothing else */
		assert_ptr_equal(stack_user_frame(&s), &f[1]);
	}
	f[1].py_file = libraries[0];
	assert_null(stack_user_frame(&s));
}

/* What a worker does is not the line that forked it. */
static void who_forked_is_beyond(void **state)
{
	struct stack_frame f[] = {
		{.py_func = "collate", .py_file = "/w/site-packages/torch/utils/data/collate.py"},
		{.py_func = "BaseProcess._bootstrap",
			.py_file = "/usr/lib/python3.12/multiprocessing/process.py"},
		{.py_func = "train", .py_file = "/w/train.py"},
	};
	struct stack s = {.frames = f, .count = ARRAY_SIZE(f)};

	assert_null(stack_user_frame(&s));
	f[0].py_file = "/w/tiles.py";
	assert_ptr_equal(stack_user_frame(&s), &f[0]);
	f[0].py_file = "/usr/lib/python3.12/zipfile.py";
	f[1].py_func = "BaseProcess.start"; /* the parent itself */
	assert_ptr_equal(stack_user_frame(&s), &f[2]);
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

/* A copy does not look at what it was made of. */
static void copies_stand_alone(void **state)
{
	char symbol[] = "f", file[] = "x.py", stop[] = "cut";
	struct stack_frame frames[] = {{.ip = 7, .symbol = symbol, .line = 3},
		{.py_file = file, .py_func = symbol, .py_line = 9}, {.ip = 8}};
	struct stack s = {.hash = 5, .frames = frames, .count = 3, .stop = stop};
	size_t bytes = 0;
	struct stack *copy = stack_copy(&s, &bytes);

	assert_non_null(copy);
	assert_true(bytes > sizeof(s) + sizeof(frames));
	memset(symbol, 'x', 1);
	memset(file, 'x', 4);
	memset(stop, 'x', 3);
	memset(frames, 0, sizeof(frames));
	assert_int_equal(copy->hash, 5);
	assert_int_equal(copy->count, 3);
	assert_string_equal(copy->stop, "cut");
	assert_string_equal(copy->frames[0].symbol, "f");
	assert_int_equal(copy->frames[0].line, 3);
	assert_null(copy->frames[0].py_func);
	assert_string_equal(copy->frames[1].py_file, "x.py");
	assert_int_equal(copy->frames[1].py_line, 9);
	assert_int_equal(copy->frames[2].ip, 8);
	assert_null(copy->frames[2].symbol);
	free(copy);
	copy = stack_copy(&(struct stack){.hash = 1}, NULL);
	assert_non_null(copy);
	assert_int_equal(copy->count, 0);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_hash),
		cmocka_unit_test(a_place_is_python_or_outside_cuda),
		cmocka_unit_test(names),
		cmocka_unit_test(who_forked_is_beyond),
		cmocka_unit_test(base_names),
		cmocka_unit_test(the_users_frame),
		cmocka_unit_test(copies_stand_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
