/* SPDX-License-Identifier: Apache-2.0 */
/* server_h2.c - HTTP/2 on a connection: many requests at once. See server_private.h, server_h2.h.
 *
 * nghttp2 speaks the protocol; here are the ceilings that it does not know and the way between it,
 * the connection's buffers and the exchanges.
 *
 * Invariants:
 *  1. nghttp2 is never entered twice: from within its callbacks things are only submitted, and sent
 *     when it has returned (busy).
 *  2. A stream's user data is its exchange until the stream is closed; a closed connection has no
 *     exchanges, and its callbacks fail before they look at one.
 *  3. A peer that makes work without asking for anything (resets, pings, settings, empty frames) is
 *     told to calm down and disconnected. */
#include "net/server/server_h2.h"

#include <event2/buffer.h>

#define RESETS_BURST   100
#define RESETS_EACH    (NS_PER_S / 10)
#define CONTROLS_BURST 50
#define CONTROLS_EACH  (NS_PER_S / 10)
#define STREAM_WINDOW  (1 << 20)
#define WINDOW         (4 << 20)

static void calm(struct h2 *h)
{
	if (h->ended)
		return;
	h->ended = true;
	h->conn->server->stats.rejected++;
	nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static struct http_exchange *exchange_of(struct h2 *h, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(h->session, stream);
}

/* ---- requests ---- */

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
	struct h2 *h = arg;

	h->started = true;
	if (hd->type == NGHTTP2_HEADERS)
		h->head_since_ns = server_now_ns();
	else if (hd->type != NGHTTP2_CONTINUATION)
		h->head_since_ns = 0;
	return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h = arg;
	struct http_exchange *x = NULL;

	if (h->conn->dead)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		if (exchange_new(h->conn, &x) < 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		x->stream = frame->hd.stream_id;
		nghttp2_session_set_stream_user_data(session, x->stream, x);
	}
	h2_head_begin(h, x);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	struct h2 *h = arg;

	if (h->conn->dead)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	h2_head_add(h, name, name_len, value, value_len);
	return 0;
}

static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
	const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
	void *arg)
{
	h2_head_spoil(arg);
	return 0;
}

/* dispatch - the request is complete, or will not be waited for. */
static void dispatch(struct http_exchange *x)
{
	if (!x->dispatched)
		exchange_dispatch(x);
}

static void begin_request(struct h2 *h, struct http_exchange *x, bool complete)
{
	const char *expect;

	h2_head_end(h);
	pace_start(&x->pace, server_now_ns());
	if (complete) {
		dispatch(x);
		return;
	}
	expect = http_head_get(&x->q.head, "expect");
	if (x->refused) {
		dispatch(x);
	} else if (expect && strcasecmp(expect, "100-continue") == 0) {
		nghttp2_nv nv = h2_nv(":status", "100");

		nghttp2_submit_headers(
			h->session, NGHTTP2_FLAG_NONE, x->stream, NULL, &nv, 1, NULL);
	}
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
	size_t len, void *arg)
{
	struct h2 *h = arg;
	struct http_exchange *x;

	if (h->conn->dead)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	x = exchange_of(h, stream);
	if (!x || x->dispatched)
		return 0;
	x->pace.bytes += len;
	if (!exchange_add_body(x, data, len))
		dispatch(x);
	return 0;
}

/* makes_work - frames that ask for nothing. */
static bool makes_work(const nghttp2_frame *f)
{
	switch (f->hd.type) {
	case NGHTTP2_SETTINGS:
	case NGHTTP2_PING: return !(f->hd.flags & NGHTTP2_FLAG_ACK);
	case NGHTTP2_PRIORITY: return true;
	case NGHTTP2_DATA: return f->hd.length == 0 && !(f->hd.flags & NGHTTP2_FLAG_END_STREAM);
	default: return false;
	}
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	bool complete = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	uint64_t now = server_now_ns();
	struct h2 *h = arg;
	struct http_exchange *x;

	if (h->conn->dead)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	h->head_since_ns = 0;
	if (makes_work(frame) && !rate_take(&h->controls, now, CONTROLS_BURST, CONTROLS_EACH))
		calm(h);
	if (frame->hd.type == NGHTTP2_RST_STREAM) {
		h->reset_by_peer = frame->hd.stream_id;
		if (!rate_take(&h->resets, now, RESETS_BURST, RESETS_EACH))
			calm(h);
	}
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	x = exchange_of(h, frame->hd.stream_id);
	if (!x)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		begin_request(h, x, complete);
	else if (complete)
		dispatch(x);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
	struct h2 *h = arg;
	struct http_exchange *x = exchange_of(h, stream);

	if (h->conn->dead)
		return 0;
	/* What the peer makes us reset counts like what it resets itself. */
	if (code != NGHTTP2_NO_ERROR && h->reset_by_peer != stream &&
		!rate_take(&h->resets, server_now_ns(), RESETS_BURST, RESETS_EACH))
		calm(h);
	if (!x)
		return 0;
	if (h->head.x == x)
		h->head.x = NULL;
	h->unsent -= x->reply_len - x->reply_at;
	if (!h->unsent)
		h->pace.since_ns = 0;
	exchange_gone(x);
	return 0;
}

/* ---- the session ---- */

/* settle - after anything that may have begun or ended requests. */
static void settle(struct connection *c)
{
	bool idle = TAILQ_EMPTY(&c->exchanges);
	struct h2 *h = c->state;
	enum phase phase = !h->started ? PHASE_HEAD : idle ? PHASE_IDLE : PHASE_WORK;

	if (c->dead || c->closing)
		return;
	if ((!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session)) ||
		(c->retired && idle)) {
		connection_finish(c);
		return;
	}
	if (phase != c->phase)
		connection_phase(c, phase);
	if (phase == PHASE_WORK || h->head_since_ns)
		connection_look_soon(c);
}

void h2_flush(struct connection *c)
{
	struct h2 *h = c->state;

	while (!c->dead && connection_pending(c) < OUTPUT_PAUSE) {
		const uint8_t *data;
		ssize_t n;

		h->busy = true;
		n = nghttp2_session_mem_send(h->session, &data);
		h->busy = false;
		if (n < 0)
			connection_close(c);
		if (n <= 0)
			break;
		bufferevent_write(c->bev, data, (size_t)n);
	}
	settle(c);
}

static void h2_readable(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct evbuffer_iovec v;
	struct h2 *h = c->state;

	while (!c->dead && !c->closing && connection_pending(c) < OUTPUT_PAUSE &&
		evbuffer_peek(in, -1, NULL, &v, 1) > 0 && v.iov_len) {
		ssize_t n;

		h->busy = true;
		n = nghttp2_session_mem_recv(h->session, v.iov_base, v.iov_len);
		h->busy = false;
		if (n < 0) {
			/* What nghttp2 has to say about it is sent first. */
			h2_flush(c);
			connection_finish(c);
			return;
		}
		evbuffer_drain(in, (size_t)n);
		h2_flush(c);
	}
	if (c->eof && !c->dead)
		connection_close(c); /* nobody reads half-closed HTTP/2 */
}

static void h2_writable(struct connection *c)
{
	h2_flush(c);
	h2_readable(c); /* which may have waited for room */
}

static int h2_begin(struct connection *c)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP_STREAMS},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX},
	};
	struct h2 *h = calloc(1, sizeof(*h));
	nghttp2_session_callbacks *cb = NULL;
	int r = -ENOMEM;

	if (h && nghttp2_session_callbacks_new(&cb) == 0) {
		h->conn = c;
		nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
		nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
		nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
		nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
		nghttp2_session_callbacks_set_on_frame_send_callback(cb, h2_on_frame_send);
		nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
		r = nghttp2_session_server_new(&h->session, cb, h);
	}
	nghttp2_session_callbacks_del(cb);
	if (r != 0) {
		free(h);
		return -ENOMEM;
	}
	c->state = h;
	if (nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)) <
			0 ||
		nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, WINDOW) < 0)
		connection_close(c);
	return 0;
}

static void h2_end(struct connection *c)
{
	struct h2 *h = c->state;

	nghttp2_session_del(h->session);
	free(h);
}

static void h2_late(struct connection *c)
{
	struct h2 *h = c->state;

	nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
	h2_flush(c);
	connection_finish(c);
}

static void h2_retire(struct connection *c)
{
	struct h2 *h = c->state;

	nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
		nghttp2_session_get_last_proc_stream_id(h->session), NGHTTP2_NO_ERROR, NULL, 0);
	if (!h->busy)
		h2_flush(c);
}

/* refuse_slow - requests whose body comes too slowly. */
static void refuse_slow(struct connection *c, uint64_t now_ns)
{
	struct http_exchange *x, *next;

	for (x = TAILQ_FIRST(&c->exchanges); x; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x->dispatched || !connection_is_slow(c, &x->pace, now_ns))
			continue;
		exchange_refuse(x, 408, "timeout while reading the body");
		dispatch(x);
		return; /* the list may be another one now; the next look goes on */
	}
}

static bool h2_tick(struct connection *c, uint64_t now_ns)
{
	struct h2 *h = c->state;

	if (h->head_since_ns && now_ns > h->head_since_ns + c->server->limits.head_ns)
		connection_close(c);
	else if (connection_is_slow(c, &h->pace, now_ns))
		connection_close(c); /* it keeps its window shut */
	if (c->dead)
		return false;
	refuse_slow(c, now_ns);
	return !TAILQ_EMPTY(&c->exchanges) || h->head_since_ns;
}

const struct protocol server_h2 = {
	.begin = h2_begin,
	.end = h2_end,
	.readable = h2_readable,
	.writable = h2_writable,
	.reply = h2_reply,
	.late = h2_late,
	.retire = h2_retire,
	.tick = h2_tick,
};
