/* SPDX-License-Identifier: Apache-2.0 */
/* Whose socket is at the other end: ours while a process holds it, nobody's afterwards. That users
 * are told apart needs two of them: tests/integration/50-owner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "net/server/socket_owner.h"

struct pair {
	int listener, client, server;
	union address remote, local; /* as the server's end sees them */
};

static void pair_open(struct pair *p, const char *address)
{
	socklen_t len = sizeof(p->local);

	assert_int_equal(address_parse(address, &p->local, NULL), 0);
	p->listener = socket(p->local.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	p->client = socket(p->local.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->listener, &p->local.any, address_len(&p->local)), 0);
	assert_int_equal(listen(p->listener, 1), 0);
	assert_int_equal(getsockname(p->listener, &p->local.any, &len), 0);
	assert_int_equal(connect(p->client, &p->local.any, len), 0);
	len = sizeof(p->remote);
	p->server = accept4(p->listener, &p->remote.any, &len, SOCK_CLOEXEC);
	assert_true(p->server >= 0);
}

static void pair_close(struct pair *p)
{
	close(p->listener);
	close(p->client);
	close(p->server);
}

static void check_pair(const char *address)
{
	uid_t uid = 12345;
	struct pair p;

	pair_open(&p, address);
	assert_int_equal(socket_owner(&p.remote, &p.local, &uid), 0);
	assert_int_equal(uid, geteuid());
	/* It has said that it sends no more, and still reads. */
	assert_int_equal(shutdown(p.client, SHUT_WR), 0);
	assert_int_equal(socket_owner(&p.remote, &p.local, &uid), 0);
	assert_int_equal(uid, geteuid());
	/* The connection is still there, but no process holds it: the kernel says root. */
	close(p.client);
	uid = 12345;
	assert_int_equal(socket_owner(&p.remote, &p.local, &uid), -ENOENT);
	assert_int_equal(uid, 12345);
	p.client = -1;
	pair_close(&p);
}

static void test_both_families(void **state)
{
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	union address six;

	check_pair("127.0.0.1:0");
	assert_int_equal(address_parse("[::1]:0", &six, NULL), 0);
	if (fd >= 0 && bind(fd, &six.any, address_len(&six)) == 0)
		check_pair("[::1]:0");
	else
		print_message("# skip: this machine has no ::1\n");
	close(fd);
}

/* A port that somebody listens on is not a connection from there. */
static void test_a_listener_is_not_the_peer(void **state)
{
	uid_t uid = 12345;
	struct pair p;

	pair_open(&p, "127.0.0.1:0");
	assert_int_equal(socket_owner(&p.local, &p.remote, &uid), 0); /* the other direction */
	p.remote.v4.sin_port = htons(1);
	assert_int_equal(socket_owner(&p.local, &p.remote, &uid), -ENOENT);
	assert_int_equal(socket_owner(&p.remote, &p.local, &uid), -ENOENT);
	pair_close(&p);
}

static void test_one_of(void **state)
{
	const uid_t users[] = {geteuid() + 1, geteuid()};
	union address far;
	struct pair p;

	pair_open(&p, "127.0.0.1:0");
	assert_true(socket_owner_is_one_of(&p.remote, &p.local, users, 2));
	assert_false(socket_owner_is_one_of(&p.remote, &p.local, users, 1));
	assert_false(socket_owner_is_one_of(&p.remote, &p.local, users, 0));
	assert_int_equal(address_parse("192.0.2.1:80", &far, NULL), 0);
	assert_false(socket_owner_is_one_of(&far, &p.local, users, 2));
	assert_false(socket_owner_is_one_of(&p.remote, &far, users, 2));
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_families),
		cmocka_unit_test(test_a_listener_is_not_the_peer),
		cmocka_unit_test(test_one_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
