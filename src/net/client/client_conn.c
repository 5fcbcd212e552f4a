/* SPDX-License-Identifier: Apache-2.0 */
/* client_conn.c - one connection: its calls, and bytes to and from its protocol. How it is opened
 * is in client_open.c.
 *
 * Invariants:
 *   1. A connection in client->conns is not CLIENT_CLOSED; one in client->closed is, has no call
 * and no socket, and only its memory is left, so that every function on the stack may still look at
 * its state.
 *   2. A call in c->calls has call->conn == c, and the protocol has begun with it if and only if
 *      the state is CLIENT_OPEN.
 *   3. With no call on it, an open connection waits for the next one for CLIENT_IDLE_NS. */
#include <event2/event.h>

#include "net/client/client_private.h"

#define READ_BYTES  16384 /* a record of TLS at most: nothing stays behind inside OpenSSL */
#define READ_ROUNDS 16    /* then others have their turn */

static void on_event(int fd, short what, void *arg);

/* ---- closing ---- */

void client_conn_free(struct client_conn *c)
{
	buf_done(&c->out);
	free(c);
}

static void event_drop(struct event **e)
{
	if (*e)
		event_free(*e);
	*e = NULL;
}

void client_conn_close(struct client_conn *c)
{
	if (c->state == CLIENT_CLOSED)
		return;
	if (c->lookup)
		client_names_cancel(c->lookup);
	c->lookup = NULL;
	if (c->session)
		c->protocol->close(c);
	c->session = NULL;
	c->state = CLIENT_CLOSED;
	event_drop(&c->event);
	event_drop(&c->timer);
	client_socket_close(&c->socket);
	TAILQ_REMOVE(&c->client->conns, c, link);
	TAILQ_INSERT_TAIL(&c->client->closed, c, link);
	c->client->conn_count--;
	client_dispatch(c->client);
}

/* Whether the server cannot have begun with @call: the connection was a kept one, which servers
 * close when they like, and nothing came back. Then only a GET may have been taken in: asking that
 * twice does no harm. */
static bool may_retry(const struct client_conn *c, const struct http_call *call)
{
	bool harmless = !strcmp(call->method, "GET") || !strcmp(call->method, "HEAD");

	return c->was_kept && !c->got_bytes && !call->retried && (harmless || !call->sent);
}

void client_conn_end_calls(struct client_conn *c, int err, const struct errinfo *e)
{
	struct http_call *call;

	client_conn_close(c);
	while ((call = TAILQ_FIRST(&c->calls))) {
		TAILQ_REMOVE(&c->calls, call, link);
		c->call_count--;
		call->conn = NULL;
		call->in = NULL;
		if (may_retry(c, call))
			client_call_retry(call);
		else
			client_call_end(call, err, e);
	}
}

void client_conn_fail(struct client_conn *c, int err, const char *fmt, ...)
{
	struct errinfo e = {};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.text, sizeof(e.text), fmt, ap);
	va_end(ap);
	client_conn_end_calls(c, err, &e);
}

/* ---- calls ---- */

bool client_conn_has_room(const struct client_conn *c)
{
	return !c->no_more && c->call_count < c->protocol->calls_max;
}

/* A token that others could read on the way is not sent. */
bool client_conn_is_private(const struct client_conn *c, const struct http_call *call)
{
	const struct http_client *client = c->client;

	if (c->endpoint.tls || client->plain_ok || (!client->bearer && !call->has_authorization))
		return true;
	return c->address_next && client_address_is_loopback(&c->addresses.at[c->address_next - 1]);
}

void client_conn_refuse_clear(struct client_conn *c, struct http_call *call)
{
	struct errinfo e;
	int r = errinfo_set(&e, -EPERM,
		"%s is another machine: the token is not sent without TLS; use https://%s, or no token",
		c->socket.endpoint, c->socket.endpoint);

	client_call_end(call, r, &e);
}

static void begin(struct client_conn *c, struct http_call *call)
{
	if (!client_conn_is_private(c, call)) {
		client_conn_refuse_clear(c, call);
		return;
	}
	event_del(c->timer);
	c->got_bytes = false;
	c->protocol->begin(c, call);
}

static void attach(struct client_conn *c, struct http_call *call)
{
	TAILQ_INSERT_TAIL(&c->calls, call, link);
	c->call_count++;
	call->conn = c;
	call->in = &c->calls;
	call->sent = 0;
}

void client_conn_give(struct client_conn *c, struct http_call *call)
{
	attach(c, call);
	if (c->state != CLIENT_OPEN)
		return;
	begin(c, call);
	client_conn_flush(c);
}

/* One place keeps few connections, so that a burst of calls does not leave hundreds open. While
 * calls wait, each is about to be used or to make room. */
static bool is_worth_keeping(const struct client_conn *c)
{
	const struct client_conn *other;
	size_t idle = 0;

	TAILQ_FOREACH (other, &c->client->conns, link)
		idle += other != c && !other->call_count &&
			client_endpoint_equal(&other->endpoint, &c->endpoint);
	return c->state == CLIENT_OPEN && !c->no_more &&
	       (idle < CLIENT_IDLE_ENDPOINT || !TAILQ_EMPTY(&c->client->waiting));
}

void client_conn_leave(struct client_conn *c, struct http_call *call, bool finished)
{
	struct timeval idle = {.tv_sec = CLIENT_IDLE_NS / NS_PER_S};

	TAILQ_REMOVE(&c->calls, call, link);
	c->call_count--;
	call->conn = NULL;
	call->in = NULL;
	if (c->state == CLIENT_OPEN && !finished)
		c->protocol->forget(c, call);
	if (c->call_count || c->state == CLIENT_CLOSED)
		return;
	if (!is_worth_keeping(c)) {
		client_conn_close(c);
		return;
	}
	c->was_kept = true;
	event_add(c->timer, &idle);
	client_dispatch(c->client);
}

/* ---- bytes ---- */

void client_conn_want(struct client_conn *c, short events)
{
	if (c->events == events)
		return;
	c->events = events;
	event_del(c->event);
	event_assign(c->event, c->client->base, c->socket.fd, events | EV_PERSIST, on_event, c);
	event_add(c->event, NULL);
}

/* It is gone: @err 0, an orderly end, or a negative errno, with a sentence if TLS had one. */
static void lost(struct client_conn *c, int err, const struct errinfo *e)
{
	const struct http_call *call;

	if (!err)
		c->protocol->ended(c, c->socket.is_ended_cleanly);
	if (c->state == CLIENT_CLOSED)
		return;
	call = TAILQ_FIRST(&c->calls);
	if (err && e->text[0])
		client_conn_end_calls(c, err, e);
	else if (call && call->response.first_ns)
		client_conn_fail(c, -ECONNRESET,
			"%s closed the connection in the middle of its reply", c->socket.endpoint);
	else
		client_conn_fail(c, -ECONNRESET, "%s closed the connection without a reply%s",
			c->socket.endpoint,
			c->endpoint.tls ? ""
			: c->protocol == &client_h2
				? ". It may not support HTTP/2, which gRPC needs, or may expect TLS: then use https://"
				: ". If it expects TLS, use https://");
}

static void readable(struct client_conn *c)
{
	char data[READ_BYTES];

	for (int i = 0; i < READ_ROUNDS; i++) {
		struct errinfo e = {};
		ssize_t n = client_socket_read(&c->socket, data, sizeof(data), &e);

		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			lost(c, (int)n, &e);
			return;
		}
		c->got_bytes = true;
		c->protocol->input(c, data, (size_t)n);
		if (c->state == CLIENT_CLOSED)
			return;
	}
}

/* The server may have said why before it closed. */
static void write_failed(struct client_conn *c, int err, const struct errinfo *e)
{
	buf_clear(&c->out);
	c->out_sent = 0;
	c->no_more = true;
	readable(c);
	if (c->state != CLIENT_CLOSED)
		lost(c, err, e);
}

void client_conn_flush(struct client_conn *c)
{
	while (c->state == CLIENT_OPEN) {
		struct errinfo e = {};
		struct http_call *call;
		ssize_t n;

		if (c->out_sent == c->out.len) {
			buf_clear(&c->out);
			c->out_sent = 0;
			if (c->protocol->refill)
				c->protocol->refill(c);
			if (c->state != CLIENT_OPEN || !c->out.len)
				break;
		}
		n = client_socket_write(
			&c->socket, c->out.data + c->out_sent, c->out.len - c->out_sent, &e);
		if (n == -EAGAIN)
			break;
		if (n < 0) {
			write_failed(c, (int)n, &e);
			return;
		}
		c->out_sent += (size_t)n;
		TAILQ_FOREACH (call, &c->calls, link) {
			call->sent += (size_t)n;
			call->response.sent_ns = c->socket.sent_ns;
		}
	}
	if (c->state == CLIENT_OPEN) {
		bool write = c->out_sent < c->out.len || c->socket.wants_write;

		client_conn_want(c, write ? EV_READ | EV_WRITE : EV_READ);
	}
}

bool client_conn_is_alive(struct client_conn *c)
{
	if (c->state == CLIENT_OPEN && !c->call_count) {
		readable(c);
		client_conn_flush(c);
	}
	return c->state != CLIENT_CLOSED;
}

/* ---- opening ---- */

void client_conn_opened(struct client_conn *c)
{
	struct http_call *call, *next;
	int r;

	if (c->endpoint.tls && c->protocol == &client_h2 &&
		!client_socket_speaks(&c->socket, c->protocol->alpn)) {
		client_conn_fail(c, -EPROTO,
			"%s does not support HTTP/2, which gRPC needs: check the port, or use HTTP instead of gRPC",
			c->socket.endpoint);
		return;
	}
	c->state = CLIENT_OPEN;
	r = c->protocol->open(c);
	if (r < 0) {
		client_conn_fail(c, r, "%s: %s", c->socket.endpoint, strerror(-r));
		return;
	}
	for (call = TAILQ_FIRST(&c->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		begin(c, call);
		if (c->state != CLIENT_OPEN)
			return;
	}
	client_conn_flush(c);
}

static void on_event(int fd, short what, void *arg)
{
	struct client_conn *c = arg;

	(void)fd;
	switch (c->state) {
	case CLIENT_CONNECTING:
	case CLIENT_HANDSHAKING: client_open_step(c); break;
	case CLIENT_OPEN:
		if (what & EV_READ || c->socket.wants_write)
			readable(c);
		client_conn_flush(c);
		break;
	default: break;
	}
}

/* An address that does not answer, or a connection that nobody has used for long. */
static void on_timer(int fd, short what, void *arg)
{
	struct client_conn *c = arg;

	(void)fd, (void)what;
	if (c->state == CLIENT_CONNECTING)
		client_open_next(c, -ETIMEDOUT);
	else if (!c->call_count)
		client_conn_close(c);
}

int client_conn_new(struct http_call *call, const struct client_protocol *protocol)
{
	struct http_client *client = call->client;
	struct client_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct client_conn){.client = client,
		.protocol = protocol,
		.endpoint = call->endpoint,
		.no_more = call->alone,
		.out = BUF_INIT(HTTP_CLIENT_REQUEST_MAX + 2 * HTTP_HEAD_MAX)};
	TAILQ_INIT(&c->calls);
	client_endpoint_text(c->endpoint_text, &c->endpoint);
	c->socket = (struct client_socket){
		.fd = -1, .host = c->endpoint.host, .endpoint = c->endpoint_text};
	c->event = event_new(client->base, -1, 0, on_event, c);
	c->timer = evtimer_new(client->base, on_timer, c);
	if (!c->event || !c->timer) {
		event_drop(&c->event);
		event_drop(&c->timer);
		client_conn_free(c);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&client->conns, c, link);
	client->conn_count++;
	attach(c, call);
	client_open_begin(c);
	return 0;
}
