/* SPDX-License-Identifier: Apache-2.0 */
/* test_crc32c.c - RFC 3720's vectors, and pieces of any length; hashes of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static void test_vectors(void **state)
{
	unsigned char data[32] = {0};

	assert_int_equal(crc32c(0, "", 0), 0);
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, data, sizeof(data)), 0x8a9136aa);
	memset(data, 0xff, sizeof(data));
	assert_int_equal(crc32c(0, data, sizeof(data)), 0x62a8ab43);
	for (unsigned char i = 0; i < sizeof(data); i++)
		data[i] = i;
	assert_int_equal(crc32c(0, data, sizeof(data)), 0x46dd794e);
	for (size_t cut = 0; cut <= sizeof(data); cut++)
		assert_int_equal(
			crc32c(crc32c(0, data, cut), data + cut, sizeof(data) - cut), 0x46dd794e);
}

/* The vector of SipHash's authors, whose key is also ours until one is made. */
static void test_names(void **state)
{
	char name[16];

	for (char i = 0; i < 16; i++)
		name[(int)i] = i;
	assert_true(hash_name(name, 15) == 0xa129ca6149be45e5ULL);
	assert_true(hash_name("", 0) == 0x726fdb47dd0e0e31ULL);
	assert_int_equal(hash_name_key(), 0);
	assert_false(hash_name(name, 15) == 0xa129ca6149be45e5ULL);
	assert_true(hash_name("gpu-1", 5) == hash_name("gpu-1", 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
