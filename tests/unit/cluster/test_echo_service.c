/* SPDX-License-Identifier: Apache-2.0 */
/* test_echo_service.c - what a service makes sure of before it takes anything in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "cluster/cli/echo_service.h"

/* Limits count clusters by a hash of their names: senders must not know the key. */
static void test_names_have_a_key(void **state)
{
	uint64_t known = hash_name("a", 1);
	struct echo_service_settings s = {.folder = "/proc/none"};
	struct echo_service *service = NULL;

	assert_true(echo_service_new(NULL, &s, &service, NULL) < 0);
	assert_null(service);
	assert_false(hash_name("a", 1) == known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_have_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
