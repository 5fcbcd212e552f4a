/* SPDX-License-Identifier: Apache-2.0 */
/* What time connections may take, and how many there may be. Limits are short here; each test waits
 * for what the server does, never for a time. */
#include "server_fixture.h"

#include <sys/resource.h>
#include <unistd.h>

#define GET_ECHO "GET /echo HTTP/1.1\r\n" HOST "\r\n"

static void test_slow_heads(void **state)
{
	struct bench b;
	int fd;

	bench_init(&b);
	b.limits.head_ns = 200 * NS_PER_MS;
	bench_start(&b);
	fd = dial(&b); /* nothing at all: closed without a word */
	assert_int_equal(hear(fd)->status, 0);
	close(fd);
	fd = dial(&b);
	say(fd, "GET /echo HTTP/1.1\r\n" HOST "X:");
	assert_int_equal(hear(fd)->status, 408);
	assert_true(hears_end(fd));
	close(fd);
	/* the second head on a connection has its time too, from its first byte */
	fd = dial(&b);
	say(fd, GET_ECHO "GET /e");
	assert_int_equal(hear(fd)->status, 200);
	assert_int_equal(hear(fd)->status, 408);
	close(fd);
	bench_stop(&b);
}

/* Byte after byte does not make the head's time longer. */
static void test_trickled_heads(void **state)
{
	char byte;
	struct bench b;
	int fd;

	bench_init(&b);
	b.limits.head_ns = 300 * NS_PER_MS;
	bench_start(&b);
	fd = dial(&b);
	say(fd, "GET /echo HTTP/1.1\r\n");
	for (int i = 0; i < 2000; i++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, 10) == 1)
			break;
		say(fd, "X");
	}
	assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), 1);
	assert_int_equal(hear(fd)->status, 408);
	close(fd);
	bench_stop(&b);
}

static void test_slow_bodies(void **state)
{
	struct bench b;
	int fd;

	bench_init(&b);
	b.limits.head_ns = 200 * NS_PER_MS;
	b.limits.body_rate = 1 << 20;
	bench_start(&b);
	fd = dial(&b);
	say(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\n");
	for (int i = 0; i < 2000; i++) { /* some 100 bytes a second */
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, 10) == 1)
			break;
		say(fd, "x");
	}
	assert_int_equal(hear(fd)->status, 408);
	assert_true(hears_end(fd));
	close(fd);
	bench_stop(&b);
}

/* Who does not read his reply is dropped. */
static void test_slow_readers(void **state)
{
	struct bench b;
	int fd, small = 4096;

	bench_init(&b);
	b.limits.head_ns = 200 * NS_PER_MS;
	b.limits.body_rate = 8 << 20;
	bench_start(&b);
	fd = dial(&b);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	say(fd, "GET /large HTTP/1.1\r\n" HOST "\r\n");
	hear_some(fd, &small, 1);
	while (bench_figures(&b).open_connections)
		poll(NULL, 0, 5);
	close(fd);
	bench_stop(&b);
}

/* Nor is somebody who was fast once waited for: what counts is counted anew. */
static void test_readers_that_stop(void **state)
{
	static char bytes[1 << 20];
	struct bench b;
	size_t total = 0;
	int fd, small = 4096;

	bench_init(&b);
	b.limits.head_ns = 200 * NS_PER_MS;
	bench_start(&b);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(connect(fd, &b.address.any, address_len(&b.address)), 0);
	for (int i = 0; i < 8; i++)
		say(fd, "GET /large HTTP/1.1\r\n" HOST "\r\n");
	while (total < 4 << 20) /* at a kilobyte a second this would last for an hour */
		total += hear_some(fd, bytes, sizeof(bytes));
	while (bench_figures(&b).open_connections)
		poll(NULL, 0, 5);
	close(fd);
	bench_stop(&b);
}

/* A peer that asks, closes and is gone leaves nothing behind. */
static void test_peers_that_vanish(void **state)
{
	static const struct linger reset = {.l_onoff = 1};
	struct bench b;

	bench_init(&b);
	bench_start(&b);
	for (int i = 0; i < 200; i++) {
		int fd = dial(&b);

		say(fd, "GET /large HTTP/1.1\r\n" HOST "\r\nGET /large HTTP/1.1\r\n" HOST "\r\n");
		if (i % 2)
			hear_some(fd, &(char){0}, 1);
		if (i % 3)
			shutdown(fd, SHUT_WR);
		if (i % 5)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fd);
	}
	while (bench_figures(&b).open_connections)
		poll(NULL, 0, 5);
	assert_int_equal(bench_figures(&b).connections, 200);
	bench_stop(&b);
}

static void test_idle_connections(void **state)
{
	struct bench b;
	int fd;

	bench_init(&b);
	b.limits.idle_ns = 200 * NS_PER_MS;
	bench_start(&b);
	fd = dial(&b);
	say(fd, GET_ECHO);
	assert_int_equal(hear(fd)->status, 200);
	assert_int_equal(hear(fd)->status, 0);
	close(fd);
	/* one whose handler takes longer is not idle */
	fd = dial(&b);
	say(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
	bench_await(&b, 0);
	poll(NULL, 0, 500);
	bench_answer(&b);
	assert_string_equal(hear(fd)->body, "waited");
	close(fd);
	bench_stop(&b);
}

/* Nor is one that is still reading its reply. */
static void test_long_replies_are_not_idle(void **state)
{
	struct bench b;
	size_t total = 0, n;
	int fd;

	bench_init(&b);
	b.limits.idle_ns = 100 * NS_PER_MS;
	bench_start(&b);
	fd = dial(&b);
	say(fd, "GET /large HTTP/1.1\r\n" HOST "\r\n");
	for (int i = 0; i < 8; i++) { /* several times as long as one may be idle */
		char bytes[4096];

		poll(NULL, 0, 60);
		total += hear_some(fd, bytes, sizeof(bytes));
	}
	do {
		char bytes[65536];

		n = hear_some(fd, bytes, sizeof(bytes));
		total += n;
	} while (n);
	assert_true(total > 4 << 20); /* all of it, then the end: now it was idle */
	close(fd);
	bench_stop(&b);
}

/* A body that is refused while it is slow is refused once. */
static void test_one_refusal(void **state)
{
	struct bench b;
	int fd;

	bench_init(&b);
	b.limits.head_ns = 100 * NS_PER_MS;
	b.limits.linger_ns = 400 * NS_PER_MS;
	bench_start(&b);
	fd = dial(&b);
	say(fd, "POST /small HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nx");
	assert_int_equal(hear(fd)->status, 413);
	assert_int_equal(hear(fd)->status, 0);
	close(fd);
	assert_int_equal(bench_figures(&b).rejected, 1);
	bench_stop(&b);
}

static void test_old_connections(void **state)
{
	struct bench b;
	struct response *a;
	int fd, n = 0;

	bench_init(&b);
	b.limits.age_ns = 300 * NS_PER_MS;
	bench_start(&b);
	fd = dial(&b);
	do { /* always busy, never idle: the last reply says that it is the last */
		say(fd, GET_ECHO);
		a = hear(fd);
		n++;
	} while (a->status == 200 && a->keep_alive);
	assert_true(n > 1);
	if (a->status) /* 0: it was retired between two requests */
		assert_true(hears_end(fd));
	close(fd);
	bench_stop(&b);
}

/* An address that only holds connections open can hold so many; a new one takes the place of the
 * oldest, so that who asks is answered. */
static void test_connections_of_one_address(void **state)
{
	struct bench b;
	int held[20], fd;

	bench_init(&b);
	b.limits.per_peer = 8;
	bench_start(&b);
	for (int i = 0; i < 20; i++)
		held[i] = dial_from(&b, "127.0.0.2");
	fd = dial_from(&b, "127.0.0.2");
	say(fd, GET_ECHO);
	assert_int_equal(hear(fd)->status, 200);
	assert_int_equal(bench_figures(&b).open_connections, 8);
	for (int i = 0; i < 13; i++) /* the oldest had to go */
		assert_int_equal(hear(held[i])->status, 0);
	say(held[19], GET_ECHO); /* the youngest is there */
	assert_int_equal(hear(held[19])->status, 200);
	for (int i = 0; i < 20; i++)
		close(held[i]);
	close(fd);
	bench_stop(&b);
}

/* Without a token even those that were answered count; with one they do not. */
static void test_connections_with_a_token_do_not_count(void **state)
{
	static const char with[] =
		"GET /open HTTP/1.1\r\n" HOST "\r\n"
		"GET /echo HTTP/1.1\r\n" HOST "Authorization: Bearer 0123456789abcdef\r\n\r\n";
	static const char without[] = "GET /open HTTP/1.1\r\n" HOST "\r\n";
	struct bench b;
	int fd[24];

	bench_init(&b);
	b.limits.per_peer = 4;
	setenv("TEST_TOKENS", "0123456789abcdef", 1);
	assert_int_equal(token_set_new(NULL, "TEST_TOKENS", &b.settings.tokens, NULL), 0);
	bench_start(&b);
	for (int i = 0; i < 24; i++) {
		fd[i] = dial(&b);
		say(fd[i], i < 12 ? with : without);
		assert_int_equal(hear(fd[i])->status, 200);
		if (i < 12)
			assert_int_equal(hear(fd[i])->status, 200);
	}
	assert_int_equal(bench_figures(&b).open_connections, 12 + 4);
	for (int i = 0; i < 24; i++)
		close(fd[i]);
	bench_stop(&b);
	token_set_free(b.settings.tokens);
}

static void test_connections_in_all(void **state)
{
	struct bench b;
	int fd[6], over;

	bench_init(&b);
	b.limits.total = 6;
	bench_start(&b);
	for (int i = 0; i < 6; i++) {
		fd[i] = dial(&b);
		say(fd[i], GET_ECHO);
		assert_int_equal(hear(fd[i])->status, 200);
	}
	over = dial(&b);
	say(over, GET_ECHO);
	assert_int_equal(hear(over)->status, 0);
	close(over);
	assert_int_equal(bench_figures(&b).rejected, 1);
	say(fd[0], GET_ECHO); /* the others live */
	assert_int_equal(hear(fd[0])->status, 200);
	close(fd[0]);
	while (bench_figures(&b).open_connections == 6)
		poll(NULL, 0, 5);
	assert_int_equal(ask(&b, GET_ECHO)->status, 200);
	for (int i = 1; i < 6; i++)
		close(fd[i]);
	bench_stop(&b);
}

/* Without descriptors accepting pauses, does not spin, and goes on when there are some again. */
static void test_no_descriptors_left(void **state)
{
	struct rlimit old, tight;
	struct rusage before, after;
	double used_s;
	struct bench b;
	int fd[2];

	bench_init(&b);
	bench_start(&b);
	fd[0] = dial(&b);
	say(fd[0], GET_ECHO);
	assert_int_equal(hear(fd[0])->status, 200);
	fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = old;
	tight.rlim_cur = (rlim_t)fd[1] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(connect(fd[1], &b.address.any, address_len(&b.address)), 0);
	say(fd[1], GET_ECHO);
	poll(NULL, 0, 600);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	used_s = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
		 (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6 +
		 (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
		 (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
	assert_true(used_s < 0.2); /* spinning would take all of 0.6 s */
	assert_int_equal(hear(fd[1])->status, 200);
	close(fd[0]);
	close(fd[1]);
	bench_stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_heads),
		cmocka_unit_test(test_trickled_heads),
		cmocka_unit_test(test_slow_bodies),
		cmocka_unit_test(test_slow_readers),
		cmocka_unit_test(test_readers_that_stop),
		cmocka_unit_test(test_peers_that_vanish),
		cmocka_unit_test(test_idle_connections),
		cmocka_unit_test(test_long_replies_are_not_idle),
		cmocka_unit_test(test_one_refusal),
		cmocka_unit_test(test_old_connections),
		cmocka_unit_test(test_connections_of_one_address),
		cmocka_unit_test(test_connections_with_a_token_do_not_count),
		cmocka_unit_test(test_connections_in_all),
		cmocka_unit_test(test_no_descriptors_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
