/* SPDX-License-Identifier: Apache-2.0 */
/* test_accessor.c - code sequences as compilers make them, and the real libnccl where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "agent/attach/accessor.h"
#include "agent/discover/elfsym.h"

#define REAL_NCCL "/usr/local/cuda/lib64/libnccl.so.2"

static void test_x86(void **state)
{
	/* mov 0x1044d0(%rbx),%eax; mov %eax,(%r12); xor %eax,%eax; ret */
	static const uint8_t plain[] = {0x8b, 0x83, 0xd0, 0x44, 0x10, 0x00, 0x41, 0x89, 0x04, 0x24,
		0x89, 0x02, 0x31, 0xc0, 0xc3};
	/* mov 0x1044d4(%r15),%r8d; mov %r8d,(%rsi) */
	static const uint8_t high[] = {0x45, 0x8b, 0x87, 0xd4, 0x44, 0x10, 0x00, 0x44, 0x89, 0x06};
	/* a 64-bit load of a pointer is not it */
	static const uint8_t wide[] = {0x48, 0x8b, 0x83, 0xd0, 0x44, 0x10, 0x00, 0x89, 0x02};
	uint32_t at = 1;

	assert_int_equal(accessor_field(EM_X86_64, plain, sizeof(plain), &at), 0);
	assert_int_equal(at, 0x1044d0);
	assert_int_equal(accessor_field(EM_X86_64, high, sizeof(high), &at), 0);
	assert_int_equal(at, 0x1044d4);
	assert_int_equal(accessor_field(EM_X86_64, wide, sizeof(wide), &at), -ENOENT);
	assert_int_equal(at, 0x1044d4);
	assert_int_equal(accessor_field(EM_X86_64, plain, 5, &at), -ENOENT);
}

static void test_arm64(void **state)
{
	/* add x22, x22, #0x104, lsl #12; ldr w0, [x22, #1232]; str w0, [x23] */
	static const uint32_t far[] = {0x914412d6, 0xaa1303e0, 0xb944d2c0, 0xb90002e0, 0xd65f03c0};
	/* ldr w0, [x19, #128]; str w0, [x20]; and a spill to the stack that is not it */
	static const uint32_t near[] = {0xb9404bff, 0xb9408260, 0xb9000280};
	/* the next function's field is not taken for this one's */
	static const uint32_t two[] = {0xb9408260, 0xb9000280, 0xb9409260, 0xb9000280};
	uint32_t at = 1;

	assert_int_equal(accessor_field(EM_AARCH64, (const void *)far, sizeof(far), &at), 0);
	assert_int_equal(at, 0x1044d0);
	assert_int_equal(accessor_field(EM_AARCH64, (const void *)near, sizeof(near), &at), 0);
	assert_int_equal(at, 128);
	assert_int_equal(accessor_field(EM_AARCH64, (const void *)two, sizeof(two), &at), 0);
	assert_int_equal(at, 128);
	assert_int_equal(accessor_field(EM_386, (const void *)near, sizeof(near), &at), -ENOENT);
}

/* Rank, size and device lie side by side in the communicator of NCCL 2.28. */
static void test_real_library(void **state)
{
	static const char *const names[] = {
		"ncclCommUserRank", "ncclCommCount", "ncclCommCuDevice"};
	_cleanup_(elfsym_closep) struct elfsym *e = NULL;
	uint32_t field[3];

	if (elfsym_open(REAL_NCCL, &e, NULL) < 0) {
		print_message("# skip: no libnccl of the CUDA toolkit on this machine\n");
		skip();
	}
	for (int i = 0; i < 3; i++) {
		uint8_t code[1024];
		uint64_t offset;

		assert_int_equal(elfsym_offset(e, names[i], &offset), 0);
		assert_int_equal(elfsym_read(e, offset, code, sizeof(code)), 0);
		assert_int_equal(
			accessor_field(elfsym_machine(e), code, sizeof(code), &field[i]), 0);
	}
	assert_int_equal(field[1], field[0] + 4);
	assert_int_equal(field[2], field[0] + 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_real_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
