/* SPDX-License-Identifier: Apache-2.0 */
/* test_prologue.c - what is moved, by how much, and the neighbours that must not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>

#include <cmocka.h>

#include "record/attach/coverage_private.h"

static void test_moved(void **state)
{
	static const uint8_t endbr_push[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55};
	static const uint8_t endbr_push_r15[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57};
	static const uint8_t driver_short[16] = {
		0x81, 0x3d, 1, 2, 3, 4, 0x00, 0xba, 0x1c, 0x32, 0x74, 0x06};
	static const uint8_t driver_near[16] = {
		0x81, 0x3d, 1, 2, 3, 4, 0x00, 0xba, 0x1c, 0x32, 0x0f, 0x84};

	assert_int_equal(prologue_skip(EM_X86_64, endbr_push), 4);
	assert_int_equal(prologue_skip(EM_X86_64, endbr_push_r15), 4);
	assert_int_equal(prologue_skip(EM_X86_64, driver_short), 10);
	assert_int_equal(prologue_skip(EM_X86_64, driver_near), 10);
}

static void test_left_alone(void **state)
{
	static const uint8_t push[16] = {0x55, 0x48, 0x89, 0xe5};
	static const uint8_t sub_rsp[16] = {0x48, 0x83, 0xec, 0x08};
	static const uint8_t endbr_sub[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08};
	static const uint8_t endbr_mov[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0x89, 0xf8};
	static const uint8_t compare_jne[16] = {
		0x81, 0x3d, 1, 2, 3, 4, 0x00, 0xba, 0x1c, 0x32, 0x75, 0x06};
	/* another destination: cmpl $imm, x(%rax) has another ModRM byte */
	static const uint8_t compare_other[16] = {
		0x81, 0xb8, 1, 2, 3, 4, 0x00, 0xba, 0x1c, 0x32, 0x74, 0x06};
	static const uint8_t endbr_push[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55};

	assert_int_equal(prologue_skip(EM_X86_64, push), 0);
	assert_int_equal(prologue_skip(EM_X86_64, sub_rsp), 0);
	assert_int_equal(prologue_skip(EM_X86_64, endbr_sub), 0);
	assert_int_equal(prologue_skip(EM_X86_64, endbr_mov), 0);
	assert_int_equal(prologue_skip(EM_X86_64, compare_jne), 0);
	assert_int_equal(prologue_skip(EM_X86_64, compare_other), 0);
	assert_int_equal(prologue_skip(EM_AARCH64, endbr_push), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
