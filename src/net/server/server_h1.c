/* SPDX-License-Identifier: Apache-2.0 */
/* server_h1.c - HTTP/1.1 on a connection: one request after the other. See server_private.h.
 *
 * The next request is looked at when the one before has been answered and most of the answer is on
 * its way, so that replies are in order and whoever sends without reading is not read from. */
#include "net/server/server_private.h"

#include <event2/buffer.h>

#include "net/http1.h"

#define PIECE 16384 /* bytes that are given to the parser at once */

struct h1 {
	struct http1 parser;
	struct http_exchange *x; /* the request that is coming, or being answered */
	bool answering;          /* it is complete */
	bool running;            /* requests are being read further up the stack */
	bool last;               /* the connection ends with this reply */
};

static int h1_begin(struct connection *c)
{
	struct h1 *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	http1_init(&h->parser, HTTP1_REQUEST);
	c->state = h;
	return 0;
}

static void h1_end(struct connection *c)
{
	struct h1 *h = c->state;

	http1_done(&h->parser);
	free(h);
}

/* put_head - the status line and fields of a reply. */
static void put_head(struct connection *c, const struct http_exchange *x, int status, size_t len)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	struct h1 *h = c->state;

	evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\n", status, http_status_text(status));
	for (size_t i = 0; i < x->field_count; i++)
		evbuffer_add_printf(out, "%s: %s\r\n", x->fields[i].name, x->fields[i].value);
	if (status != 204 && status != 304)
		evbuffer_add_printf(out, "content-length: %zu\r\n", len);
	if (h->last)
		evbuffer_add_printf(out, "connection: close\r\n");
	else if (h->parser.minor == 0)
		evbuffer_add_printf(out, "connection: keep-alive\r\n");
	evbuffer_add(out, "\r\n", 2);
}

static void read_requests(struct connection *c);

static void h1_reply(struct http_exchange *x, int status, const void *body, size_t len)
{
	struct connection *c = x->conn;
	struct h1 *h = c->state;
	bool bare = exchange_is_head(x) || status == 204 || status == 304;

	/* Requests that came before an end of input are still answered. */
	h->last |= c->retired || !h->parser.keep_alive ||
		   (c->eof && !evbuffer_get_length(bufferevent_get_input(c->bev)));
	put_head(c, x, status, len);
	if (!bare && len)
		bufferevent_write(c->bev, body, len);
	exchange_free(x);
	h->x = NULL;
	h->answering = false;
	if (h->last) {
		connection_finish(c);
		return;
	}
	http1_next(&h->parser);
	connection_phase(c, PHASE_IDLE);
	if (!h->running)
		read_requests(c);
}

void server_h1_refuse(struct connection *c, int status, const char *why)
{
	struct h1 *h = c->state;

	h->last = true;
	if (!h->x && exchange_new(c, &h->x) < 0) {
		connection_close(c);
		return;
	}
	exchange_refuse(h->x, status, "%s", why);
	if (c->server->tls && !c->tls)
		http_reply_field(h->x, "upgrade", "TLS/1.3, HTTP/1.1"); /* for programs */
	h->answering = true;
	exchange_dispatch(h->x);
}

/* body_is_missing - whether that of a request that was refused would have to be waited for. It is
 * answered instead and the connection closed: whoever dribbles a body that nobody wants would hold one of
 * its address's connections for as long as it likes. */
static bool body_is_missing(struct connection *c)
{
	const struct http1 *p = &((struct h1 *)c->state)->parser;
	size_t here = evbuffer_get_length(bufferevent_get_input(c->bev));

	return p->chunked || (p->content_length > 0 && (uint64_t)p->content_length > here);
}

static void begin_request(struct connection *c)
{
	struct h1 *h = c->state;
	struct http1 *p = &h->parser;
	bool has_body = p->chunked || p->content_length > 0;
	struct http_exchange *x;

	if (exchange_new(c, &x) < 0) {
		connection_close(c);
		return;
	}
	h->x = x;
	x->text = http1_take_text(p);
	x->q.method = p->method;
	x->q.head = p->head;
	exchange_admit(x, p->target, NULL);
	p->body_max = exchange_body_max(x);
	if (!has_body)
		return;
	if (x->refused && (p->expects_continue || body_is_missing(c))) {
		h->last = true;
		h->answering = true;
		exchange_dispatch(x);
		return;
	}
	connection_phase(c, PHASE_BODY);
	if (p->expects_continue && p->minor > 0 &&
		(uint64_t)MAX(p->content_length, (int64_t)0) <= p->body_max)
		evbuffer_add_printf(
			bufferevent_get_output(c->bev), "HTTP/1.1 100 Continue\r\n\r\n");
}

static void take_event(struct connection *c, enum http1_event e)
{
	struct h1 *h = c->state;
	struct http1 *p = &h->parser;

	switch (e) {
	case HTTP1_HEAD: begin_request(c); break;
	case HTTP1_DATA:
		c->body.bytes += p->data_len;
		if (!h->x->refused && !exchange_add_body(h->x, p->data, p->data_len)) {
			h->last = true;
			h->answering = true;
			exchange_dispatch(h->x);
		}
		break;
	case HTTP1_END:
		h->answering = true;
		connection_phase(c, PHASE_WORK);
		exchange_dispatch(h->x);
		break;
	case HTTP1_ERROR: server_h1_refuse(c, p->error_status, p->error); break;
	case HTTP1_MORE: break;
	}
}

/* read_piece - gives the parser what is there, up to the next event. False: there is no more. */
static bool read_piece(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct h1 *h = c->state;
	struct evbuffer_iovec v = {0};
	size_t used = 0;
	enum http1_event e;

	evbuffer_peek(in, PIECE, NULL, &v, 1);
	if (!v.iov_len && http1_is_between(&h->parser))
		return false;
	if (http1_is_between(&h->parser) && c->phase == PHASE_IDLE)
		connection_phase(c, PHASE_HEAD);
	e = http1_feed(&h->parser, v.iov_len ? v.iov_base : "", v.iov_len, &used);
	if (e != HTTP1_DATA)
		evbuffer_drain(in, used);
	take_event(c, e);
	if (e == HTTP1_DATA) /* its bytes lie in the buffer */
		evbuffer_drain(in, used);
	return e != HTTP1_MORE || evbuffer_get_length(in) > 0;
}

/* read_end - the peer sends no more. What has been asked is answered all the same: it may have
 * closed its sending half only. */
static void read_end(struct connection *c)
{
	struct h1 *h = c->state;

	if (h->answering) {
		if (h->x->gone) {
			loop_fn *gone = h->x->gone;

			h->x->gone = NULL;
			gone(h->x->gone_arg);
		}
	} else if (http1_is_between(&h->parser)) {
		connection_finish(c);
	} else {
		http1_eof(&h->parser);
		server_h1_refuse(c, 400, "the connection was closed in the middle of a request");
	}
}

static void read_requests(struct connection *c)
{
	struct h1 *h = c->state;

	h->running = true;
	while (!c->dead && !c->closing && !h->answering && connection_pending(c) < OUTPUT_PAUSE)
		if (!read_piece(c))
			break;
	h->running = false;
	if (c->eof && !c->dead && !c->closing && connection_pending(c) < OUTPUT_PAUSE)
		read_end(c);
}

static void h1_late(struct connection *c)
{
	struct h1 *h = c->state;

	if (h->answering || (c->phase != PHASE_BODY && http1_is_between(&h->parser)))
		connection_close(c); /* idle, or nothing has ever come: nobody waits for a word */
	else
		server_h1_refuse(c, 408,
			c->phase == PHASE_BODY ? "timeout while reading the body"
					       : "timeout while reading the header");
}

static void h1_retire(struct connection *c)
{
	struct h1 *h = c->state;

	if (c->closing)
		return; /* its last reply is on the way */
	if (!h->answering && http1_is_between(&h->parser))
		connection_finish(c);
	else if (!h->answering && c->server->draining)
		connection_close(c);
}

const struct protocol server_h1 = {
	.begin = h1_begin,
	.end = h1_end,
	.readable = read_requests,
	.writable = read_requests,
	.reply = h1_reply,
	.late = h1_late,
	.retire = h1_retire,
};
