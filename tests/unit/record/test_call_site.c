/* SPDX-License-Identifier: Apache-2.0 */
/* test_call_site.c - every form of call, and its neighbours that are none. */
#include "elf_fixture.h"

#include "record/symbol/unwind_table.h"

static bool arm64(uint32_t word)
{
	uint32_t code[3] = {0xd503201f /* nop */, word, 0xd503201f};

	return call_site_possible(EM_AARCH64, (const uint8_t *)code, 0x1000, sizeof(code));
}

static void test_arm64(void **state)
{
	assert_true(arm64(0x94000001));  /* bl */
	assert_true(arm64(0x97ffffff));  /* bl backwards */
	assert_true(arm64(0xd63f0000));  /* blr x0 */
	assert_true(arm64(0xd63f03c0));  /* blr x30 */
	assert_true(arm64(0xd63f081f));  /* blraaz x0 */
	assert_true(arm64(0xd63f0fdf));  /* blrabz x30 */
	assert_true(arm64(0xd73f0a51));  /* blraa x18, x17 */
	assert_true(arm64(0xd73f0e51));  /* blrab x18, x17 */
	assert_false(arm64(0x14000001)); /* b */
	assert_false(arm64(0xd61f0200)); /* br x16 */
	assert_false(arm64(0xd65f03c0)); /* ret */
	assert_false(arm64(0xd65f0bff)); /* retaa */
	assert_false(arm64(0xd4000001)); /* svc */
}

static void test_arm64_alignment(void **state)
{
	const uint8_t code[8] = {0, 0, 0x01, 0, 0, 0x94, 0, 0}; /* bl, two bytes in */

	assert_true(call_site_possible(EM_AARCH64, code, 0x1002, sizeof(code)));
	assert_false(call_site_possible(EM_AARCH64, code, 0x1000, sizeof(code)));
	assert_false(call_site_possible(EM_AARCH64, code, 0x1002, 5)); /* not whole */
	assert_false(call_site_possible(EM_AARCH64, code, 0x1002, 0));
}

static bool x86(const char *bytes, size_t size)
{
	return call_site_possible(EM_X86_64, (const uint8_t *)bytes, 0x1001, size);
}

static void test_x86(void **state)
{
	assert_true(x86("\x90\xe8\0\0\0\0", 6));
	assert_false(x86("\x90\xe8\0\0\0", 5));  /* not whole */
	assert_true(x86("\xff\xd0", 2));         /* call *%rax */
	assert_true(x86("\x41\xff\xd7", 3));     /* call *%r15 */
	assert_true(x86("\xff\x15\0\0\0\0", 6)); /* call *x(%rip) */
	assert_true(x86("\x66\x64\xff\x14\x25\0\0\0\0", 9));
	assert_false(x86("\xff", 1));
	assert_false(x86("\xff\xe0", 2));     /* jmp *%rax */
	assert_false(x86("\xff\x75\x08", 3)); /* push */
	assert_false(x86("\x55\x48\x89\xe5", 4));
	assert_false(x86("", 0));
}

static void test_long_code_is_not_read(void **state)
{
	static const uint8_t nothing[CALL_SITE_SCAN_MAX + 4];

	assert_false(call_site_possible(EM_X86_64, nothing, 0, CALL_SITE_SCAN_MAX));
	assert_true(call_site_possible(EM_X86_64, nothing, 0, CALL_SITE_SCAN_MAX + 1));
	assert_false(call_site_possible(EM_AARCH64, nothing, 0, CALL_SITE_SCAN_MAX));
	assert_true(call_site_possible(EM_AARCH64, nothing, 0, CALL_SITE_SCAN_MAX + 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_arm64_alignment),
		cmocka_unit_test(test_x86),
		cmocka_unit_test(test_long_code_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
