/* SPDX-License-Identifier: Apache-2.0 */
/* test_signature.c - RFC 4231's vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/digest.h"

static void test_vectors(void **state)
{
	char out[DIGEST_HEX];

	assert_int_equal(digest_hmac("Jefe", 4, "what do ya want for nothing?", 28, out), 0);
	assert_string_equal(
		out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	assert_int_equal(digest_hmac("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"
				     "\x0b\x0b\x0b\x0b\x0b",
				 20, "Hi There", 8, out),
		0);
	assert_string_equal(
		out, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
