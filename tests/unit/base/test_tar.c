/* SPDX-License-Identifier: Apache-2.0 */
/* An archive is unpacked by tar(1) itself in tests/integration/59-certificates; here its bytes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/output.h"

static unsigned checksum(const char *block)
{
	unsigned sum = 0;

	for (size_t i = 0; i < 512; i++)
		sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
	return sum;
}

static void test_blocks(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	char full[512];

	memset(full, 'x', sizeof(full));
	assert_int_equal(tar_put(&b, "key.pem", 0600, 1700000000, "secret", 6), 0);
	assert_int_equal(tar_put(&b, "full", 0644, 0, full, sizeof(full)), 0);
	assert_int_equal(tar_put(&b, "empty", 0644, 0, "", 0), 0);
	assert_int_equal(tar_end(&b), 0);
	assert_int_equal(b.len, (2 + 2 + 1 + 2) * 512);
	assert_string_equal(b.data, "key.pem");
	assert_string_equal(b.data + 100, "0000600");
	assert_int_equal(strtoul(b.data + 124, NULL, 8), 6);
	assert_int_equal(strtoul(b.data + 136, NULL, 8), 1700000000);
	assert_string_equal(b.data + 257, "ustar");
	assert_string_equal(b.data + 512, "secret"); /* with zeros behind it */
	for (size_t at = 0; at < 5 * 512; at += 1024)
		assert_int_equal(strtoul(b.data + at + 148, NULL, 8), checksum(b.data + at));
}

static void test_limits(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	char name[128];

	memset(name, 'n', sizeof(name));
	name[100] = 0;
	assert_int_equal(tar_put(&b, name, 0600, 0, "", 0), -ENAMETOOLONG);
	name[99] = 0;
	assert_int_equal(tar_put(&b, name, 0600, 0, "", 0), 0);
	assert_int_equal(tar_put(&b, "a", 0600, 0, name, 99), -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
