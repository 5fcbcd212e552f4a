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

#include "record/attach/accessor.h"
#include "record/discover/elfsym.h"
#include "base/macros.h"

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

static uint32_t x86_field(const uint8_t *code, size_t len)
{
	uint32_t at = 0;

	assert_int_equal(accessor_field(EM_X86_64, code, len, &at), 0);
	return at;
}

/* r12 as a base needs a SIB byte; (%r13) and (%rbp) can be written only with an offset of 0. */
static void test_x86_awkward_registers(void **state)
{
	/* mov 0x1044d0(%r12),%eax; mov %eax,(%rbx) */
	static const uint8_t from_r12[] = {
		0x41, 0x8b, 0x84, 0x24, 0xd0, 0x44, 0x10, 0x00, 0x89, 0x03};
	/* mov 0x1044d4(%r12),%r9d; xor %ebp,%ebp; mov %r9d,(%r12) */
	static const uint8_t both_r12[] = {
		0x45, 0x8b, 0x8c, 0x24, 0xd4, 0x44, 0x10, 0x00, 0x31, 0xed, 0x45, 0x89, 0x0c, 0x24};
	/* mov 0x1044d8(%rbx),%eax; mov %eax,(%r12) */
	static const uint8_t to_r12[] = {
		0x8b, 0x83, 0xd8, 0x44, 0x10, 0x00, 0x41, 0x89, 0x04, 0x24};
	/* mov 0x1044dc(%rbx),%eax; mov %eax,0x0(%r13) */
	static const uint8_t to_r13[] = {
		0x8b, 0x83, 0xdc, 0x44, 0x10, 0x00, 0x41, 0x89, 0x45, 0x00};
	/* mov 0x1044e0(%rbx),%edx; mov %edx,0x0(%rbp) */
	static const uint8_t to_rbp[] = {0x8b, 0x93, 0xe0, 0x44, 0x10, 0x00, 0x89, 0x55, 0x00};

	assert_int_equal(x86_field(from_r12, sizeof(from_r12)), 0x1044d0);
	assert_int_equal(x86_field(both_r12, sizeof(both_r12)), 0x1044d4);
	assert_int_equal(x86_field(to_r12, sizeof(to_r12)), 0x1044d8);
	assert_int_equal(x86_field(to_r13, sizeof(to_r13)), 0x1044dc);
	assert_int_equal(x86_field(to_rbp, sizeof(to_rbp)), 0x1044e0);
}

/* What looks alike and is something else, or is cut off. */
static void test_x86_refused(void **state)
{
	static const struct {
		size_t len;
		uint8_t code[16];
	} wrong[] = {
		/* mov 0x1044d0(%rsp),%eax: the stack */
		{9, {0x8b, 0x84, 0x24, 0xd0, 0x44, 0x10, 0x00, 0x89, 0x03}},
		/* mov 0x1044d0(%r12,%rcx,1),%eax */
		{10, {0x41, 0x8b, 0x84, 0x0c, 0xd0, 0x44, 0x10, 0x00, 0x89, 0x03}},
		/* … mov %eax,(%rsp): spilled */
		{9, {0x8b, 0x83, 0xd0, 0x44, 0x10, 0x00, 0x89, 0x04, 0x24}},
		/* … mov %eax,0x8(%r13): a structure's second member */
		{10, {0x8b, 0x83, 0xd0, 0x44, 0x10, 0x00, 0x41, 0x89, 0x45, 0x08}},
		/* … mov %rax,(%r14): 64 bits */
		{9, {0x8b, 0x83, 0xd0, 0x44, 0x10, 0x00, 0x49, 0x89, 0x06}},
		/* … mov %eax,(%r12) and mov %eax,0x0(%r13) without their last bytes */
		{9, {0x8b, 0x83, 0xd0, 0x44, 0x10, 0x00, 0x41, 0x89, 0x04}},
		{9, {0x8b, 0x83, 0xd0, 0x44, 0x10, 0x00, 0x41, 0x89, 0x45}},
		/* mov 0x1044d0(%r12),%eax without its last byte */
		{7, {0x41, 0x8b, 0x84, 0x24, 0xd0, 0x44, 0x10}},
	};
	uint32_t at = 1;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(
			accessor_field(EM_X86_64, wrong[i].code, wrong[i].len, &at), -ENOENT);
	assert_int_equal(at, 1);
}

/* Builds of NCCL with more checks have the access behind the first kilobyte. */
static void test_far_into_the_function(void **state)
{
	/* mov 0x1044d0(%r13),%eax; xor %ebp,%ebp; mov %eax,(%r14) */
	static const uint8_t access[] = {
		0x41, 0x8b, 0x85, 0xd0, 0x44, 0x10, 0x00, 0x31, 0xed, 0x41, 0x89, 0x06};
	uint8_t code[ACCESSOR_BYTES];

	memset(code, 0x90, sizeof(code));
	memcpy(code + 1072, access, sizeof(access));
	assert_int_equal(x86_field(code, sizeof(code)), 0x1044d0);
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

static uint32_t constant_of(unsigned machine, const void *code, size_t len)
{
	uint32_t value = 0;

	return accessor_constant(machine, code, len, 2000, 99999, &value) < 0 ? 0 : value;
}

/* ncclGetVersion() as the libraries have it. */
static void test_constants(void **state)
{
	/* test %rdi,%rdi; je; movl $0x5919,(%rdi); xor %eax,%eax; ret */
	static const uint8_t plain[] = {
		0x48, 0x85, 0xff, 0x74, 0x09, 0xc7, 0x07, 0x19, 0x59, 0, 0, 0x31, 0xc0, 0xc3};
	/* movl $0x5919,(%r12) and 0(%rbp); a constant that is none, before it */
	static const uint8_t high[] = {
		0xc7, 0x03, 4, 0, 0, 0, 0x41, 0xc7, 0x04, 0x24, 0x19, 0x59, 0, 0, 0xc3};
	static const uint8_t frame[] = {0xc7, 0x45, 0, 0x19, 0x59, 0, 0, 0xc3};
	/* to the stack, to 8(%rdi), 64 bits, another operation, cut off */
	static const uint8_t wrong[][8] = {
		{0xc7, 0x04, 0x24, 0x19, 0x59, 0, 0},
		{0xc7, 0x47, 8, 0x19, 0x59, 0, 0},
		{0x48, 0xc7, 0x07, 0x19, 0x59, 0, 0},
		{0xc7, 0x0f, 0x19, 0x59, 0, 0},
		{0x90, 0x90, 0xc7, 0x07, 0x19, 0x59, 0},
	};
	/* mov x1,x0; cbz x0; mov w2,#23203; mov w0,#0; str w2,[x1] */
	static const uint32_t arm[] = {0xaa0003e1, 0xb40000a0, 0x528b5462, 0x52800000, 0xb9000022};

	assert_int_equal(constant_of(EM_X86_64, plain, sizeof(plain)), 22809);
	assert_int_equal(constant_of(EM_X86_64, high, sizeof(high)), 22809);
	assert_int_equal(constant_of(EM_X86_64, frame, sizeof(frame)), 22809);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(constant_of(EM_X86_64, wrong[i], i == 4 ? 7 : 8), 0);
	assert_int_equal(constant_of(EM_AARCH64, arm, sizeof(arm)), 23203);
	assert_int_equal(constant_of(EM_AARCH64, arm, sizeof(arm) - 4), 0);
	assert_int_equal(constant_of(EM_386, plain, sizeof(plain)), 0);
}

/* What a function adds to, as NCCL's uploadProxyOps() does. */
static void test_counters(void **state)
{
	/* movslq 0x50(%rsi),%rax; add %rax,0x1045f8(%r12); mov 0xa8(%rsi),%rbx */
	static const uint8_t r12[] = {0x48, 0x63, 0x46, 0x50, 0x49, 0x01, 0x84, 0x24, 0xf8, 0x45,
		0x10, 0x00, 0x48, 0x8b, 0x9e, 0xa8, 0x00, 0x00, 0x00};
	/* addq $0x1,0x104600(%rbx) */
	static const uint8_t one[] = {0x48, 0x83, 0x83, 0x00, 0x46, 0x10, 0x00, 0x01};
	/* addl $0x1,0x1045f8(%rbx): 32 bits; cmpq $0x1,…; add 0x1045f8(%rbx),%rax: a load */
	static const uint8_t others[] = {0x83, 0x83, 0xf8, 0x45, 0x10, 0x00, 0x01, 0x48, 0x83, 0xbb,
		0xf8, 0x45, 0x10, 0x00, 0x01, 0x48, 0x03, 0x83, 0xf8, 0x45, 0x10, 0x00};
	/* add x25, x22, #256, lsl #12; … ldr x0, [x25, #17912]; ldrsw x1, [x19, #80]; add x0, x0, x1; str x0, [x25, …] */
	static const uint32_t arm[] = {0x914402d9, 0x2a1f03fa, 0xf94046d4, 0xaa1303e0, 0xaa1303e0,
		0xaa1303e0, 0xf962ff20, 0xb9805261, 0x8b010000, 0xf922ff20};
	/* the same without the addition */
	static const uint32_t arm_copy[] = {
		0x914402d9, 0xf962ff20, 0xb9805261, 0xaa0103e0, 0xf922ff20};
	uint8_t both[sizeof(r12) + sizeof(one)];
	uint32_t at = 1;

#define COUNTER(machine, code)                                                                     \
	accessor_counter(machine, (const void *)(code), sizeof(code), 0x1044d8, 0x1048d0, &at)
	assert_int_equal(COUNTER(EM_X86_64, r12), 0);
	assert_int_equal(at, 0x1045f8);
	assert_int_equal(COUNTER(EM_X86_64, one), 0);
	assert_int_equal(at, 0x104600);
	assert_int_equal(COUNTER(EM_AARCH64, arm), 0);
	assert_int_equal(at, 0x1045f8);
	at = 1;
	assert_int_equal(COUNTER(EM_X86_64, others), -ENOENT);
	assert_int_equal(COUNTER(EM_AARCH64, arm_copy), -ENOENT);
	memcpy(both, r12, sizeof(r12));
	memcpy(both + sizeof(r12), one, sizeof(one));
	assert_int_equal(COUNTER(EM_X86_64, both), -ENOENT); /* which one? */
	assert_int_equal(COUNTER(EM_386, r12), -ENOENT);
	/* one that is not behind the rank, and code that is cut off */
	assert_int_equal(
		accessor_counter(EM_X86_64, r12, sizeof(r12), 0x2044d8, 0x2048d0, &at), -ENOENT);
	for (size_t len = 0; len < 12; len++)
		assert_int_equal(
			accessor_counter(EM_X86_64, r12, len, 0x1044d8, 0x1048d0, &at), -ENOENT);
#undef COUNTER
	assert_int_equal(at, 1);
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
		uint8_t code[ACCESSOR_BYTES];
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
		cmocka_unit_test(test_x86_awkward_registers),
		cmocka_unit_test(test_x86_refused),
		cmocka_unit_test(test_far_into_the_function),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_real_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
