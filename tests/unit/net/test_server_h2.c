/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 as the server speaks it, frame by frame: a client library would not misbehave. */
#include "h2_fixture.h"

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

/* ---- tests ---- */

static void test_requests(void **state)
{
	static const struct {
		const char *method, *path;
		int status;
	} rows[] = {
		{"GET", "/echo", 200},
		{"HEAD", "/large", 200},
		{"GET", "/none", 404},
		{"DELETE", "/echo", 405},
		{"GET", "/%zz", 400},
		{"GET", "/tree/a%20b?c", 200},
	};
	struct peer p;

	meet(*state, &p);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		send_request(&p, (int32_t)i * 2 + 1, rows[i].method, rows[i].path, true);
		assert_int_equal(h2_status(&p, (int32_t)i * 2 + 1), rows[i].status);
	}
	part(&p);
	/* and HTTP/1.1 on the same port, whose methods may begin like the preface */
	assert_int_equal(
		ask(*state, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n")->status,
		200);
	assert_int_equal(ask(*state, "PRI /echo HTTP/1.1\r\n" HOST "\r\n")->status, 405);
}

/* Both halves of a request, in pieces of one byte. */
static void test_single_bytes(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16), head = BUF_INIT(1 << 16);
	struct peer p = {.fd = dial(*state)};

	assert_int_equal(nghttp2_hd_inflate_new(&p.inflater), 0);
	buf_puts(&b, PREFACE);
	put_frame(&b, NGHTTP2_SETTINGS, 0, 0, "", 0);
	put_request(&head, "POST", "/echo");
	put_frame(&b, NGHTTP2_HEADERS, END_HEADERS, 1, head.data, head.len);
	put_frame(&b, NGHTTP2_DATA, END_STREAM, 1, "hello", 5);
	for (size_t i = 0; i < b.len; i++)
		say_bytes(p.fd, b.data + i, 1);
	assert_int_equal(h2_status(&p, 1), 200);
	assert_memory_equal(hear_frame(&p)->data, "POST /echo? - -|hello", 21);
	part(&p);
}

static void test_hosts(void **state)
{
	static const struct {
		const char *authority, *host, *origin;
		int status;
	} rows[] = {
		{"localhost", NULL, NULL, 200},
		{NULL, "localhost", NULL, 200},
		{"localhost", "localhost", NULL, 200},
		{"evil.example", NULL, NULL, 403},
		{NULL, "evil.example", NULL, 403},
		{"localhost", "evil.example", NULL, 400},
		{"localhost", NULL, "null", 403},
		{"localhost", NULL, "http://evil.example", 403},
	};
	struct peer p;

	meet(*state, &p);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(4096);

		put_field(&b, ":method", "GET");
		put_field(&b, ":scheme", "http");
		put_field(&b, ":path", "/echo");
		if (rows[i].authority)
			put_field(&b, ":authority", rows[i].authority);
		if (rows[i].host)
			put_field(&b, "host", rows[i].host);
		if (rows[i].origin)
			put_field(&b, "origin", rows[i].origin);
		send_frame(&p, NGHTTP2_HEADERS, END_HEADERS | END_STREAM, (int32_t)i * 2 + 1,
			b.data, b.len);
		assert_int_equal(h2_status(&p, (int32_t)i * 2 + 1), rows[i].status);
	}
	part(&p);
}

/* with_fields - @count fields of @bytes bytes each, and the path given that length. */
static int with_fields(struct bench *bench, size_t path, size_t count, size_t bytes)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
	struct peer p;
	size_t at = 0;
	int status;

	meet(bench, &p);
	buf_puts(&text, "/tree/");
	while (text.len < path)
		buf_putc(&text, 'p');
	put_request(&b, "GET", text.data);
	buf_clear(&text);
	while (text.len < bytes)
		buf_putc(&text, 'v');
	while (count--)
		put_field(&b, "f", buf_str(&text));
	while (at < b.len) {
		size_t n = MIN(b.len - at, (size_t)16384);
		bool last = at + n == b.len;

		send_frame(&p, at ? NGHTTP2_CONTINUATION : NGHTTP2_HEADERS,
			(at ? 0 : END_STREAM) | (last ? END_HEADERS : 0), 1, b.data + at, n);
		at += n;
	}
	status = h2_status(&p, 1);
	part(&p);
	return status;
}

static void test_ceilings_of_the_head(void **state)
{
	assert_int_equal(with_fields(*state, 10, 1, 1), 200);
	assert_int_equal(with_fields(*state, HTTP_LINE_MAX, 1, 1), 200);
	assert_int_equal(with_fields(*state, HTTP_LINE_MAX + 1, 1, 1), 414);
	assert_int_equal(with_fields(*state, 10, HTTP_FIELDS_MAX, 1), 200);
	assert_int_equal(with_fields(*state, 10, HTTP_FIELDS_MAX + 1, 1), 431);
	assert_int_equal(with_fields(*state, 10, 1, 16000), 200);
	assert_int_equal(with_fields(*state, 10, 1, HTTP_HEAD_MAX), 431);
	assert_int_equal(with_fields(*state, 10, 3, 16000), 431);
}

static void test_bad_fields(void **state)
{
	static const char *const values[] = {"a\x01", "a\nb", "a\x7f"};
	struct peer p;

	meet(*state, &p);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(4096);

		put_request(&b, "GET", "/echo");
		put_field(&b, "x-probe", values[i]);
		send_frame(&p, NGHTTP2_HEADERS, END_HEADERS | END_STREAM, (int32_t)i * 2 + 1,
			b.data, b.len);
		assert_int_equal(h2_status(&p, (int32_t)i * 2 + 1), 400);
	}
	part(&p);
}

static void send_body(struct peer *p, int32_t stream, size_t len)
{
	static char zeros[16384];

	while (len) {
		size_t n = MIN(len, sizeof(zeros));

		len -= n;
		send_frame(p, NGHTTP2_DATA, len ? 0 : END_STREAM, stream, zeros, n);
	}
}

static void test_ceilings_of_bodies(void **state)
{
	struct peer p;

	meet(*state, &p);
	send_request(&p, 1, "POST", "/small", false);
	send_body(&p, 1, 10);
	assert_int_equal(h2_status(&p, 1), 200);
	send_request(&p, 3, "POST", "/small", false);
	send_body(&p, 3, 11);
	assert_int_equal(h2_status(&p, 3), 413);
	send_request(&p, 5, "POST", "/echo", false);
	send_body(&p, 5, HTTP_BODY_MAX);
	assert_int_equal(h2_status(&p, 5), 200);
	part(&p);
	meet(*state, &p);
	send_request(&p, 1, "POST", "/echo", false); /* refused before it is complete */
	send_frame(&p, NGHTTP2_DATA, 0, 1, "x", 1);
	send_request(&p, 3, "POST", "/none", false);
	assert_int_equal(h2_status(&p, 3), 404);
	send_frame(&p, NGHTTP2_DATA, END_STREAM, 1, "y", 1);
	assert_int_equal(h2_status(&p, 1), 200);
	part(&p);
}

static void test_streams_at_once(void **state)
{
	int refused = 0, n = HTTP_STREAMS + 5;
	struct peer p;

	meet(*state, &p);
	for (int i = 0; i < n; i++) /* which wait for their bodies */
		send_request(&p, i * 2 + 1, "POST", "/echo", false);
	for (int i = 0; i < 5; i++)
		refused += h2_status(&p, (HTTP_STREAMS + i) * 2 + 1) == -2 - NGHTTP2_REFUSED_STREAM;
	assert_int_equal(refused, 5);
	for (int i = 0; i < HTTP_STREAMS; i++) {
		send_frame(&p, NGHTTP2_DATA, END_STREAM, i * 2 + 1, "", 0);
		assert_int_equal(h2_status(&p, i * 2 + 1), 200);
	}
	part(&p);
}

static void test_waiting_streams_and_gone_ones(void **state)
{
	static const unsigned char cancel[4] = {0, 0, 0, NGHTTP2_CANCEL};
	struct bench *b = *state;
	struct peer p;

	meet(b, &p);
	send_request(&p, 1, "GET", "/wait", true);
	bench_await(b, 0);
	send_request(&p, 3, "GET", "/echo", true); /* is not held up by the first */
	assert_int_equal(h2_status(&p, 3), 200);
	bench_answer(b);
	assert_int_equal(h2_status(&p, 1), 200);
	send_request(&p, 5, "GET", "/wait", true);
	bench_await(b, 0);
	send_frame(&p, NGHTTP2_RST_STREAM, 0, 5, cancel, 4);
	bench_await(b, 1);
	bench_answer(b); /* heard by nobody */
	send_request(&p, 7, "GET", "/wait", true);
	bench_await(b, 0);
	part(&p); /* all of it goes */
	bench_await(b, 2);
}

/* ---- floods ---- */

static void test_rapid_reset(void **state)
{
	static const unsigned char cancel[4] = {0, 0, 0, NGHTTP2_CANCEL};
	struct peer p;
	int32_t stream = 1;

	meet(*state, &p);
	for (int i = 0; i < 90; i++, stream += 2) { /* so many are borne */
		send_request(&p, stream, "GET", "/echo", false);
		send_frame(&p, NGHTTP2_RST_STREAM, 0, stream, cancel, 4);
	}
	send_request(&p, stream, "GET", "/echo", true);
	assert_int_equal(h2_status(&p, stream), 200);
	stream += 2;
	for (int i = 0; i < 400; i++, stream += 2) {
		send_request(&p, stream, "GET", "/echo", false);
		send_frame(&p, NGHTTP2_RST_STREAM, 0, stream, cancel, 4);
	}
	assert_int_equal(goaway_code(&p), NGHTTP2_ENHANCE_YOUR_CALM);
	part(&p);
}

/* Errors of streams that make the server reset them count as well. */
static void test_made_to_reset(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct peer p;

	meet(*state, &p);
	put_request(&b, "POST", "/echo");
	put_field(&b, "connection", "close"); /* which HTTP/2 does not have */
	send_frame(&p, NGHTTP2_HEADERS, END_HEADERS, 1, b.data, b.len);
	assert_int_equal(h2_status(&p, 1), -2 - NGHTTP2_PROTOCOL_ERROR);
	for (int32_t stream = 3; stream < 800; stream += 2)
		send_frame(&p, NGHTTP2_HEADERS, END_HEADERS, stream, b.data, b.len);
	assert_int_equal(goaway_code(&p), NGHTTP2_ENHANCE_YOUR_CALM);
	part(&p);
}

static void flood(struct bench *b, int type, int32_t stream, const void *data, size_t len)
{
	struct peer p;

	meet(b, &p);
	send_request(&p, 1, "POST", "/echo", false);
	for (int i = 0; i < 20; i++) /* so many are borne */
		send_frame(&p, type, 0, stream, data, len);
	send_request(&p, 3, "GET", "/echo", true);
	assert_int_equal(h2_status(&p, 3), 200);
	for (int i = 0; i < 500; i++)
		send_frame(&p, type, 0, stream, data, len);
	assert_int_equal(goaway_code(&p), NGHTTP2_ENHANCE_YOUR_CALM);
	part(&p);
}

static void test_floods_of_frames_that_ask_nothing(void **state)
{
	flood(*state, NGHTTP2_PING, 0, "12345678", 8);
	flood(*state, NGHTTP2_SETTINGS, 0, "", 0);
	flood(*state, NGHTTP2_PRIORITY, 5, "\0\0\0\0\x10", 5);
	flood(*state, NGHTTP2_DATA, 1, "", 0);
}

static void test_continuation_flood(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct peer p;

	meet(*state, &p);
	put_request(&b, "GET", "/echo");
	send_frame(&p, NGHTTP2_HEADERS, END_STREAM, 1, b.data, b.len);
	for (int i = 0; i < 2000; i++)
		send_frame(&p, NGHTTP2_CONTINUATION, 0, 1, "", 0);
	assert_true(hears_end(p.fd));
	part(&p);
	assert_int_equal(ask(*state, "GET /echo HTTP/1.1\r\n" HOST "\r\n")->status, 200);
}

/* ---- time ---- */

static void test_slow_heads_and_silent_peers(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct bench bench;
	struct peer p;

	bench_init(&bench);
	bench.limits.head_ns = 200 * NS_PER_MS;
	bench_start(&bench);
	meet(&bench, &p);
	put_request(&b, "GET", "/echo");
	send_frame(&p, NGHTTP2_HEADERS, END_STREAM, 1, b.data, b.len); /* no END_HEADERS */
	assert_int_equal(h2_status(&p, 1), -1);
	part(&p);
	p.fd = dial(&bench);
	say(p.fd, "PRI * HT");
	assert_int_equal(hear(p.fd)->status, 0);
	close(p.fd);
	bench_stop(&bench);
}

static void test_slow_bodies(void **state)
{
	struct bench bench;
	struct peer p;

	bench_init(&bench);
	bench.limits.head_ns = 200 * NS_PER_MS;
	bench.limits.body_rate = 1 << 20;
	bench_start(&bench);
	meet(&bench, &p);
	send_request(&p, 1, "POST", "/echo", false);
	send_frame(&p, NGHTTP2_DATA, 0, 1, "x", 1);
	assert_int_equal(h2_status(&p, 1), 408);
	part(&p);
	bench_stop(&bench);
}

/* A peer that keeps its window shut does not make the server keep replies for ever. */
static void test_shut_windows(void **state)
{
	static const unsigned char window_0[6] = {0, 4, 0, 0, 0, 0};
	struct bench bench;
	struct peer p;

	bench_init(&bench);
	bench.limits.head_ns = 200 * NS_PER_MS;
	bench_start(&bench);
	meet(&bench, &p);
	send_frame(&p, NGHTTP2_SETTINGS, 0, 0, window_0, sizeof(window_0));
	send_request(&p, 1, "GET", "/large", true);
	assert_int_equal(h2_status(&p, 1), 200);
	assert_true(hears_end(p.fd));
	part(&p);
	bench_stop(&bench);
}

static void test_idle_and_old_connections(void **state)
{
	const struct frame *f;
	struct bench bench;
	struct peer p;

	bench_init(&bench);
	bench.limits.idle_ns = 200 * NS_PER_MS;
	bench_start(&bench);
	meet(&bench, &p);
	send_request(&p, 1, "GET", "/echo", true);
	assert_int_equal(h2_status(&p, 1), 200);
	assert_int_equal(goaway_code(&p), NGHTTP2_NO_ERROR);
	part(&p);
	bench_stop(&bench);

	bench_init(&bench);
	bench.limits.age_ns = 200 * NS_PER_MS;
	bench_start(&bench);
	meet(&bench, &p);
	send_request(&p, 1, "GET", "/wait", true);
	bench_await(&bench, 0);
	do { /* it says so, and waits */
		f = hear_frame(&p);
		assert_int_not_equal(f->type, -1);
	} while (f->type != NGHTTP2_GOAWAY);
	bench_answer(&bench);
	assert_int_equal(h2_status(&p, 1), 200);
	assert_true(hears_end(p.fd));
	part(&p);
	bench_stop(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_requests, start, stop),
		cmocka_unit_test_setup_teardown(test_single_bytes, start, stop),
		cmocka_unit_test_setup_teardown(test_hosts, start, stop),
		cmocka_unit_test_setup_teardown(test_ceilings_of_the_head, start, stop),
		cmocka_unit_test_setup_teardown(test_bad_fields, start, stop),
		cmocka_unit_test_setup_teardown(test_ceilings_of_bodies, start, stop),
		cmocka_unit_test_setup_teardown(test_streams_at_once, start, stop),
		cmocka_unit_test_setup_teardown(test_waiting_streams_and_gone_ones, start, stop),
		cmocka_unit_test_setup_teardown(test_rapid_reset, start, stop),
		cmocka_unit_test_setup_teardown(test_made_to_reset, start, stop),
		cmocka_unit_test_setup_teardown(
			test_floods_of_frames_that_ask_nothing, start, stop),
		cmocka_unit_test_setup_teardown(test_continuation_flood, start, stop),
		cmocka_unit_test(test_slow_heads_and_silent_peers),
		cmocka_unit_test(test_slow_bodies),
		cmocka_unit_test(test_shut_windows),
		cmocka_unit_test(test_idle_and_old_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
