/* SPDX-License-Identifier: Apache-2.0 */
/* test_host_code.c - host code that drives the GPU is told from what is done while the GPU has nothing to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/chains/host_code.h"
#include "base/macros.h"

#define LIB "/venv/lib/python3.11/site-packages"
#define USER                                                                                       \
	{                                                                                          \
		.py_file = "/home/u/train.py", .py_func = "step", .py_line = 7                     \
	}

static void test_stacks(void **state)
{
	static const struct {
		bool drives;
		struct stack_frame frames[4]; /* innermost first */
	} rows[] = {
		{true, {{.py_file = LIB "/torch/nn/modules/linear.py", .py_func = "forward"},
			       USER}},
		{true, {{.py_file = LIB "/torch/optim/adam.py", .py_func = "step"}, USER}},
		{true, {{.symbol = "at::_ops::add::call", .file = "libtorch_cuda.so"}, USER}},
		{true, {{.symbol = "cudaLaunchKernel", .file = "libcudart.so.12"},
			       {.py_file = LIB "/cupy/_core/core.py", .py_func = "add"}, USER}},
		{true, {{.py_file = LIB "/jax/_src/pjit.py", .py_func = "call"}, USER}},
		/* The user's own line, and what libraries do on the CPU for it. */
		{false, {USER}},
		{false, {{.symbol = "memcpy", .file = "libc.so.6"}, USER}},
		{false, {{.py_file = LIB "/PIL/Image.py", .py_func = "resize"}, USER}},
		{false, {{.py_file = LIB "/torchvision/transforms/functional.py", .py_func = "f"},
				USER}},
		{false, {{.py_file = LIB "/transformers/tokenization_utils.py", .py_func = "f"},
				USER}},
		{false, {{.symbol = "at::native::AVX2::add_kernel", .file = "libtorch_cpu.so"},
				USER}},
		/* A transform of images among a model's layers is work on the CPU all the same. */
		{false, {{.py_file = LIB "/PIL/Image.py", .py_func = "resize"},
				{.py_file = LIB "/torch/nn/modules/module.py", .py_func = "_call"},
				USER}},
		/* Who called the user does not matter: a trainer of a framework calls everybody. */
		{false, {USER, {.py_file = LIB "/torch/nn/modules/module.py", .py_func = "_call"}}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stack s = {.frames = rows[i].frames, .stop = ""};

		while (s.count < 4 && (s.frames[s.count].symbol || s.frames[s.count].py_file))
			s.count++;
		if (host_code_drives_gpu(&s) != rows[i].drives)
			fail_msg("stack %zu", i);
	}
}

static void test_without_frames_or_names(void **state)
{
	static const struct stack_frame unnamed[] = {{.ip = 1}, {.ip = 2}};
	const struct stack none = {.stop = ""}, bare = {.frames = unnamed, .count = 2, .stop = ""};

	assert_false(host_code_drives_gpu(&none));
	assert_false(host_code_drives_gpu(&bare));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_without_frames_or_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
