/* SPDX-License-Identifier: Apache-2.0 */
/* client_fixture.h - servers that do what a test says, on the loop of the client that asks them.
 *
 * A server is given a function that runs for every request head (all bytes up to the empty line) of
 * a connection; it may write what it likes, or nothing, and close. */
#pragma once

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "net/client/client.h"
#include "net/loop.h"

struct stub;
struct stub_conn {
	struct stub *stub;
	struct bufferevent *bev;
	struct event *timer;
	int requests, rounds;
};
typedef void stub_fn(struct stub_conn *c, const char *head);

struct stub {
	struct loop *loop;
	struct evconnlistener *listener;
	stub_fn *fn;
	const char *text; /* for fn */
	bool raw;         /* fn runs when a connection begins, with "" */
	SSL_CTX *tls;     /* NULL: plain */
	struct http_endpoint endpoint;
	int connections, requests, open;
	char last[16384]; /* head of the last request */
	void *data;
};

static inline void stub_conn_close(struct stub_conn *c)
{
	c->stub->open--;
	bufferevent_free(c->bev);
	if (c->timer)
		event_free(c->timer);
	free(c);
}

static inline void stub_read(struct bufferevent *bev, void *arg)
{
	struct stub_conn *c = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	size_t len;

	if (c->stub->raw || end.pos < 0)
		return;
	len = (size_t)end.pos + 4;
	assert_true(len < sizeof(c->stub->last));
	evbuffer_remove(in, c->stub->last, len);
	c->stub->last[len] = 0;
	c->requests++;
	c->stub->requests++;
	c->stub->fn(c, c->stub->last);
}

static inline void stub_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		stub_conn_close(arg);
}

static inline void stub_accept(
	struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int len, void *arg)
{
	struct stub *s = arg;
	struct stub_conn *c = calloc(1, sizeof(*c));

	(void)l, (void)sa, (void)len;
	s->connections++;
	s->open++;
	c->stub = s;
	if (s->tls)
		c->bev = bufferevent_openssl_socket_new(loop_base(s->loop), fd, SSL_new(s->tls),
			BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	else
		c->bev = bufferevent_socket_new(loop_base(s->loop), fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(c->bev, stub_read, NULL, stub_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	if (s->raw)
		s->fn(c, "");
}

static inline void stub_start(struct stub *s, struct loop *l, stub_fn *fn, const char *text)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	s->loop = l;
	s->fn = fn;
	s->text = text;
	s->listener = evconnlistener_new_bind(loop_base(l), stub_accept, s,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 512, (struct sockaddr *)&a, sizeof(a));
	assert_non_null(s->listener);
	assert_int_equal(
		getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&a, &len), 0);
	s->endpoint = (struct http_endpoint){
		.tls = s->tls, .host = "127.0.0.1", .port = ntohs(a.sin_port)};
}

static inline void stub_stop(struct stub *s)
{
	evconnlistener_free(s->listener);
	s->listener = NULL;
}

static inline void stub_say(struct stub_conn *c, const char *text)
{
	bufferevent_write(c->bev, text, strlen(text));
}

/* Closes when all that was said has been written. */
static inline void stub_written(struct bufferevent *bev, void *arg)
{
	(void)bev;
	stub_conn_close(arg);
}

static inline void stub_close_after(struct stub_conn *c)
{
	bufferevent_setcb(c->bev, NULL, stub_written, stub_event, c);
	if (!evbuffer_get_length(bufferevent_get_output(c->bev)))
		stub_conn_close(c);
}

/* Ends it by RST. */
static inline void stub_reset(struct stub_conn *c)
{
	struct linger hard = {.l_onoff = 1};

	setsockopt(bufferevent_getfd(c->bev), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	stub_conn_close(c);
}

/* ---- asking ---- */

struct outcome {           /* what a call came to */
	struct loop *loop; /* stopped when *left has come to 0 */
	int *left;
	int told, err, status;
	char text[512], body[4096], location[256], retry_after[64];
	size_t body_len;
	uint64_t sent_ns, first_ns, told_ns;
	int grpc_status;
};

static inline void outcome_note(
	void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct outcome *o = arg;

	o->told++;
	o->err = err;
	o->told_ns = mono_now().ns;
	if (r) {
		const char *location = http_head_get(&r->head, "location");
		const char *retry = http_head_get(&r->head, "retry-after");

		o->status = r->status;
		o->body_len = r->body_len;
		snprintf(o->body, sizeof(o->body), "%s", r->body);
		snprintf(o->location, sizeof(o->location), "%s", location ? location : "");
		snprintf(o->retry_after, sizeof(o->retry_after), "%s", retry ? retry : "");
		o->sent_ns = r->sent_ns;
		o->first_ns = r->first_ns;
	} else {
		snprintf(o->text, sizeof(o->text), "%s", e->text);
	}
	if (o->left && --*o->left == 0)
		loop_stop(o->loop);
}

static inline struct http_ask ask_get(const struct http_endpoint *p)
{
	return (struct http_ask){.endpoint = p,
		.method = "GET",
		.path = "/x",
		.timeout_ns = 5 * NS_PER_S,
		.body_max = 1 << 20};
}

/* Asks and waits until it was told. */
static inline struct outcome ask(struct loop *l, struct http_client *c, const struct http_ask *a)
{
	int left = 1;
	struct outcome o = {.loop = l, .left = &left};

	assert_int_equal(http_ask(c, a, outcome_note, &o, NULL), 0);
	assert_int_equal(o.told, 0);
	assert_int_equal(loop_run(l), 0);
	assert_int_equal(o.told, 1);
	return o;
}

static inline struct outcome ask_place(
	struct loop *l, struct http_client *c, const struct http_endpoint *p)
{
	struct http_ask a = ask_get(p);

	return ask(l, c, &a);
}
