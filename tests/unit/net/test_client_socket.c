/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over a socket pair of this machine, and when they came. TLS is in test_tls_client.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "net/client/client_private.h"

#define PATIENCE_MS 20000

struct pair {
	int listener, peer;
	struct client_socket socket;
};

static void wait_for(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static void pair_open(struct pair *p)
{
	struct sockaddr_storage a = {};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
	socklen_t len = sizeof(a);

	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->listener, (struct sockaddr *)v4, sizeof(*v4)), 0);
	assert_int_equal(listen(p->listener, 1), 0);
	assert_int_equal(getsockname(p->listener, (struct sockaddr *)&a, &len), 0);
	p->socket = (struct client_socket){.fd = -1, .host = "127.0.0.1", .endpoint = "here"};
	assert_int_equal(client_socket_open(&p->socket, &a), 0);
	wait_for(p->socket.fd, POLLOUT);
	assert_int_equal(client_socket_connected(&p->socket), 0);
	p->peer = accept(p->listener, NULL, NULL);
	assert_true(p->peer >= 0);
}

static void pair_close(struct pair *p)
{
	client_socket_close(&p->socket);
	assert_int_equal(p->socket.fd, -1);
	client_socket_close(&p->socket);
	if (p->peer >= 0)
		close(p->peer);
	close(p->listener);
}

static void test_bytes(void **state)
{
	char data[16];
	struct errinfo e = {};
	struct pair p;
	int on = 0;
	socklen_t len = sizeof(on);

	(void)state;
	pair_open(&p);
	assert_int_equal(getsockopt(p.socket.fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
	assert_true(on);
	assert_int_equal(client_socket_read(&p.socket, data, sizeof(data), &e), -EAGAIN);
	assert_int_equal(client_socket_write(&p.socket, "abc", 3, &e), 3);
	assert_int_equal(recv(p.peer, data, sizeof(data), 0), 3);
	assert_int_equal(shutdown(p.peer, SHUT_WR), 0);
	wait_for(p.socket.fd, POLLIN);
	assert_int_equal(client_socket_read(&p.socket, data, sizeof(data), &e), 0);
	assert_true(p.socket.is_ended && p.socket.is_ended_cleanly);
	pair_close(&p);
}

/* The time of arrival is the kernel's, not that of the read: here the reader is late. A preemption
 * at the wrong moment makes it late too, so one of several must show it. */
static void test_arrival(void **state)
{
	struct errinfo e = {};
	bool is_kernels = false;
	struct pair p;
	char data[16];

	(void)state;
	pair_open(&p);
	for (int i = 0; i < 20 && !is_kernels; i++) {
		uint64_t before_ns = mono_now().ns, late_ns;

		assert_int_equal(client_socket_write(&p.socket, "abc", 3, &e), 3);
		assert_true(p.socket.sent_ns >= before_ns);
		before_ns = mono_now().ns;
		assert_int_equal(send(p.peer, "reply", 5, 0), 5);
		wait_for(p.socket.fd, POLLIN);
		late_ns = mono_now().ns;
		while (mono_now().ns < late_ns + NS_PER_MS)
			;
		assert_int_equal(client_socket_read(&p.socket, data, sizeof(data), &e), 5);
		assert_true(p.socket.received_ns >= before_ns);
		is_kernels = p.socket.received_ns <= late_ns;
	}
	assert_true(is_kernels);
	pair_close(&p);
}

/* A write to a connection that was reset is an error, not a signal. */
static void test_reset(void **state)
{
	struct linger hard = {.l_onoff = 1};
	struct errinfo e = {};
	char data[16];
	struct pair p;

	(void)state;
	pair_open(&p);
	setsockopt(p.peer, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(p.peer);
	p.peer = -1;
	wait_for(p.socket.fd, POLLIN);
	assert_int_equal(client_socket_read(&p.socket, data, sizeof(data), &e), -ECONNRESET);
	assert_int_equal(client_socket_write(&p.socket, "abc", 3, &e), -EPIPE);
	assert_int_equal(e.text[0], 0);
	pair_close(&p);
}

static void test_refused(void **state)
{
	struct client_socket s = {.fd = -1, .host = "127.0.0.1", .endpoint = "here"};
	struct sockaddr_storage a = {};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	(void)state;
	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)v4, sizeof(*v4)), 0); /* nobody listens */
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	r = client_socket_open(&s, &a);
	if (r == 0) {
		wait_for(s.fd, POLLOUT);
		r = client_socket_connected(&s);
	}
	assert_int_equal(r, -ECONNREFUSED);
	client_socket_close(&s);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_arrival),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
