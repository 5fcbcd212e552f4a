/* SPDX-License-Identifier: Apache-2.0 */
/* test_revision.c - which revision a handshake agrees on. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "mcp/rpc.h"

static void known_ones_are_agreed_on(void **state)
{
	assert_string_equal(revision_agree("2025-06-18")->name, "2025-06-18");
	assert_string_equal(revision_agree("2025-03-26")->name, "2025-03-26");
	assert_true(revision_agree("2025-03-26")->batches);
	assert_false(revision_agree("2025-06-18")->batches);
}

static void others_get_the_newest_with_a_handshake(void **state)
{
	static const char *const asked[] = {"2026-07-28", "1900-01-01", "", NULL};

	for (int i = 0; i < 4; i++)
		assert_string_equal(revision_agree(asked[i])->name, "2025-11-25");
}

static void the_stateless_one_is_first(void **state)
{
	json_t *names = revision_names();

	assert_string_equal(json_string_value(json_array_get(names, 0)), "2026-07-28");
	assert_true(revision_find("2026-07-28")->stateless);
	assert_null(revision_find("2024-01-01"));
	assert_false(revision_assumed()->stateless);
	json_decref(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_ones_are_agreed_on),
		cmocka_unit_test(others_get_the_newest_with_a_handshake),
		cmocka_unit_test(the_stateless_one_is_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
