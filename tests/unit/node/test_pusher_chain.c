/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_chain.c - an incident is told when it is found and when it changes, and while it goes on once a
 * minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "node/push/pusher_private.h"

#define SECOND UINT64_C(1000000000)

static bool tell(
	struct pusher_chains *c, uint64_t id, uint64_t words, uint64_t extent, uint64_t at_s)
{
	const struct pusher_chain x = {
		.id = id, .words = words, .extent = extent, .told_ns = at_s * SECOND};

	if (!pusher_chains_want(c, &x))
		return false;
	pusher_chains_note(c, &x);
	return true;
}

static void told_as_it_changes(void **state)
{
	struct pusher_chains *c = calloc(1, sizeof(*c));

	(void)state;
	assert_non_null(c);
	assert_true(tell(c, 1, 1, 1, 0));
	assert_false(tell(c, 1, 1, 1, 500)); /* nothing has changed */
	assert_true(tell(c, 2, 1, 1, 500));  /* another one */
	assert_true(tell(c, 1, 2, 1, 501));  /* its severity */
	assert_false(tell(c, 1, 2, 2, 560)); /* it goes on */
	assert_true(tell(c, 1, 2, 2, 561));
	assert_false(tell(c, 1, 2, 2, 900));
	free(c);
}

static void oldest_makes_room(void **state)
{
	struct pusher_chains *c = calloc(1, sizeof(*c));

	(void)state;
	assert_non_null(c);
	for (uint64_t i = 1; i <= PUSHER_CHAINS_KNOWN + 1; i++)
		assert_true(tell(c, i, 1, 1, i));
	assert_false(tell(c, 2, 1, 1, 1000)); /* control */
	assert_true(tell(c, 1, 1, 1, 1000));
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told_as_it_changes), cmocka_unit_test(oldest_makes_room)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
