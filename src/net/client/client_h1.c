/* SPDX-License-Identifier: Apache-2.0 */
/* client_h1.c - calls over HTTP/1.1, one at a time on a connection.
 *
 * A connection is used again only if both messages ended where both sides think that they did:
 * anything left over would be read as the next call's response. */

#include "net/client/client_private.h"

#define INTERIM_MAX 8 /* responses below 200 before the real one */

static int open_h1(struct client_conn *c)
{
	(void)c;
	return 0;
}

static void begin(struct client_conn *c, struct http_call *call)
{
	const char *fields_end = buf_str(&call->fields) + call->fields.len;
	struct buf *b = &c->out;

	http1_done(&call->parser);
	http1_init(&call->parser, HTTP1_RESPONSE);
	call->parser.no_body = !strcmp(call->method, "HEAD");
	call->interim = 0;
	buf_printf(b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: ingero\r\n", call->method,
		call->path, c->endpoint_text);
	if (call->client->bearer && !call->has_authorization)
		buf_printf(b, "Authorization: Bearer %s\r\n", call->client->bearer);
	if (call->alone)
		buf_puts(b, "Connection: close\r\n");
	if (call->body_len || !strcmp(call->method, "POST") || !strcmp(call->method, "PUT"))
		buf_printf(b, "Content-Type: %s\r\nContent-Length: %zu\r\n", call->type,
			call->body_len);
	if (call->gzip)
		buf_puts(b, "Content-Encoding: gzip\r\n");
	for (const char *name = buf_str(&call->fields); name < fields_end;) {
		const char *value = name + strlen(name) + 1;

		buf_printf(b, "%s: %s\r\n", name, value);
		name = value + strlen(value) + 1;
	}
	buf_puts(b, "\r\n");
	buf_append(b, call->body, call->body_len);
	if (b->err)
		client_conn_fail(c, b->err, "%s: the request is too large", c->endpoint_text);
}

static void finish(struct client_conn *c, struct http_call *call, bool more_came)
{
	struct http1 *p = &call->parser;

	c->no_more |= !p->keep_alive || more_came || c->out_sent < c->out.len;
	call->response.status = p->status;
	call->response.head = p->head;
	client_conn_leave(c, call, true);
	client_call_end(call, 0, NULL);
}

static void fail(struct client_conn *c, struct http_call *call)
{
	const struct http1 *p = &call->parser;

	if (p->error_status == 413)
		client_conn_fail(c, -EMSGSIZE, "%s: the reply exceeds %zu bytes: request less data",
			c->endpoint_text, call->body_max);
	else
		client_conn_fail(
			c, -EPROTO, "invalid HTTP reply from %s: %s", c->endpoint_text, p->error);
}

/* A response below 200 announces another one. */
static bool is_interim(struct client_conn *c, struct http_call *call)
{
	if (call->parser.status >= 200)
		return false;
	if (call->parser.status == 101 || ++call->interim > INTERIM_MAX)
		client_conn_fail(c, -EPROTO, "invalid HTTP reply from %s: %s", c->endpoint_text,
			call->parser.status == 101 ? "unexpected change of protocol"
						   : "too many interim replies");
	return true;
}

/* The plain text of an alert: what a server that expects TLS sends back. */
static bool is_alert(const struct http_call *call, const char *data)
{
	return http1_is_between(&call->parser) && (data[0] == 0x15 || data[0] == 0x16);
}

/* Ours says so in HTTP. */
static bool asks_for_tls(const struct client_conn *c, const struct http1 *p)
{
	const char *upgrade = http_head_get(&p->head, "upgrade");

	return !c->endpoint.tls && p->status == 400 && upgrade && !strncmp(upgrade, "TLS/", 4);
}

static void expects_tls(struct client_conn *c)
{
	client_conn_fail(c, -EPROTOTYPE, "%s expects TLS: use https://, or remove --no-tls",
		c->endpoint_text);
}

static void input(struct client_conn *c, const char *data, size_t len)
{
	struct http_call *call = TAILQ_FIRST(&c->calls);
	size_t used;

	if (!call) { /* nothing was asked */
		client_conn_close(c);
		return;
	}
	call->response.first_ns = call->response.first_ns ?: c->socket.received_ns;
	if (is_alert(call, data)) {
		expects_tls(c);
		return;
	}
	for (;;) {
		struct http1 *p = &call->parser;
		enum http1_event e = http1_feed(p, data, len, &used);

		data += used;
		len -= used;
		if (e == HTTP1_MORE)
			return;
		if (e == HTTP1_ERROR) {
			fail(c, call);
			return;
		}
		if (e == HTTP1_HEAD && asks_for_tls(c, p)) {
			expects_tls(c);
			return;
		}
		if (e == HTTP1_HEAD)
			p->body_max = call->body_max;
		if (e == HTTP1_DATA)
			buf_append(&call->reply, p->data, p->data_len);
		if (e == HTTP1_END) {
			if (!is_interim(c, call)) {
				finish(c, call, len > 0);
				return;
			}
			if (c->state == CLIENT_CLOSED)
				return;
			http1_next(p);
			p->no_body = !strcmp(call->method, "HEAD");
		}
	}
}

/* A reply without a length ends with the connection. Over TLS that end must have been said: whoever
 * sits between could cut a reply short otherwise. */
static void ended(struct client_conn *c, bool clean)
{
	struct http_call *call = TAILQ_FIRST(&c->calls);

	c->no_more = true;
	if (call && clean && !http1_is_between(&call->parser) &&
		http1_eof(&call->parser) == HTTP1_END && call->parser.status >= 200)
		finish(c, call, false);
}

static void forget(struct client_conn *c, struct http_call *call)
{
	(void)call;
	c->no_more = true;
}

static void close_h1(struct client_conn *c)
{
	(void)c;
}

const struct client_protocol client_h1 = {
	.alpn = "\x08http/1.1",
	.calls_max = 1,
	.open = open_h1,
	.begin = begin,
	.input = input,
	.ended = ended,
	.forget = forget,
	.close = close_h1,
};
