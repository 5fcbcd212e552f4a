/* SPDX-License-Identifier: Apache-2.0 */
/* stack_fixture.h - a few call stacks with names, for the tests of what prints them. */
#pragma once

#include "model/stack.h"

static const struct stack_frame stack_a_frames[] = {
	{.ip = 1, .symbol = "cudaStreamSynchronize", .file = "libcudart.so.12"},
	{.ip = 2, .symbol = "at::native::copy_(at::Tensor&)", .file = "/src/Copy.cpp", .line = 31},
	{.ip = 3, .file = "libfoo.so"},
	{.ip = 4, .file = "libfoo.so"},
	{.py_file = "/w/train.py", .py_func = "forward", .py_line = 142},
	{.py_file = "/w/train.py", .py_func = "<module>", .py_line = 9},
};
/* the same place by another way, without the call itself at its head */
static const struct stack_frame stack_b_frames[] = {
	{.ip = 5, .symbol = "at::native::sum+0x1f", .file = "libtorch.so"},
	{.py_file = "/w/train.py", .py_func = "forward", .py_line = 142},
	{.py_file = "/w/train.py", .py_func = "<module>", .py_line = 9},
};
static const struct stack_frame stack_c_frames[] = {
	{.ip = 6, .symbol = "load;\x1b[2J<b>&\n", .file = "lib\x07x.so"},
	{.ip = 0xabc},
};
static struct stack stack_a = {10, stack_a_frames, 6, ""};
static struct stack stack_b = {20, stack_b_frames, 3, ""};
static struct stack stack_c = {UINT64_MAX - 4, stack_c_frames, 2, "no unwind table"};
static struct stack *const stack_items[] = {&stack_a, &stack_b, &stack_c};
static const struct stack_list three_stacks
	__attribute__((unused)) = {(struct stack **)stack_items, 3};
