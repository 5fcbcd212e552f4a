/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a process, there or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "record/stack/remote.h"

static void test_memory(void **state)
{
	uint64_t here = 0x1234567890abcdef, got = 0;

	assert_int_equal(
		remote_read((uint32_t)getpid(), 0, (uintptr_t)&here, &got, sizeof(got)), 0);
	assert_true(got == here);
	assert_int_equal(remote_read((uint32_t)getpid(), 0, 8, &got, sizeof(got)), -EFAULT);
	assert_int_equal(remote_read(0x7ffffff1, 0, 8, &got, sizeof(got)), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
