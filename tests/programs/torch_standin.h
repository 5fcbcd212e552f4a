/* SPDX-License-Identifier: Apache-2.0 */
/* torch_standin.h - see torch_standin.c. */
#pragma once

struct torch_string { /* std::string of the new ABI */
	const char *data;
	unsigned long size;
	char local[16];
};

struct torch_old_string { /* and of the old one, as in PyTorch's wheels up to 2.6 */
	const char *data;
};

struct torch_handle {
	const void *words[3];
};

struct torch_handle torch_enter(const struct torch_string *name, const void *args) __asm__(
	"_ZN5torch8autograd8profiler25record_function_enter_newERKNSt7__cxx1112basic_stringIcSt11"
	"char_traitsIcESaIcEEERKSt8optionalIS7_E");
struct torch_handle torch_enter_old(const struct torch_old_string *name, const void *args) __asm__(
	"_ZN5torch8autograd8profiler25record_function_enter_newERKSsRKSt8optionalISsE");
int torch_execute(int passes) __asm__(
	"_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EE");
