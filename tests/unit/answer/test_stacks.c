/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks.c - the processes of a stack, whose names may be anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "answer/stacks.h"

static void test_processes(void **state)
{
	const char *text = "17 python3,18 a, b,19 ,20 9,lives", *name;
	static const struct {
		uint32_t pid;
		const char *name;
	} wanted[] = {{17, "python3"}, {18, "a, b"}, {19, ""}, {20, "9,lives"}};
	uint32_t pid;
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		assert_true(stacks_next_process(&text, &pid, &name, &len));
		assert_int_equal(pid, wanted[i].pid);
		assert_int_equal(len, strlen(wanted[i].name));
		assert_memory_equal(name, wanted[i].name, len);
	}
	assert_false(stacks_next_process(&text, &pid, &name, &len));
	text = "";
	assert_false(stacks_next_process(&text, &pid, &name, &len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_processes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
