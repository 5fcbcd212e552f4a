/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_body.c - the body of a request: from the bytes that come, without gRPC's frame and inflated,
 * to what its handler is given. See server_private.h.
 *
 * Invariants:
 *  1. Nothing is sized by what a peer says, only by what it has sent; what gzip makes of that has its
 *     own ceiling (http.h).
 *  2. held_bytes is what this body counts in the connection's sum and in the server's: all bodies
 *     together have a ceiling, however many connections share it. A window for inflating counts. */
#include "net/server/server_private.h"

#include <strings.h>

#define RETRY_S "1" /* in which other bodies are likely to have been dealt with */

size_t exchange_body_max(const struct http_exchange *x)
{
	size_t max = x->route && x->route->body_max ? x->route->body_max : HTTP_BODY_MAX;

	return x->q.grpc ? max + GRPC_FRAME : max;
}

void exchange_admit_body(struct http_exchange *x)
{
	const char *encoding =
		http_head_get(&x->q.head, x->q.grpc ? "grpc-encoding" : "content-encoding");
	const struct http_route *r = x->route;

	if (r->grpc != x->q.grpc) {
		exchange_refuse(x, 415, "%s",
			r->grpc ? "this path is a gRPC call: use HTTP/2 and application/grpc"
				: "this path is not a gRPC call");
		return;
	}
	if (encoding && *encoding && strcasecmp(encoding, "identity") != 0) {
		x->gzip = r->inflated_max && (strcasecmp(encoding, "gzip") == 0 ||
						     strcasecmp(encoding, "x-gzip") == 0);
		if (!x->gzip) {
			bool gzip = x->route->inflated_max;

			exchange_refuse(x, 415, "the body's encoding is not supported: %s",
				gzip ? "use gzip or none" : "use none");
			if (x->q.grpc)
				http_reply_field(x, "grpc-accept-encoding",
					gzip ? "identity,gzip" : "identity");
			else
				http_reply_field(x, "accept-encoding", gzip ? "gzip" : "identity");
			return;
		}
	}
	x->body = BUF_INIT(
		x->gzip ? MAX(r->inflated_max, exchange_body_max(x)) : exchange_body_max(x));
}

/* take_frame - what precedes a message; *@data and *@len are moved behind it. */
static bool take_frame(struct http_exchange *x, const char **data, size_t *len)
{
	size_t n = MIN(*len, GRPC_FRAME - x->frame_len);

	memcpy(x->frame + x->frame_len, *data, n);
	x->frame_len += n;
	*data += n;
	*len -= n;
	if (n == 0 || x->frame_len < GRPC_FRAME)
		return true;
	if (x->frame[0] > 1)
		exchange_refuse(x, 400, "not a gRPC message");
	else if (x->frame[0] == 1 && !x->gzip)
		exchange_refuse(x, 400, "compressed message without grpc-encoding");
	else if (grpc_frame_len(x->frame) > exchange_body_max(x) - GRPC_FRAME)
		exchange_refuse(x, 413, "the message is too long");
	else
		x->gzip = x->frame[0] == 1;
	return !x->refused;
}

static void append(struct http_exchange *x, const char *data, size_t len)
{
	const char *fault = "out of memory for this request";
	int r = 0;

	if (x->gzip && !x->inflate)
		r = inflate_new(&x->inflate);
	if (r == 0 && x->inflate) {
		r = inflate_feed(x->inflate, data, len, &x->body, &fault);
	} else if (r == 0) {
		buf_append(&x->body, data, len);
		r = x->body.err;
	}
	x->server->stats.bombs += r == -E2BIG;
	if (r < 0)
		exchange_refuse(x, r == -E2BIG ? 413 : r == -EBADMSG ? 400 : 503, "%s", fault);
}

/* count - what is held, and whether that may be. */
static void count(struct http_exchange *x)
{
	struct http_server *s = x->server;
	struct connection *c = x->conn;
	size_t held = x->body.len + (x->inflate ? INFLATE_BYTES : 0);
	size_t alone = x->body.max + INFLATE_BYTES;

	size_t of_peer = peers_hold(s->peers, x->address, x->held_bytes, held);

	c->bodies += held - x->held_bytes;
	s->stats.bodies += held - x->held_bytes;
	x->held_bytes = held;
	if (c->bodies > MAX((size_t)BODIES_MAX, alone))
		exchange_refuse(x, 503, "too many requests in flight on this connection");
	else if (of_peer >
		 MAX(s->limits.bodies / 2, alone)) /* one slow sender leaves room for others */
		exchange_refuse(x, 503, "too many requests in flight from this address");
	else if (s->stats.bodies > s->limits.bodies)
		exchange_refuse(x, 503, "too many requests in flight");
	if (x->refused)
		http_reply_field(x, "retry-after", RETRY_S);
}

bool exchange_add_body(struct http_exchange *x, const void *data, size_t len)
{
	const char *p = data;

	if (len > exchange_body_max(x) - x->wire_bytes) {
		exchange_refuse(x, 413, "the body is too long");
		return false;
	}
	x->wire_bytes += len;
	if (x->q.grpc && !take_frame(x, &p, &len))
		return false;
	if (x->q.grpc && len && x->wire_bytes - GRPC_FRAME > grpc_frame_len(x->frame)) {
		exchange_refuse(x, 400, "more than one message");
		return false;
	}
	if (len)
		append(x, p, len);
	if (!x->refused)
		count(x);
	return !x->refused;
}

void exchange_end_body(struct http_exchange *x)
{
	if (x->q.grpc && (x->frame_len < GRPC_FRAME ||
				 x->wire_bytes - GRPC_FRAME < grpc_frame_len(x->frame)))
		exchange_refuse(x, 400, x->wire_bytes ? "the message is truncated" : "no message");
	else if (x->inflate && !inflate_is_complete(x->inflate))
		exchange_refuse(x, 400, "the body ends in the middle of its gzip stream");
	if (x->inflate)
		inflate_free(TAKE(x->inflate));
	if (!x->refused && x->conn && x->held_bytes)
		count(x); /* less by the window */
}

void exchange_drop_body(struct http_exchange *x)
{
	buf_done(&x->body);
	if (x->inflate)
		inflate_free(TAKE(x->inflate));
	if (x->conn)
		x->conn->bodies -= x->held_bytes;
	if (x->server) {
		x->server->stats.bodies -= x->held_bytes;
		peers_hold(x->server->peers, x->address, x->held_bytes, 0);
	}
	x->held_bytes = 0;
}
