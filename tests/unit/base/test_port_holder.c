/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/macros.h"
#include "base/socket_path.h"
#include "tree.h"

#define HEAD                                                                                       \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "      \
	"timeout inode\n"
#define LINE(port, state, inode)                                                                   \
	"   0: 0100007F:" port " 00000000:0000 " state                                             \
	" 00000000:00000000 00:00000000 00000000     0        0 " inode                            \
	" 1 0000000000000000 100 0 0 10 0\n"
#define LINE6(port, inode)                                                                         \
	"   0: 00000000000000000000000000000000:" port                                             \
	" 00000000000000000000000000000000:0000 0A "                                               \
	"00000000:00000000 00:00000000 00000000     0        0 " inode                             \
	" 1 0000000000000000 100 0 0 10 0\n"

static void test_who_listens(void **state)
{
	struct port_holder h = {0};
	char root[TREE_MAX];

	tree_init(root);
	assert_int_equal(port_holder_find(root, 0, 8080, &h), -ENOENT); /* no /proc */
	tree_write(root, "/proc/net/tcp",
		HEAD LINE("1F90", "01", "11") LINE("1F91", "0A", "12") LINE("1F90", "0A", "13"));
	tree_write(root, "/proc/net/tcp6", HEAD LINE6("1F92", "14"));
	tree_link(root, "/proc/70/fd/3", "socket:[11]"); /* a connection */
	tree_link(root, "/proc/71/fd/3", "socket:[12]"); /* another port */
	tree_link(root, "/proc/72/fd/7", "socket:[13]");
	tree_write(root, "/proc/72/comm", "ingero-cluster\n");
	tree_link(root, "/proc/73/fd/7", "socket:[14]");
	assert_int_equal(port_holder_find(root, 0, 8080, &h), 0);
	assert_int_equal(h.pid, 72);
	assert_string_equal(h.comm, "ingero-cluster");
	assert_int_equal(port_holder_find(root, 0, 8082, &h), 0); /* IPv6 */
	assert_int_equal(h.pid, 73);
	assert_string_equal(h.comm, "a program");
	h = (struct port_holder){.pid = 5};
	assert_int_equal(port_holder_find(root, 0, 8083, &h), -ENOENT);
	assert_int_equal(h.pid, 5); /* untouched */
	tree_done(root);
}

static void test_of_this_machine(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct port_holder h = {0};
	socklen_t len = sizeof(a);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(port_holder_find("", 0, ntohs(a.sin_port), &h), 0);
	assert_int_equal(h.pid, getpid());
	assert_string_equal(h.comm, "test_port_holde"); /* the kernel keeps 15 letters */
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_listens),
		cmocka_unit_test(test_of_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
