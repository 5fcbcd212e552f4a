/* SPDX-License-Identifier: Apache-2.0 */
#include "annotate_fixture.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "base/buf.h"

#define GOOD "{\"labels\":{\"a\":\"b\"}}\n"

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* In one piece, which takes less room in the socket than many. */
static void say_often(int fd, const char *text, int times)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	while (times--)
		buf_puts(&b, text);
	say(fd, buf_str(&b));
}

/* What has arrived so far, "" if nothing; NULL if the other side has hung up. */
static const char *hear(int fd)
{
	static char text[65536];
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return NULL;
	text[n < 0 ? 0 : n] = 0;
	return text;
}

static void test_answers_come_after_the_store_and_in_order(void **state)
{
	struct annotate_bench b;
	int fd;

	bench_start(*state, &b);
	fd = bench_connect(&b);
	say(fd, GOOD "[]\n" GOOD);
	annotate_server_poll(b.server); /* accepts */
	annotate_server_poll(b.server); /* reads */
	assert_int_equal(b.count, 2);
	assert_int_equal(b.pids[0], getpid());
	assert_int_equal(annotate_server_waiting(b.server), 2);
	assert_string_equal(hear(fd), ""); /* nothing before the commit, not even the refusal */
	annotate_server_ack(b.server, b.tickets[1], 12);
	annotate_server_poll(b.server);
	assert_string_equal(hear(fd), "");
	annotate_server_ack(b.server, b.tickets[0], 11);
	annotate_server_poll(b.server);
	assert_string_equal(hear(fd),
		"{\"ok\":true,\"id\":11}\n{\"ok\":false,\"error\":\"not a JSON "
		"object: it is not an object\"}\n"
		"{\"ok\":true,\"id\":12}\n");
	assert_int_equal(annotate_server_waiting(b.server), 0);
	/* stored in vain, no room, and the store's failure */
	say(fd, GOOD);
	annotate_server_poll(b.server);
	annotate_server_ack(b.server, b.tickets[2], -ENOSPC);
	b.full = true;
	say(fd, GOOD);
	annotate_server_poll(b.server);
	assert_string_equal(hear(fd),
		"{\"ok\":false,\"error\":\"cannot write it to the database: see the tracer's messages\"}\n{\"ok\":false,\"error\":\"the store is full: send it again later\"}\n");
	close(fd);
	annotate_server_poll(b.server);
	annotate_server_free(b.server);
}

static void test_pieces_and_a_last_line_without_newline(void **state)
{
	struct annotate_bench b;
	int fd;

	bench_start(*state, &b);
	fd = bench_connect(&b);
	annotate_server_poll(b.server);
	for (const char *p = GOOD; *p; p++) {
		assert_int_equal(b.count, 0);
		assert_int_equal(send(fd, p, 1, 0), 1);
		annotate_server_poll(b.server);
	}
	assert_int_equal(b.count, 1);
	say(fd, "{\"labels\":{\"a\":\"b\"}}");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	for (int i = 0; i < 3; i++)
		annotate_server_poll(b.server);
	assert_int_equal(b.count, 2);
	bench_ack(&b);
	annotate_server_poll(b.server);
	assert_string_equal(hear(fd), "{\"ok\":true,\"id\":1}\n{\"ok\":true,\"id\":2}\n");
	assert_null(hear(fd)); /* all answered: closed */
	close(fd);
	annotate_server_free(b.server);
}

static void test_a_line_too_long(void **state)
{
	static char big[ANNOTATION_LINE_MAX + 1000];
	struct annotate_bench b;
	int fd;

	bench_start(*state, &b);
	fd = bench_connect(&b);
	memset(big, 'x', sizeof(big) - 1);
	say(fd, big);
	for (int i = 0; i < 4; i++)
		annotate_server_poll(b.server);
	assert_non_null(strstr(hear(fd), "longer than 16383"));
	assert_null(hear(fd));
	assert_int_equal(b.count, 0);
	close(fd);
	annotate_server_free(b.server);
}

static void test_processes(void **state)
{
	struct annotate_bench b;
	const char *answer;
	char line[128];
	int fd;

	bench_start(*state, &b);
	fd = bench_connect(&b);
	annotate_server_poll(b.server);
	snprintf(line, sizeof(line), "{\"labels\":{\"a\":\"b\"},\"pid\":%d}\n", getpid());
	say(fd, line);
	annotate_server_poll(b.server);
	assert_int_equal(b.count, 1); /* control */
	snprintf(line, sizeof(line), "{\"labels\":{\"a\":\"b\"},\"pid\":%d,\"start_time\":1}\n",
		getpid());
	say(fd, line);
	say(fd, "{\"labels\":{\"a\":\"b\"},\"pid\":4194304}\n");
	annotate_server_poll(b.server);
	assert_int_equal(b.count, 1);
	bench_ack(&b);
	annotate_server_poll(b.server);
	answer = hear(fd);
	assert_non_null(strstr(answer, "was reused"));
	assert_non_null(strstr(answer, "no process 4194304"));
	close(fd);
	annotate_server_free(b.server);
}

static void test_a_flood_has_to_wait(void **state)
{
	struct annotate_bench b;
	int fd, quiet;
	bool heard = false;
	uint64_t began_ns, took_ns;

	bench_start(*state, &b);
	fd = bench_connect(&b);
	began_ns = mono_now().ns;
	say_often(fd, GOOD, 2000);
	quiet = bench_connect(&b);
	say(quiet, GOOD);
	for (int i = 0; i < 100; i++) {
		annotate_server_poll(b.server);
		heard = heard || strstr(hear(quiet), "true");
		assert_true(
			annotate_server_waiting(b.server) <= 257); /* 256 of it, and the other */
		bench_ack(&b);
		assert_non_null(hear(fd));
	}
	/* a second's worth at once, and what the time of the loop allows */
	took_ns = mono_now().ns - began_ns;
	assert_true(b.count >= 1000 && (uint64_t)b.count <= 1000 + 2 + took_ns / NS_PER_MS);
	assert_true(heard);
	close(fd);
	close(quiet);
	annotate_server_free(b.server);
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; text && *text; text++)
		n += *text == '\n';
	return n;
}

/* Whoever does not read his answers is not read from; once he does, all lines are answered. */
static void test_unread_answers_stop_the_reading(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	size_t lines = 900, sent = 0, heard = 0;
	struct annotate_bench bench;
	int fd, unread;

	for (size_t i = 0; i < lines; i++) { /* each is answered with half a kilobyte */
		buf_puts(&b, "{\"labels\":{\"");
		for (int k = 0; k < 80; k++)
			buf_puts(&b, "\\u0001");
		buf_puts(&b, "\":\"x\"}}\n");
	}
	bench_start(*state, &bench);
	fd = bench_connect(&bench);
	for (int i = 0; i < 300; i++) {
		ssize_t n = send(fd, b.data + sent, b.len - sent, MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		annotate_server_poll(bench.server);
	}
	assert_int_equal(ioctl(fd, SIOCOUTQ, &unread), 0);
	assert_true(unread > 50000);
	for (int i = 0; i < 3000 && heard < lines; i++) {
		ssize_t n = send(fd, b.data + sent, b.len - sent, MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		annotate_server_poll(bench.server);
		heard += count_lines(hear(fd));
	}
	assert_int_equal(heard, lines);
	close(fd);
	annotate_server_free(bench.server);
}

static void test_too_many_connections(void **state)
{
	int fds[ANNOTATE_CONNECTIONS_MAX + 1];
	struct annotate_bench b;

	bench_start(*state, &b);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = bench_connect(&b);
		annotate_server_poll(b.server);
	}
	assert_string_equal(hear(fds[ANNOTATE_CONNECTIONS_MAX]),
		"{\"ok\":false,\"error\":\"too many connections: try again later\"}\n");
	assert_null(hear(fds[ANNOTATE_CONNECTIONS_MAX]));
	close(fds[0]);
	annotate_server_poll(b.server); /* a place is free again */
	close(fds[ANNOTATE_CONNECTIONS_MAX]);
	fds[0] = bench_connect(&b);
	say(fds[0], GOOD);
	annotate_server_poll(b.server);
	annotate_server_poll(b.server);
	assert_int_equal(b.count, 1);
	for (size_t i = 0; i < ANNOTATE_CONNECTIONS_MAX; i++)
		close(fds[i]);
	annotate_server_free(b.server);
}

/* The writer left before its answer, and another has its place: the answer is not for that one. */
static void test_late_acknowledgement(void **state)
{
	struct annotate_bench b;
	int fd;

	bench_start(*state, &b);
	fd = bench_connect(&b);
	say(fd, GOOD);
	annotate_server_poll(b.server);
	annotate_server_poll(b.server);
	assert_int_equal(b.count, 1);
	close(fd);
	annotate_server_poll(b.server);
	bench_ack(&b);
	annotate_server_poll(b.server);
	fd = bench_connect(&b);
	annotate_server_poll(b.server);
	annotate_server_ack(b.server, b.tickets[0], 99);
	annotate_server_poll(b.server);
	assert_string_equal(hear(fd), "");
	assert_int_equal(annotate_server_waiting(b.server), 0);
	annotate_server_refuse(b.server);
	say(fd, GOOD);
	annotate_server_poll(b.server);
	assert_int_equal(b.count, 1);
	close(fd);
	annotate_server_free(b.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers_come_after_the_store_and_in_order),
		TEST(test_pieces_and_a_last_line_without_newline),
		TEST(test_a_line_too_long),
		TEST(test_processes),
		TEST(test_a_flood_has_to_wait),
		TEST(test_unread_answers_stop_the_reading),
		TEST(test_too_many_connections),
		TEST(test_late_acknowledgement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
