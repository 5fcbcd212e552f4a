/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/cli/flags.h"

static void test_an_empty_one_is_not_wanted(void **state)
{
	assert_null(listen_address(NULL));
	assert_null(listen_address(""));
	assert_string_equal(listen_address(":4317"), ":4317");
	assert_false(listen_address_any(&(struct listen_addresses){.grpc = "", .http = ""}));
	assert_true(listen_address_any(&(struct listen_addresses){.grpc = "", .api = ":1"}));
}

static void test_the_widest_says_what_all_need(void **state)
{
	struct listen_addresses a = {
		.grpc = "0.0.0.0:4317", .http = "127.0.0.1:4318", .api = "127.0.0.1:8080"};

	assert_string_equal(listen_address_widest(&a), "0.0.0.0:4317");
	a.grpc = "";
	assert_string_equal(listen_address_widest(&a), "127.0.0.1:4318");
	a.http = "10.0.0.1:4318";
	a.api = ":8080";
	assert_string_equal(listen_address_widest(&a), ":8080");
	assert_string_equal(listen_address_widest(&(struct listen_addresses){0}), "127.0.0.1:0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_one_is_not_wanted),
		cmocka_unit_test(test_the_widest_says_what_all_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
