/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests: gzip, and what all of them together may take. */
#include "h2_fixture.h"

#include "gzip_fixture.h"

#define BODY_MAX     (64 << 10)
#define INFLATED_MAX (4 << 20)

static void route_length(void *arg, struct http_exchange *x, const struct http_request *q)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%zu %.5s", q->body_len, q->body);

	http_reply(x, 200, "text/plain", text, (size_t)n);
}

static const struct http_route routes[] = {
	{"POST", "/gzip", route_length, .body_max = BODY_MAX, .inflated_max = INFLATED_MAX},
	{"POST", "/plain", route_length, .body_max = BODY_MAX},
	{"POST", "/wait", route_wait, .body_max = BODY_MAX},
	{.method = NULL},
};

static int start_with(void **state, size_t bodies)
{
	static struct bench b;

	bench_init(&b);
	b.settings.routes = routes;
	if (bodies)
		b.limits.bodies = bodies;
	bench_start(&b);
	*state = &b;
	return 0;
}

static int start(void **state)
{
	return start_with(state, 0);
}

static int start_small(void **state)
{
	return start_with(state, 100 << 10);
}

static int start_middling(void **state)
{
	return start_with(state, 500 << 10);
}

static int stop(void **state)
{
	bench_stop(*state);
	return 0;
}

/* post - over HTTP/1.1, with a length or in chunks of one kilobyte. */
static const struct response *post(const struct bench *b, const char *path, const char *encoding,
	const struct buf *body, bool chunked)
{
	_cleanup_buf_ struct buf q = BUF_INIT(8 << 20);
	int fd = dial(b);
	const struct response *a;

	buf_printf(&q, "POST %s HTTP/1.1\r\n" HOST, path);
	if (encoding)
		buf_printf(&q, "Content-Encoding: %s\r\n", encoding);
	if (!chunked) {
		buf_printf(&q, "Content-Length: %zu\r\n\r\n", body->len);
		buf_append(&q, body->data, body->len);
	} else {
		buf_puts(&q, "Transfer-Encoding: chunked\r\n\r\n");
		for (size_t at = 0; at < body->len; at += 1024) {
			size_t n = MIN(body->len - at, (size_t)1024);

			buf_printf(&q, "%zx\r\n", n);
			buf_append(&q, body->data + at, n);
			buf_puts(&q, "\r\n");
		}
		buf_puts(&q, "0\r\n\r\n");
	}
	say_bytes(fd, q.data, q.len);
	a = hear(fd);
	close(fd);
	return a;
}

static void test_gzip(void **state)
{
	_cleanup_buf_ struct buf gz = BUF_INIT(1 << 20), plain = BUF_INIT(16);

	put_gzip(&gz, "hello", 5, 20000);
	for (int chunked = 0; chunked < 2; chunked++) {
		assert_string_equal(
			post(*state, "/gzip", "gzip", &gz, chunked)->body, "100000 hello");
		assert_string_equal(
			post(*state, "/gzip", "X-GZIP", &gz, chunked)->body, "100000 hello");
	}
	buf_puts(&plain, "hello");
	assert_string_equal(post(*state, "/gzip", NULL, &plain, false)->body, "5 hello");
	assert_string_equal(post(*state, "/gzip", "identity", &plain, false)->body, "5 hello");
	assert_int_equal(bench_figures(*state).bodies, 0);
}

static void test_encodings_that_are_not_understood(void **state)
{
	_cleanup_buf_ struct buf body = BUF_INIT(4096);
	const struct response *a;

	buf_puts(&body, "hello");
	a = post(*state, "/gzip", "br", &body, false);
	assert_int_equal(a->status, 415);
	assert_non_null(strstr(a->head, "accept-encoding: gzip\n"));
	assert_int_equal(post(*state, "/gzip", "gzip, gzip", &body, false)->status, 415);
	assert_int_equal(post(*state, "/gzip", "deflate", &body, true)->status, 415);
	a = post(*state, "/plain", "gzip", &body, false);
	assert_int_equal(a->status, 415);
	assert_non_null(strstr(a->head, "accept-encoding: identity\n"));
	assert_int_equal(post(*state, "/gzip", "gzip", &body, false)->status, 400);
	buf_clear(&body);
	put_gzip(&body, "hello", 5, 1);
	body.len -= 4;
	assert_int_equal(post(*state, "/gzip", "gzip", &body, false)->status, 400);
	body.len = 0;
	assert_int_equal(
		post(*state, "/gzip", "gzip", &body, false)->status, 200); /* none at all */
}

/* Whether it is stopped by its ratio or by the ceiling, memory stays far below what it would be. */
static void test_bombs(void **state)
{
	_cleanup_buf_ struct buf bomb = BUF_INIT(1 << 20), dense = BUF_INIT(1 << 20);
	char row[4000];
	uint32_t seed = 1;

	put_bomb(&bomb, (size_t)60 << 20);
	for (size_t i = 0; i < sizeof(row); i++) {
		seed = seed * 1103515245 + 12345;
		row[i] = (char)(seed >> 16);
	}
	put_gzip(&dense, row, sizeof(row), INFLATED_MAX / sizeof(row) + 1);
	assert_true(bomb.len < BODY_MAX && dense.len < BODY_MAX);
	for (int chunked = 0; chunked < 2; chunked++) {
		const struct response *a = post(*state, "/gzip", "gzip", &bomb, chunked);

		assert_int_equal(a->status, 413);
		assert_non_null(strstr(a->body, "inflates"));
		assert_int_equal(post(*state, "/gzip", "gzip", &dense, chunked)->status, 413);
	}
	assert_int_equal(bench_figures(*state).bombs, 4);
	assert_int_equal(bench_figures(*state).rejected, 4);
	assert_int_equal(bench_figures(*state).bodies, 0);
	buf_clear(&dense); /* the control: a little less of the same */
	put_gzip(&dense, row, sizeof(row), INFLATED_MAX / sizeof(row));
	assert_int_equal(post(*state, "/gzip", "gzip", &dense, false)->status, 200);
}

static void begin_body(struct peer *p, int32_t stream, const char *path, size_t len)
{
	static char bytes[16384];

	send_request(p, stream, "POST", path, false);
	while (len) {
		size_t n = MIN(len, sizeof(bytes));

		send_frame(p, NGHTTP2_DATA, 0, stream, bytes, n);
		len -= n;
	}
}

/* Bodies that are not complete yet, on two connections: what is too much for all is refused with a
 * time to come again, and what is held goes back. */
static void test_all_bodies_have_a_ceiling(void **state)
{
	struct bench *b = *state;
	struct peer one, two;

	meet(b, &one);
	meet(b, &two);
	begin_body(&one, 1, "/plain", 60 << 10);
	send_request(&one, 3, "POST", "/plain",
		true); /* all before it has been read when it is answered */
	assert_int_equal(h2_status(&one, 3), 200);
	assert_int_equal(bench_figures(b).bodies, 60 << 10);
	begin_body(&two, 1, "/plain", 60 << 10);
	assert_int_equal(h2_status(&two, 1), 503);
	assert_non_null(strstr(two.fields, "retry-after: 1\n"));
	assert_int_equal(bench_figures(b).bodies, 60 << 10);
	send_frame(&one, NGHTTP2_DATA, END_STREAM, 1, "", 0);
	assert_int_equal(h2_status(&one, 1), 200);
	assert_int_equal(bench_figures(b).bodies, 0);
	begin_body(&two, 3, "/plain", 60 << 10);
	send_frame(&two, NGHTTP2_DATA, END_STREAM, 3, "", 0);
	assert_int_equal(h2_status(&two, 3), 200);
	part(&one);
	part(&two);
}

/* One address holds half of the room at most, over however many connections: another one finds the rest. */
static void test_an_address_leaves_room(void **state)
{
	struct bench *b = *state;
	struct peer slow[5], other = {0};

	for (int i = 0; i < 5; i++) {
		meet(b, &slow[i]);
		begin_body(&slow[i], 1, "/plain", 60 << 10);
		if (i == 4)
			break;
		send_request(&slow[i], 3, "POST", "/plain",
			true); /* the body has been read when it is answered */
		assert_int_equal(h2_status(&slow[i], 3), 200);
	}
	assert_int_equal(h2_status(&slow[4], 1), 503);
	assert_non_null(strstr(slow[4].fields, "retry-after: 1\n"));
	meet_from(b, &other, "127.0.0.2");
	begin_body(&other, 1, "/plain", 60 << 10);
	send_frame(&other, NGHTTP2_DATA, END_STREAM, 1, "", 0);
	assert_int_equal(h2_status(&other, 1), 200);
	send_frame(&slow[0], NGHTTP2_DATA, END_STREAM, 1, "", 0);
	assert_int_equal(h2_status(&slow[0], 1), 200);
	begin_body(&slow[4], 3, "/plain", 60 << 10); /* what was held went back */
	send_frame(&slow[4], NGHTTP2_DATA, END_STREAM, 3, "", 0);
	assert_int_equal(h2_status(&slow[4], 3), 200);
	for (int i = 0; i < 5; i++)
		part(&slow[i]);
	part(&other);
}

static const unsigned char cancel[4] = {0, 0, 0, NGHTTP2_CANCEL};

/* ask_and_go - a body of 50 KiB whose sender does not wait for the answer. */
static void ask_and_go(struct bench *b, struct peer *p)
{
	meet(b, p);
	begin_body(p, 1, "/wait", 50 << 10);
	send_frame(p, NGHTTP2_DATA, END_STREAM, 1, "", 0);
	bench_await(b, 0);
	send_frame(p, NGHTTP2_RST_STREAM, 0, 1, cancel, sizeof(cancel));
	bench_await(b, 1);
}

/* What a handler has not answered yet is held although its sender is gone. */
static void test_bodies_of_peers_that_have_gone(void **state)
{
	struct bench *b = *state;
	struct peer p;

	ask_and_go(b, &p);
	assert_int_equal(bench_figures(b).bodies, 50 << 10);
	bench_answer(b);
	assert_int_equal(bench_figures(b).bodies, 0);
	begin_body(&p, 3, "/plain", 50 << 10);
	send_frame(&p, NGHTTP2_RST_STREAM, 0, 3, cancel, sizeof(cancel));
	send_request(&p, 5, "POST", "/plain", true);
	assert_int_equal(h2_status(&p, 5), 200);
	assert_int_equal(bench_figures(b).bodies, 0);
	part(&p);
}

/* Nor does it matter then whether the server is still there. */
static void test_a_reply_after_the_servers_end(void **state)
{
	struct bench *b = *state;
	struct peer p;

	ask_and_go(b, &p);
	part(&p);
	assert_non_null(b->waiting); /* bench_stop() frees the server, then replies */
}

/* A window for inflating is memory, too: two beginnings of a stream are as much as the ceiling. */
static void test_windows_count(void **state)
{
	_cleanup_buf_ struct buf head = BUF_INIT(4096), gz = BUF_INIT(4096);
	struct bench *b = *state;
	struct peer p;

	put_request(&head, "POST", "/gzip");
	put_field(&head, "content-encoding", "gzip");
	put_gzip(&gz, "hello", 5, 1);
	meet(b, &p);
	for (int32_t stream = 1; stream <= 5; stream += 2) {
		send_frame(&p, NGHTTP2_HEADERS, END_HEADERS, stream, head.data, head.len);
		send_frame(&p, NGHTTP2_DATA, 0, stream, gz.data, 12);
	}
	assert_int_equal(h2_status(&p, 5), 503);
	send_frame(&p, NGHTTP2_DATA, END_STREAM, 1, gz.data + 12, gz.len - 12);
	assert_int_equal(h2_status(&p, 1), 200);
	part(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gzip, start, stop),
		cmocka_unit_test_setup_teardown(
			test_encodings_that_are_not_understood, start, stop),
		cmocka_unit_test_setup_teardown(test_bombs, start, stop),
		cmocka_unit_test_setup_teardown(test_all_bodies_have_a_ceiling, start_small, stop),
		cmocka_unit_test_setup_teardown(test_an_address_leaves_room, start_middling, stop),
		cmocka_unit_test_setup_teardown(
			test_bodies_of_peers_that_have_gone, start_small, stop),
		cmocka_unit_test_setup_teardown(
			test_a_reply_after_the_servers_end, start_small, stop),
		cmocka_unit_test_setup_teardown(test_windows_count, start_small, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
