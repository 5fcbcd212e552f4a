/* SPDX-License-Identifier: Apache-2.0 */
#include "model/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

static void test_peer(void **state)
{
	struct event e = {
		.family = AF_INET, .peer_addr = {10, 0, 0, 200}, .arg1 = 4000 << 16 | 443};
	char text[EVENT_PEER_MAX];

	assert_string_equal(event_peer(&e, text), "10.0.0.200:443");
	assert_string_equal(event_peer_comm(&e), "");
	e.family = AF_INET6;
	assert_string_equal(event_peer(&e, text), "[a00:c8::]:443");
	e.family = 99;
	assert_string_equal(event_peer(&e, text), "family 99:443");
}

static void test_no_peer(void **state)
{
	const struct event e = {.peer_comm = "hog", .arg1 = 443};
	char text[EVENT_PEER_MAX] = "x";

	assert_string_equal(event_peer(&e, text), "");
	assert_string_equal(event_peer_comm(&e), "hog");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peer),
		cmocka_unit_test(test_no_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
