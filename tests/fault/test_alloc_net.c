/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while a connection is accepted: its address has as many left as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/socket.h>

#include "fault.h"
#include "net/server/server_private.h"

static void a_connection_without_memory_counts_for_nobody(void **state)
{
	struct http_server s = {0};
	union address a = {.v4 = {.sin_family = AF_INET}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	assert_true(fd >= 0);
	assert_int_equal(peers_new(&s.peers), 0);
	assert_int_equal(peers_enter(s.peers, &a, 1), 0);
	assert_true(peers_enter(s.peers, &a, 1) < 0); /* control: it is the only one */
	fault_arm(1);
	r = connection_new(&s, fd, &a);
	assert_true(fault_disarm());
	assert_int_equal(r, -ENOMEM);
	assert_int_equal(peers_enter(s.peers, &a, 1), 0);
	peers_free(s.peers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_without_memory_counts_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
