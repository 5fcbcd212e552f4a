/* SPDX-License-Identifier: Apache-2.0 */
/* server_fixture.h - a server on a thread of its own, and a client that speaks to it byte by byte.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "net/address.h"
#include "net/http1.h"
#include "net/server/server.h"

#define PATIENCE_MS 20000 /* beyond it something hangs */

struct bench {
	struct loop *loop;
	struct http_server *server;
	pthread_t thread;
	union address address;
	struct http_limits limits;
	struct http_server_settings settings;
	/* of the handlers */
	struct http_exchange *waiting;
	int gone;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* ---- routes ---- */

static inline void bench_note(struct bench *b, struct http_exchange *waiting, int gone)
{
	pthread_mutex_lock(&b->lock);
	b->waiting = waiting;
	b->gone += gone;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

static inline void route_echo(void *arg, struct http_exchange *x, const struct http_request *q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8 << 20);
	const char *probe = http_head_get(&q->head, "x-probe");

	buf_printf(&b, "%s %s?%s %s %s|", q->method, q->path, q->query, probe ? probe : "-",
		q->subject ? q->subject : "-");
	buf_append(&b, q->body, q->body_len);
	http_reply_field(x, "X-Two", "one\r\nX-Injected: yes");
	http_reply(x, 200, "text/plain", b.data, b.len);
}

static inline void route_large(void *arg, struct http_exchange *x, const struct http_request *q)
{
	static char body[4 << 20];

	http_reply(x, 200, NULL, body, sizeof(body));
}

static inline void on_gone(void *arg)
{
	struct bench *b = arg;

	bench_note(b, b->waiting, 1);
}

/* Answered when the test says so: bench_answer(). */
static inline void route_wait(void *arg, struct http_exchange *x, const struct http_request *q)
{
	http_on_gone(x, on_gone, arg);
	bench_note(arg, x, 0);
}

/* /fail?STATUS or /fail?STATUS,SECONDS */
static inline void route_fail(void *arg, struct http_exchange *x, const struct http_request *q)
{
	const char *after = q->query ? strchr(q->query, ',') : NULL;

	if (after)
		http_reply_field(x, "retry-after", after + 1);
	http_reply_error(x, q->query ? atoi(q->query) : 500, "not now");
}

static const struct http_route bench_routes[] = {
	{"GET", "/echo", .handler = route_echo},
	{"POST", "/echo", .handler = route_echo},
	{"GET", "/tree/", .handler = route_echo},
	{"GET", "/tree/leaf", .handler = route_wait},
	{"POST", "/small", route_echo, .body_max = 10},
	{"GET", "/open", route_echo, .open = true},
	{"GET", "/fail", route_fail, .open = true},
	{"GET", "/large", .handler = route_large},
	{"GET", "/wait", .handler = route_wait},
	{.method = NULL},
};

/* ---- life ---- */

static inline void *bench_run(void *arg)
{
	loop_run(arg);
	return NULL;
}

/* Short enough to wait for, long enough for a busy machine: tests that are not about time do not
 * come near them. */
static inline void bench_init(struct bench *b)
{
	*b = (struct bench){.limits = HTTP_LIMITS};
	b->settings.address = "127.0.0.1:0";
	b->settings.routes = bench_routes;
	b->settings.limits = &b->limits;
	b->settings.arg = b;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	assert_int_equal(loop_new(&b->loop), 0);
}

static inline void bench_start(struct bench *b)
{
	struct errinfo e = {0};

	if (http_server_new(b->loop, &b->settings, &b->server, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(address_parse(http_server_address(b->server), &b->address, NULL), 0);
	assert_int_equal(pthread_create(&b->thread, NULL, bench_run, b->loop), 0);
}

static inline void bench_stop(struct bench *b)
{
	loop_stop(b->loop);
	pthread_join(b->thread, NULL);
	if (b->server)
		http_server_free(b->server);
	if (b->waiting) /* its connection is gone, but it is owed a reply */
		http_reply(b->waiting, 200, NULL, "", 0);
	loop_free(b->loop);
}

/* bench_await - until a handler waits, or @gone peers have gone. */
static inline struct http_exchange *bench_await(struct bench *b, int gone)
{
	struct http_exchange *x;

	pthread_mutex_lock(&b->lock);
	while (gone ? b->gone < gone : !b->waiting)
		pthread_cond_wait(&b->changed, &b->lock);
	x = b->waiting;
	pthread_mutex_unlock(&b->lock);
	return x;
}

static inline void bench_answer_now(void *arg)
{
	struct bench *b = arg;
	struct http_exchange *x = b->waiting;

	bench_note(b, NULL, 0);
	http_reply(x, 200, "text/plain", "waited", 6);
}

static inline void bench_answer(struct bench *b)
{
	bench_await(b, 0);
	assert_int_equal(loop_call(b->loop, bench_answer_now, b), 0);
}

struct bench_question {
	struct bench *b;
	struct http_server_stats stats;
	bool done;
};

static inline void bench_look(void *arg)
{
	struct bench_question *q = arg;

	q->stats = http_server_stats(q->b->server);
	pthread_mutex_lock(&q->b->lock);
	q->done = true;
	pthread_cond_broadcast(&q->b->changed);
	pthread_mutex_unlock(&q->b->lock);
}

static inline struct http_server_stats bench_figures(struct bench *b)
{
	struct bench_question q = {.b = b};

	assert_int_equal(loop_call(b->loop, bench_look, &q), 0);
	pthread_mutex_lock(&b->lock);
	while (!q.done)
		pthread_cond_wait(&b->changed, &b->lock);
	pthread_mutex_unlock(&b->lock);
	return q.stats;
}

/* ---- the client ---- */

static inline int dial_from(const struct bench *b, const char *source)
{
	int fd = socket(b->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	union address from;

	assert_true(fd >= 0);
	if (source) {
		assert_int_equal(address_parse_host(source, &from), 0);
		assert_int_equal(bind(fd, &from.any, address_len(&from)), 0);
	}
	assert_int_equal(connect(fd, &b->address.any, address_len(&b->address)), 0);
	return fd;
}

static inline int dial(const struct bench *b)
{
	return dial_from(b, NULL);
}

static inline void say_bytes(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0) /* the server may have had enough */
			return;
		p += n;
		len -= (size_t)n;
	}
}

static inline void say(int fd, const char *text)
{
	say_bytes(fd, text, strlen(text));
}

/* hear_some - what comes next: the number of bytes, 0 at the end. */
static inline size_t hear_some(int fd, void *out, size_t size)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, PATIENCE_MS) != 1)
		fail_msg("the server says nothing");
	n = recv(fd, out, size, 0);
	return n > 0 ? (size_t)n : 0;
}

static inline bool hears_end(int fd)
{
	char bytes[4096];

	while (hear_some(fd, bytes, sizeof(bytes)))
		;
	return true;
}

struct response {
	int status; /* 0: the connection has ended */
	char head[4096], body[65536];
	size_t body_len; /* all of it, even if body holds less */
	bool keep_alive;
};

/* hear - one response. Bytes are read one by one in heads, so that the next one's are left. */
static inline struct response *hear_to(int fd, const char *method)
{
	static struct response a;
	struct http1 p;
	enum http1_event e = HTTP1_MORE;

	a = (struct response){0};
	http1_init(&p, HTTP1_RESPONSE);
	p.body_max = 64 << 20;
	p.no_body = strcmp(method, "HEAD") == 0;
	while (e != HTTP1_END) {
		char bytes[16384];
		size_t at = 0, used,
		       n = hear_some(
			       fd, bytes, a.status && p.left > 1 ? MIN(p.left, sizeof(bytes)) : 1);

		if (!n) {
			http1_done(&p);
			a.status = 0;
			return &a;
		}
		do {
			e = http1_feed(&p, bytes + at, n - at, &used);
			at += used;
			if (e == HTTP1_ERROR)
				fail_msg("not a response: %s", p.error);
			if (e == HTTP1_HEAD) {
				struct buf b = BUF_INIT(sizeof(a.head) - 1);

				for (size_t i = 0; i < p.head.count; i++)
					buf_printf(&b, "%s: %s\n", p.head.field[i].name,
						p.head.field[i].value);
				snprintf(a.head, sizeof(a.head), "%s", buf_str(&b));
				buf_done(&b);
				a.status = p.status;
				a.keep_alive = p.keep_alive;
			}
			if (e == HTTP1_DATA) {
				if (a.body_len + p.data_len < sizeof(a.body))
					memcpy(a.body + a.body_len, p.data, p.data_len);
				a.body_len += p.data_len;
			}
		} while (e != HTTP1_MORE && e != HTTP1_END);
	}
	http1_done(&p);
	return &a;
}

static inline struct response *hear(int fd)
{
	return hear_to(fd, "GET");
}

#define HOST "Host: localhost\r\n"

/* ask - on a connection of its own, which the server closes. */
static inline struct response *ask(const struct bench *b, const char *request)
{
	int fd = dial(b);
	struct response *a;

	say(fd, request);
	a = hear(fd);
	close(fd);
	return a;
}
