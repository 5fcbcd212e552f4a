/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 as the server speaks it: ceilings, order, connections that are kept and that are not. */
#include "server_fixture.h"

#include <unistd.h>

static int start(void **state)
{
	static struct bench b;

	bench_init(&b);
	bench_start(&b);
	*state = &b;
	return 0;
}

static int stop(void **state)
{
	bench_stop(*state);
	return 0;
}

/* refused - the status, and the connection is closed behind it. */
static int refused(const struct bench *b, const char *request, size_t len)
{
	int fd = dial(b), status;
	struct response *a;

	say_bytes(fd, request, len);
	a = hear(fd);
	status = a->status;
	if (status >= 400) {
		assert_false(a->keep_alive);
		assert_non_null(strstr(a->body, "{\"error\": \""));
		assert_true(hears_end(fd));
	}
	close(fd);
	return status;
}

static int sized(const struct bench *b, size_t path, size_t fields, size_t value)
{
	_cleanup_buf_ struct buf r = BUF_INIT(1 << 20);

	buf_puts(&r, "GET /tree/");
	for (size_t i = 0; i < path; i++)
		buf_putc(&r, 'p');
	buf_puts(&r, " HTTP/1.1\r\n" HOST);
	for (size_t i = 0; i < fields; i++)
		buf_puts(&r, "A: b\r\n");
	buf_puts(&r, "V: ");
	for (size_t i = 0; i < value; i++)
		buf_putc(&r, 'v');
	buf_puts(&r, "\r\n\r\n");
	return refused(b, r.data, r.len);
}

static void test_ceilings_of_the_head(void **state)
{
	assert_int_equal(sized(*state, 8000, 1, 1), 200);
	assert_int_equal(sized(*state, 8192, 1, 1), 414);
	assert_int_equal(sized(*state, 200000, 1, 1), 414);
	assert_int_equal(sized(*state, 1, 62, 1), 200);
	assert_int_equal(sized(*state, 1, 63, 1), 431);
	assert_int_equal(sized(*state, 1, 1, 16000), 200);
	assert_int_equal(sized(*state, 1, 1, 16384), 431);
	assert_int_equal(sized(*state, 1, 1, 500000), 431);
}

#define ECHO_HEAD "POST /echo HTTP/1.1\r\n" HOST

static void test_what_is_not_a_request(void **state)
{
	static const struct {
		const char *request;
		int status;
	} rows[] = {
		{ECHO_HEAD "Content-Length: 2\r\n\r\nok", 200},
		{ECHO_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200},
		{"GET /echo HTTP/1.1\r\n\r\n", 400},
		{"GET /echo HTTP/1.0\r\n\r\n", 400}, /* HTTP/1.0 without Host: whom does it mean? */
		{"GET /echo HTTP/1.1\r\n" HOST HOST "\r\n", 400},
		{"GET /echo HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400},
		{"GET /echo HTTP/1.1\r\n" HOST "A: \x01\r\n\r\n", 400},
		{ECHO_HEAD "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", 400},
		{ECHO_HEAD "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", 400},
		{ECHO_HEAD "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok", 400},
		{ECHO_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		{ECHO_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n", 400},
		{ECHO_HEAD "Transfer-Encoding: gzip\r\n\r\n", 501},
		{"GET /echo HTTP/3.0\r\n" HOST "\r\n", 505},
		{"\x16\x03\x01\x02\x00", 400},
		{"nonsense\r\n", 400},
	};
	static const char nul[] = "GET /echo HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n";

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int status = refused(*state, rows[i].request, strlen(rows[i].request));

		if (status != rows[i].status)
			print_error("%s\n", rows[i].request);
		assert_int_equal(status, rows[i].status);
	}
	assert_int_equal(refused(*state, nul, sizeof(nul) - 1), 400);
}

static int with_body(const struct bench *b, const char *path, size_t len, bool chunked)
{
	_cleanup_buf_ struct buf r = BUF_INIT(4 << 20);

	buf_printf(&r, "POST %s HTTP/1.1\r\n" HOST, path);
	if (chunked)
		buf_printf(&r, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", len);
	else
		buf_printf(&r, "Content-Length: %zu\r\n\r\n", len);
	for (size_t i = 0; i < len; i++)
		buf_putc(&r, 'x');
	if (chunked)
		buf_puts(&r, "\r\n0\r\n\r\n");
	return refused(b, r.data, r.len);
}

static void test_ceilings_of_bodies(void **state)
{
	for (int chunked = 0; chunked < 2; chunked++) {
		assert_int_equal(with_body(*state, "/small", 10, chunked), 200);
		assert_int_equal(with_body(*state, "/small", 11, chunked), 413);
		assert_int_equal(with_body(*state, "/echo", HTTP_BODY_MAX, chunked), 200);
		assert_int_equal(with_body(*state, "/echo", HTTP_BODY_MAX + 1, chunked), 413);
	}
}

/* A refusal for another reason than the body's form lets the connection live. */
static void test_refusals_keep_the_connection(void **state)
{
	int fd = dial(*state);
	struct response *a;

	say(fd, "POST /none HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
	a = hear(fd);
	assert_int_equal(a->status, 404);
	assert_true(a->keep_alive);
	say(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(hear(fd)->status, 200);
	close(fd);
}

static void test_pipelined_requests_are_answered_in_order(void **state)
{
	_cleanup_buf_ struct buf r = BUF_INIT(1 << 20);
	int fd = dial(*state);

	for (int i = 0; i < 200; i++)
		buf_printf(&r,
			"POST /echo?%d HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
			"3\r\n%03d\r\n0\r\n\r\n",
			i, i);
	say_bytes(fd, r.data, r.len);
	for (int i = 0; i < 200; i++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "POST /echo?%d - -|%03d", i, i);
		assert_string_equal(hear(fd)->body, expected);
	}
	close(fd);
}

/* Who asks for much and reads nothing is not read from; what he asked for comes when he reads. */
static void test_large_replies_wait_for_their_reader(void **state)
{
	_cleanup_buf_ struct buf r = BUF_INIT(1 << 20);
	struct bench *b = *state;
	int fd = dial(b);

	for (int i = 0; i < 50; i++)
		buf_puts(&r, "GET /large HTTP/1.1\r\n" HOST "\r\n");
	say_bytes(fd, r.data, r.len);
	assert_int_equal(ask(b, "GET /echo HTTP/1.1\r\n" HOST "\r\n")->status, 200);
	/* 50 of 4 MiB have been asked for; at most two can have been begun */
	assert_true(bench_figures(b).requests < 20);
	for (int i = 0; i < 50; i++)
		assert_int_equal(hear(fd)->body_len, 4 << 20);
	close(fd);
}

static void test_head(void **state)
{
	int fd = dial(*state);
	struct response *a;

	say(fd, "HEAD /large HTTP/1.1\r\n" HOST "\r\nGET /echo HTTP/1.1\r\n" HOST "\r\n");
	a = hear_to(fd, "HEAD");
	assert_int_equal(a->status, 200);
	assert_non_null(strstr(a->head, "content-length: 4194304\n"));
	assert_string_equal(hear(fd)->body, "GET /echo? - -|"); /* nothing in between */
	say(fd, "HEAD /none HTTP/1.1\r\n" HOST "\r\nGET /echo HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(hear_to(fd, "HEAD")->status, 404);
	assert_int_equal(hear(fd)->status, 200);
	close(fd);
}

static void test_connections_are_kept_as_asked(void **state)
{
	static const struct {
		const char *request;
		bool kept;
	} rows[] = {
		{"GET /echo HTTP/1.1\r\n" HOST "\r\n", true},
		{"GET /echo HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", false},
		{"GET /echo HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n", false},
		{"GET /echo HTTP/1.0\r\n" HOST "\r\n", false},
		{"GET /echo HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int fd = dial(*state);
		struct response *a;

		say(fd, rows[i].request);
		a = hear(fd);
		assert_int_equal(a->status, 200);
		assert_int_equal(a->keep_alive, rows[i].kept);
		if (rows[i].kept) {
			say(fd, rows[i].request);
			assert_int_equal(hear(fd)->status, 200);
		} else {
			assert_true(hears_end(fd));
		}
		close(fd);
	}
}

static void test_expect(void **state)
{
	int fd = dial(*state);

	say(fd, ECHO_HEAD "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
	assert_int_equal(hear(fd)->status, 100);
	say(fd, "ok");
	assert_string_equal(hear(fd)->body, "POST /echo? - -|ok");
	/* not for a body that will not be taken */
	say(fd, "POST /small HTTP/1.1\r\n" HOST
		"Content-Length: 11\r\nExpect: 100-continue\r\n\r\n");
	assert_int_equal(hear(fd)->status, 413);
	close(fd);
	fd = dial(*state);
	say(fd, "POST /none HTTP/1.1\r\n" HOST
		"Content-Length: 11\r\nExpect: 100-continue\r\n\r\n");
	assert_int_equal(hear(fd)->status, 404);
	assert_true(hears_end(fd));
	close(fd);
}

/* The reply to a body that is too long arrives although the client goes on sending. */
static void test_refusals_arrive(void **state)
{
	_cleanup_buf_ struct buf r = BUF_INIT(32 << 20);
	int fd = dial(*state);

	buf_puts(&r, ECHO_HEAD "Content-Length: 20000000\r\n\r\n");
	for (int i = 0; i < 200000; i++)
		buf_puts(&r, "0123456789");
	say_bytes(fd, r.data, r.len);
	assert_int_equal(hear(fd)->status, 413);
	close(fd);
}

static void test_cut_requests(void **state)
{
	int fd = dial(*state);

	say(fd, ECHO_HEAD "Content-Length: 5\r\n\r\nhal");
	shutdown(fd, SHUT_WR);
	assert_int_equal(hear(fd)->status, 400);
	assert_true(hears_end(fd));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ceilings_of_the_head, start, stop),
		cmocka_unit_test_setup_teardown(test_what_is_not_a_request, start, stop),
		cmocka_unit_test_setup_teardown(test_ceilings_of_bodies, start, stop),
		cmocka_unit_test_setup_teardown(test_refusals_keep_the_connection, start, stop),
		cmocka_unit_test_setup_teardown(
			test_pipelined_requests_are_answered_in_order, start, stop),
		cmocka_unit_test_setup_teardown(
			test_large_replies_wait_for_their_reader, start, stop),
		cmocka_unit_test_setup_teardown(test_head, start, stop),
		cmocka_unit_test_setup_teardown(test_connections_are_kept_as_asked, start, stop),
		cmocka_unit_test_setup_teardown(test_expect, start, stop),
		cmocka_unit_test_setup_teardown(test_refusals_arrive, start, stop),
		cmocka_unit_test_setup_teardown(test_cut_requests, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
