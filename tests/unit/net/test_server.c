/* SPDX-License-Identifier: Apache-2.0 */
/* What a request goes through, and what replies look like. Ceilings of HTTP/1.1 are in
 * test_server_h1.c, those of connections in test_connection.c. */
#include "server_fixture.h"

#include <unistd.h>

static void test_a_reply(void **state)
{
	struct response *a;
	struct bench b;

	bench_init(&b);
	bench_start(&b);
	a = ask(&b, "GET /echo?a=%20b HTTP/1.1\r\n" HOST "X-Probe: p\r\n\r\n");
	assert_int_equal(a->status, 200);
	assert_string_equal(a->body, "GET /echo?a=%20b p -|");
	assert_non_null(strstr(a->head, "content-type: text/plain\n"));
	assert_non_null(strstr(a->head, "x-content-type-options: nosniff\n"));
	assert_non_null(strstr(a->head, "cache-control: no-store\n"));
	assert_non_null(strstr(a->head, "referrer-policy: no-referrer\n"));
	assert_non_null(strstr(a->head, "date: "));
	/* a value cannot begin a field of its own */
	assert_non_null(strstr(a->head, "x-two: one  X-Injected: yes\n"));
	assert_null(strstr(a->head, "\nx-injected"));
	bench_stop(&b);
}

static void test_routes(void **state)
{
	static const struct {
		const char *line;
		int status;
		const char *said;
	} rows[] = {
		{"GET /echo", 200, "GET /echo"},
		{"GET /ech%6f", 200, "GET /echo"},
		{"GET /tree/", 200, "GET /tree/"},
		{"GET /tree/a/b", 200, "GET /tree/a/b"},
		{"GET /tree/a%2fb", 200, "GET /tree/a/b"},
		{"GET http://localhost/echo?q", 200, "GET /echo?q"},
		{"POST /echo", 200, "POST /echo"},
		{"GET /", 404, "{\"error\": \"no such path\"}\n"},
		{"GET /tree", 404, "no such path"},
		{"GET /echo/", 404, "no such path"},
		{"GET /Echo", 404, "no such path"},
		{"OPTIONS *", 404, "no such path"},
		{"DELETE /echo", 405, "method not allowed: use GET, HEAD, POST"},
		{"get /echo", 405, "method not allowed"},
		{"POST /tree/leaf", 405, "GET, HEAD"},
		{"GET /%", 400, "escape"},
		{"GET /%4", 400, "escape"},
		{"GET /%zz", 400, "escape"},
		{"GET /%00", 400, "escape"},
		{"GET /%0a", 400, "escape"},
		{"GET /tree/../echo", 400, "escape"},
		{"GET /tree/%2e%2e/echo", 400, "escape"},
		{"GET echo", 400, "escape"},
		{"GET ftp://localhost/echo", 400, "escape"},
		{"CONNECT localhost:80", 400, "escape"},
	};
	struct bench b;

	bench_init(&b);
	bench_start(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char request[256];
		struct response *a;

		snprintf(request, sizeof(request), "%s HTTP/1.1\r\n" HOST "\r\n", rows[i].line);
		a = ask(&b, request);
		if (a->status != rows[i].status || !strstr(a->body, rows[i].said))
			print_error("%s: %d %s\n", rows[i].line, a->status, a->body);
		assert_int_equal(a->status, rows[i].status);
		assert_non_null(strstr(a->body, rows[i].said));
		if (a->status >= 400)
			assert_non_null(strstr(a->head, "content-type: application/json\n"));
		if (a->status == 405)
			assert_non_null(strstr(a->head, "allow: GET, HEAD"));
	}
	bench_stop(&b);
}

static void test_hosts_and_origins(void **state)
{
	static const struct {
		const char *line, *fields;
		int status;
	} rows[] = {
		{"GET /echo", "Host: localhost\r\n", 200},
		{"GET /echo", "Host: evil.example\r\n", 403},
		{"GET /echo", "Host: \r\n", 403},
		{"GET http://evil.example/echo", "Host: localhost\r\n", 403},
		{"GET http://localhost/echo", "Host: evil.example\r\n", 200},
		{"GET /echo", "Host: localhost\r\nOrigin: null\r\n", 403},
		{"GET /echo", "Host: localhost\r\nOrigin: http://evil.example\r\n", 403},
		{"GET /echo", "Host: gpu1\r\n", 200},
		{"GET /echo", "Host: localhost\r\nOrigin: https://gpu.example\r\n", 200},
		{"GET /echo", "Host: localhost\r\nOrigin: https://gpu.example\r\nOrigin: null\r\n",
			400},
		{"GET /echo", "Host: localhost\r\nAuthorization: a\r\nAuthorization: b\r\n", 400},
		/* before the route is looked at, so that nothing is told about routes */
		{"GET /none", "Host: evil.example\r\n", 403},
	};
	static const char *const names[] = {"gpu1", "https://gpu.example", NULL};
	struct bench b;

	bench_init(&b);
	b.settings.names = names;
	bench_start(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char request[256];

		snprintf(request, sizeof(request), "%s HTTP/1.1\r\n%s\r\n", rows[i].line,
			rows[i].fields);
		if (ask(&b, request)->status != rows[i].status)
			print_error("%s\n", request);
		assert_int_equal(ask(&b, request)->status, rows[i].status);
	}
	bench_stop(&b);
}

static void token_bench(struct bench *b)
{
	bench_init(b);
	setenv("TEST_TOKENS", "0123456789abcdef0123", 1);
	assert_int_equal(token_set_new(NULL, "TEST_TOKENS", &b->settings.tokens, NULL), 0);
	bench_start(b);
}

/* Whoever is told to come back is told when. */
static void test_not_now_has_a_time(void **state)
{
	struct bench b;

	token_bench(&b);
	assert_non_null(strstr(
		ask(&b, "GET /fail?503 HTTP/1.1\r\n" HOST "\r\n")->head, "retry-after: 1\n"));
	assert_non_null(strstr(
		ask(&b, "GET /fail?503,9 HTTP/1.1\r\n" HOST "\r\n")->head, "retry-after: 9\n"));
	assert_null(strstr(ask(&b, "GET /fail?500 HTTP/1.1\r\n" HOST "\r\n")->head, "retry-after"));
	bench_stop(&b);
}

#define ASK_WITH(token) "GET /echo HTTP/1.1\r\n" HOST "Authorization: Bearer " token "\r\n\r\n"
#define GOOD_TOKEN      "0123456789abcdef0123"

static void test_tokens(void **state)
{
	struct response *a;
	struct bench b;
	int fd;

	token_bench(&b);
	assert_int_equal(ask(&b, ASK_WITH(GOOD_TOKEN))->status, 200);
	a = ask(&b, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(a->status, 401);
	assert_non_null(strstr(a->head, "www-authenticate: Bearer\n"));
	assert_non_null(strstr(a->body, "a token is required"));
	assert_int_equal(ask(&b, "GET /open HTTP/1.1\r\n" HOST "\r\n")->status, 200);
	/* the path is looked at first, since it is no secret; a body is not */
	assert_int_equal(ask(&b, "GET /none HTTP/1.1\r\n" HOST "\r\n")->status, 404);
	fd = dial(&b);
	say(fd, ASK_WITH(GOOD_TOKEN)); /* this connection is known from now on */
	assert_int_equal(hear(fd)->status, 200);
	for (int i = 0; i < 10; i++)
		assert_int_equal(ask(&b, ASK_WITH("wrong-wrong-wrong"))->status, 401);
	a = ask(&b, ASK_WITH("wrong-wrong-wrong"));
	assert_int_equal(a->status, 429);
	assert_non_null(strstr(a->head, "retry-after: "));
	/* the right one is let in all the same, and one without a token is told what is missing */
	assert_int_equal(ask(&b, ASK_WITH(GOOD_TOKEN))->status, 200);
	assert_int_equal(ask(&b, "GET /echo HTTP/1.1\r\n" HOST "\r\n")->status, 401);
	/* whoever was known before is not disturbed, nor what is open */
	say(fd, ASK_WITH(GOOD_TOKEN));
	assert_int_equal(hear(fd)->status, 200);
	assert_int_equal(ask(&b, "GET /open HTTP/1.1\r\n" HOST "\r\n")->status, 200);
	close(fd);
	/* nor another address */
	fd = dial_from(&b, "127.0.0.2");
	say(fd, ASK_WITH(GOOD_TOKEN));
	assert_int_equal(hear(fd)->status, 200);
	close(fd);
	bench_stop(&b);
	token_set_free(b.settings.tokens);
}

/* On loopback the kernel says whose socket it is. The control is the same request to a server of
 * somebody else's. */
static void test_owners(void **state)
{
	static const struct {
		const char *fields;
		int as_owner;
	} rows[] = {
		{"", 200},
		{"Authorization: Bearer wrong-wrong-wrong\r\n", 200},
		{"Sec-Fetch-Site: same-origin\r\n", 200},
		{"Sec-Fetch-Site: none\r\n", 200},
		{"Sec-Fetch-Site: cross-site\r\n", 401},
		{"Sec-Fetch-Site: same-site\r\n", 401},
		{"Origin: http://evil.example\r\n", 403},
	};
	const uid_t us[] = {4294967000, geteuid()}, others[] = {geteuid() + 1, 4294967000};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char request[256];

		snprintf(request, sizeof(request), "GET /echo HTTP/1.1\r\n" HOST "%s\r\n",
			rows[i].fields);
		for (int ours = 0; ours < 2; ours++) {
			int expected = ours ? rows[i].as_owner : MAX(rows[i].as_owner, 401);
			struct bench b;

			bench_init(&b);
			setenv("TEST_TOKENS", GOOD_TOKEN, 1);
			assert_int_equal(
				token_set_new(NULL, "TEST_TOKENS", &b.settings.tokens, NULL), 0);
			b.settings.owners = ours ? us : others;
			b.settings.owner_count = 2;
			bench_start(&b);
			assert_int_equal(ask(&b, request)->status, expected);
			assert_int_equal(ask(&b, ASK_WITH(GOOD_TOKEN))->status, 200);
			bench_stop(&b);
			token_set_free(b.settings.tokens);
		}
	}
}

/* 64 connections whose refused request has a body that never comes, or whose body to an open path
 * comes byte by byte, do not keep others of the address out. The control is a request that would
 * be let in: its body is waited for. */
static void test_slow_bodies_hold_no_place(void **state)
{
	static const char *const heads[] = {
		"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nx",
		"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
		"POST /none HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nx",
		"GET /open HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nx",
	};
	int fds[HTTP_PER_PEER];
	struct bench b;

	for (size_t h = 0; h < ARRAY_SIZE(heads); h++) {
		token_bench(&b);
		for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
			fds[i] = dial(&b);
			say(fds[i], heads[h]);
			if (h < 3) {
				assert_int_equal(hear(fds[i])->status, h < 2 ? 401 : 404);
				assert_true(hears_end(fds[i]));
			}
		}
		assert_int_equal(ask(&b, ASK_WITH(GOOD_TOKEN))->status, 200);
		for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
			close(fds[i]);
		bench_stop(&b);
		token_set_free(b.settings.tokens);
	}
	token_bench(&b);
	fds[0] = dial(&b);
	say(fds[0], "POST /echo HTTP/1.1\r\n" HOST "Authorization: Bearer " GOOD_TOKEN
		    "\r\nContent-Length: 5\r\n\r\nhe");
	assert_int_equal(ask(&b, ASK_WITH(GOOD_TOKEN))->status, 200);
	say(fds[0], "llo");
	assert_string_equal(hear(fds[0])->body, "POST /echo? - -|hello");
	close(fds[0]);
	bench_stop(&b);
	token_set_free(b.settings.tokens);
}

static void test_later_replies_and_peers_that_leave(void **state)
{
	struct bench b;
	int fd;

	bench_init(&b);
	bench_start(&b);
	fd = dial(&b);
	say(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\nGET /echo HTTP/1.1\r\n" HOST "\r\n");
	bench_answer(&b);
	assert_string_equal(hear(fd)->body, "waited");
	assert_string_equal(hear(fd)->body, "GET /echo? - -|");
	say(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
	bench_await(&b, 0);
	close(fd); /* before the reply */
	bench_await(&b, 1);
	bench_answer(&b); /* which nobody hears, and nothing breaks */
	assert_int_equal(ask(&b, "GET /echo HTTP/1.1\r\n" HOST "\r\n")->status, 200);
	bench_stop(&b);
}

/* A client that closes only its sending half is answered. */
static void test_half_closed(void **state)
{
	struct bench b;
	int fd;

	bench_init(&b);
	bench_start(&b);
	fd = dial(&b);
	say(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\nGET /open HTTP/1.1\r\n" HOST "\r\n");
	shutdown(fd, SHUT_WR);
	assert_string_equal(hear(fd)->body, "GET /echo? - -|");
	assert_string_equal(hear(fd)->body, "GET /open? - -|");
	assert_true(hears_end(fd));
	close(fd);
	bench_stop(&b);
}

static void test_freed_while_asked(void **state)
{
	struct bench b;
	int fd;

	bench_init(&b);
	bench_start(&b);
	fd = dial(&b);
	say(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
	bench_await(&b, 0);
	bench_stop(&b); /* frees the server first, then replies */
	assert_int_equal(b.gone, 1);
	assert_true(hears_end(fd));
	close(fd);
}

static void drained(void *arg)
{
	struct bench *b = arg;

	loop_stop(b->loop);
}

static void drain(void *arg)
{
	struct bench *b = arg;

	http_server_drain(b->server, drained, b);
}

static void test_drain(void **state)
{
	struct response *a;
	int asked, idle, half;
	struct bench b;

	bench_init(&b);
	bench_start(&b);
	idle = dial(&b);
	say(idle, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(hear(idle)->status, 200);
	half = dial(&b);
	say(half, "GET /echo HT");
	asked = dial(&b);
	say(asked, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
	bench_await(&b, 0);
	assert_int_equal(loop_call(b.loop, drain, &b), 0);
	assert_true(hears_end(idle));
	assert_true(hears_end(half));
	close(idle);
	close(half);
	bench_answer(&b);
	a = hear(asked);
	assert_string_equal(a->body, "waited");
	assert_false(a->keep_alive);
	assert_true(hears_end(asked));
	close(asked);
	pthread_join(b.thread, NULL); /* drained() has stopped the loop */
	assert_int_equal(http_server_stats(b.server).open_connections, 0);
	http_server_free(b.server);
	loop_free(b.loop);
}

static void test_figures(void **state)
{
	struct http_server_stats f;
	struct bench b;
	int fd;

	bench_init(&b);
	bench_start(&b);
	fd = dial(&b);
	say(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
	hear(fd);
	ask(&b, "GET /none HTTP/1.1\r\n" HOST "\r\n");
	f = bench_figures(&b);
	assert_int_equal(f.requests, 2);
	assert_int_equal(f.rejected, 1);
	assert_int_equal(f.connections, 2);
	assert_true(f.open_connections >= 1);
	close(fd);
	bench_stop(&b);
}

static void test_exposure(void **state)
{
	struct token_set *tokens = NULL;
	struct http_server *s = NULL;
	struct errinfo e;
	struct bench b;

	bench_init(&b);
	setenv("TEST_TOKENS", GOOD_TOKEN, 1);
	assert_int_equal(token_set_new(NULL, "TEST_TOKENS", &tokens, NULL), 0);
	b.settings.address = ":0";
	assert_int_equal(http_server_new(b.loop, &b.settings, &s, &e), -EPERM);
	assert_non_null(strstr(e.text, "without TLS"));
	b.settings.plain = true;
	assert_int_equal(http_server_new(b.loop, &b.settings, &s, &e), -EPERM);
	assert_non_null(strstr(e.text, "token"));
	b.settings.tokens = tokens;
	assert_int_equal(http_server_new(b.loop, &b.settings, &s, &e), 0);
	http_server_free(s);
	b.settings.plain = false;
	assert_int_equal(http_server_new(b.loop, &b.settings, &s, &e), -EPERM);
	loop_free(b.loop);
	token_set_free(tokens);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_reply),
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_hosts_and_origins),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_not_now_has_a_time),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_slow_bodies_hold_no_place),
		cmocka_unit_test(test_later_replies_and_peers_that_leave),
		cmocka_unit_test(test_half_closed),
		cmocka_unit_test(test_freed_while_asked),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_exposure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
