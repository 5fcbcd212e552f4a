/* SPDX-License-Identifier: Apache-2.0 */
/* client_h2.c - gRPC calls over HTTP/2, several at a time on a connection.
 *
 * nghttp2 must not lose its session while it works on it. So its callbacks only note things in the
 * calls; settle(), after each of its two entry points, ends the calls whose stream has closed.
 *
 * What a server may make us keep: HTTP_HEAD_MAX bytes of fields and body_max + 5 of data a call;
 * the windows below on top of that, in nghttp2. It limits floods of settings, pings and
 * continuations itself. */
#include <nghttp2/nghttp2.h>

#include "net/grpc.h"
#include "net/client/client_private.h"

#define CALLS_MAX     32
#define STREAM_WINDOW (1 << 20) /* the default of 64 KiB stalls large replies */
#define WHOLE_WINDOW  (4 << 20)
#define REFILL_BYTES  65536
#define INTERIM_MAX   8

struct grpc_call {
	int32_t stream; /* 0: not begun */
	size_t body_sent;
	unsigned char frame[GRPC_FRAME];
	size_t head_bytes;
	int interim, http_status;
	int status; /* gRPC's; -1: none came */
	bool is_grpc, is_closed;
	uint32_t closed_by; /* HTTP/2's error code */
	char message[GRPC_MESSAGE_MAX];
	const char *reply; /* in call->reply */
	size_t reply_len;
	int err; /* negative: what the call fails with, and why */
	const char *fault;
};

/* ---- what comes in ---- */

static struct http_call *call_of(nghttp2_session *session, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(session, stream);
}

/* The call will fail with this; its stream is given up. */
static int give_up(struct http_call *call, int err, const char *fault)
{
	struct grpc_call *g = call->grpc;

	if (!g->err) {
		g->err = err;
		g->fault = fault;
	}
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int parse_http_status(const char *s, size_t len)
{
	int status = 0;

	for (size_t i = 0; i < len; i++)
		status = status * 10 + (s[i] - '0'); /* nghttp2 has checked: three digits */
	return status;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	struct http_call *call = call_of(session, frame->hd.stream_id);
	struct client_conn *c = arg;
	const char *v = (const char *)value;
	struct grpc_call *g;

	(void)flags;
	if (!call)
		return 0;
	g = call->grpc;
	call->response.first_ns = call->response.first_ns ?: c->socket.received_ns;
	g->head_bytes += name_len + value_len;
	if (g->head_bytes > HTTP_HEAD_MAX)
		return give_up(call, -EPROTO, "header fields too long");
	if (name_len == 7 && !memcmp(name, ":status", 7)) {
		g->http_status = parse_http_status(v, value_len);
		if (g->http_status < 200 && ++g->interim > INTERIM_MAX)
			return give_up(call, -EPROTO, "too many interim replies");
	} else if (name_len == 12 && !memcmp(name, "content-type", 12)) {
		g->is_grpc = value_len >= 16 && !memcmp(v, "application/grpc", 16);
	} else if (name_len == 11 && !memcmp(name, "grpc-status", 11)) {
		g->status = grpc_status_parse(v, value_len);
	} else if (name_len == 12 && !memcmp(name, "grpc-message", 12)) {
		grpc_message_decode(v, value_len, g->message, sizeof(g->message));
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
	size_t len, void *arg)
{
	struct http_call *call = call_of(session, stream);

	(void)flags, (void)arg;
	if (!call || call->grpc->err)
		return 0;
	/* The page of an ordinary web server is not kept. */
	if (!call->grpc->is_grpc)
		return 0;
	buf_append(&call->reply, data, len);
	if (call->reply.err) {
		give_up(call, call->reply.err == -ENOBUFS ? -EMSGSIZE : -ENOMEM,
			"reply too large: request less data");
		buf_clear(&call->reply);
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
	}
	return 0;
}

static int on_closed(nghttp2_session *session, int32_t stream, uint32_t error_code, void *arg)
{
	struct http_call *call = call_of(session, stream);

	(void)arg;
	if (call) {
		call->grpc->is_closed = true;
		call->grpc->closed_by = error_code;
	}
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct client_conn *c = arg;

	(void)session;
	c->no_more |= frame->hd.type == NGHTTP2_GOAWAY;
	return 0;
}

/* ---- ending calls ---- */

static void end_with(struct http_call *call, int err, const char *fault)
{
	char endpoint[CLIENT_ENDPOINT_TEXT];
	struct errinfo e;

	errinfo_set(&e, err, "invalid gRPC reply from %s: %s",
		client_endpoint_text(endpoint, &call->endpoint), fault);
	client_call_end(call, err, &e);
}

/* A status of HTTP alone: a proxy, or no gRPC server at all. */
static void end_with_http(struct http_call *call)
{
	struct grpc_call *g = call->grpc;

	g->status = grpc_status_of_http(g->http_status);
	snprintf(g->message, sizeof(g->message), "HTTP status %d without a gRPC status",
		g->http_status);
	client_call_end(call, 0, NULL);
}

static void end_call(struct client_conn *c, struct http_call *call)
{
	struct grpc_call *g = call->grpc;
	bool refused = g->closed_by == NGHTTP2_REFUSED_STREAM;
	const char *fault;
	int r;

	client_conn_leave(c, call, true);
	if (g->err) {
		end_with(call, g->err, g->fault);
	} else if (g->status < 0 && refused && !call->retried) {
		client_call_retry(call); /* the server says that it has not begun with it */
	} else if (g->status < 0 && g->http_status && g->http_status != 200) {
		end_with_http(call);
	} else if (g->status < 0) {
		end_with(call, g->closed_by ? -ECONNRESET : -EPROTO,
			g->closed_by ? nghttp2_http2_strerror(g->closed_by)
				     : "no status in the reply");
	} else if (g->status == GRPC_OK && !g->is_grpc) {
		end_with(call, -EPROTO, "not a gRPC reply: check the port");
	} else if (g->status == GRPC_OK) {
		r = grpc_unframe(
			buf_str(&call->reply), call->reply.len, &g->reply, &g->reply_len, &fault);
		if (r < 0)
			end_with(call, r, fault);
		else
			client_call_end(call, 0, NULL);
	} else {
		client_call_end(call, 0, NULL);
	}
}

static void settle(struct client_conn *c)
{
	struct http_call *call, *next;

	for (call = TAILQ_FIRST(&c->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->grpc && call->grpc->is_closed)
			end_call(c, call);
	}
	if (c->state != CLIENT_OPEN || nghttp2_session_want_read(c->session) ||
		nghttp2_session_want_write(c->session))
		return;
	if (c->call_count)
		client_conn_fail(c, -EPROTO, "HTTP/2 protocol error of %s", c->endpoint_text);
	else
		client_conn_close(c);
}

void client_h2_send(struct http_call *call)
{
	const struct grpc_call *g = call->grpc;

	if (call->err)
		call->grpc_done(call->arg, 0, "", NULL, 0, call->err, &call->errinfo);
	else
		call->grpc_done(call->arg, g->status, g->message, g->reply, g->reply_len, 0,
			&call->errinfo);
}

/* ---- what goes out ---- */

static ssize_t on_body(nghttp2_session *session, int32_t stream, uint8_t *out, size_t size,
	uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct http_call *call = call_of(session, stream);
	struct grpc_call *g;
	size_t n = 0;

	(void)source, (void)arg;
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* it has left */
	g = call->grpc;
	while (n < size && g->body_sent < GRPC_FRAME)
		out[n++] = g->frame[g->body_sent++];
	if (g->body_sent >= GRPC_FRAME) {
		size_t at = g->body_sent - GRPC_FRAME, left = MIN(call->body_len - at, size - n);

		memcpy(out + n, call->body + at, left);
		g->body_sent += left;
		n += left;
	}
	if (g->body_sent == call->body_len + GRPC_FRAME)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

struct fields {
	nghttp2_nv nv[12 + CLIENT_FIELDS];
	size_t count;
};

static void add(struct fields *f, const char *name, const char *value)
{
	if (f->count < ARRAY_SIZE(f->nv))
		f->nv[f->count++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
			.value = (uint8_t *)(uintptr_t)value,
			.namelen = strlen(name),
			.valuelen = strlen(value)};
}

static int submit(struct client_conn *c, struct http_call *call)
{
	const char *end = buf_str(&call->fields) + call->fields.len;
	nghttp2_data_provider body = {.read_callback = on_body};
	uint64_t now_ns = mono_now().ns;
	_cleanup_buf_ struct buf bearer = BUF_INIT(CLIENT_FIELDS_MAX);
	char timeout[GRPC_TIMEOUT_MAX];
	struct fields f = {};

	add(&f, ":method", "POST");
	add(&f, ":scheme", c->endpoint.tls ? "https" : "http");
	add(&f, ":path", call->path);
	add(&f, ":authority", c->endpoint_text);
	add(&f, "te", "trailers");
	add(&f, "content-type", "application/grpc");
	add(&f, "user-agent", "ingero");
	if (call->gzip)
		add(&f, "grpc-encoding", "gzip");
	add(&f, "grpc-timeout",
		grpc_timeout(timeout, call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 0));
	if (call->client->bearer && !call->has_authorization) {
		buf_printf(&bearer, "Bearer %s", call->client->bearer);
		add(&f, "authorization", buf_str(&bearer));
	}
	for (const char *name = buf_str(&call->fields); name < end;) {
		const char *value = name + strlen(name) + 1;

		add(&f, name, value);
		name = value + strlen(value) + 1;
	}
	return nghttp2_submit_request(c->session, NULL, f.nv, f.count, &body, call);
}

static void begin(struct client_conn *c, struct http_call *call)
{
	call->grpc = call->grpc ?: malloc(sizeof(*call->grpc));
	if (call->grpc) {
		*call->grpc = (struct grpc_call){.status = -1};
		grpc_frame(call->grpc->frame, call->body_len, call->gzip);
		buf_clear(&call->reply);
		call->reply.max = call->body_max + GRPC_FRAME;
		call->grpc->stream = submit(c, call);
	}
	if (!call->grpc || call->grpc->stream < 0)
		end_with(call, -ENOMEM, "out of memory");
}

static void refill(struct client_conn *c)
{
	const uint8_t *data;
	ssize_t n = 1;

	while (n > 0 && c->out.len < REFILL_BYTES) {
		n = nghttp2_session_mem_send(c->session, &data);
		if (n > 0)
			buf_append(&c->out, data, (size_t)n);
	}
	if (n < 0 || c->out.err)
		client_conn_fail(c, -ENOMEM, "%s: out of memory for the request", c->endpoint_text);
	else
		settle(c);
}

/* Other protocols that are found on ports, by their first bytes. */
static const char *other_protocol(const char *data, size_t len)
{
	if (len >= 5 && !memcmp(data, "HTTP/", 5))
		return "uses HTTP/1.1, but gRPC needs HTTP/2: check the port (usually 4317)";
	if (len && (data[0] == 0x15 || data[0] == 0x16))
		return "expects TLS: use https://";
	return NULL;
}

static void input(struct client_conn *c, const char *data, size_t len)
{
	const char *other = c->is_greeted ? NULL : other_protocol(data, len);
	ssize_t n;

	c->is_greeted = true;
	if (other) {
		client_conn_fail(c, -EPROTO, "%s %s", c->endpoint_text, other);
		return;
	}
	n = nghttp2_session_mem_recv(c->session, (const uint8_t *)data, len);
	if (n < 0)
		client_conn_fail(c, n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO,
			"HTTP/2 protocol error of %s: %s", c->endpoint_text,
			nghttp2_strerror((int)n));
	else
		settle(c);
}

/* ---- the connection ---- */

static int session_new(struct client_conn *c, nghttp2_session **ret)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option = NULL;
	int r = nghttp2_session_callbacks_new(&callbacks);

	if (r)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_closed);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	r = nghttp2_option_new(&option);
	if (!r) {
		nghttp2_option_set_max_outbound_ack(option, 100);
		nghttp2_option_set_max_settings(option, 16);
		r = nghttp2_session_client_new2(ret, callbacks, c, option);
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return r ? -ENOMEM : 0;
}

static int open_h2(struct client_conn *c)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX},
	};
	nghttp2_session *session;
	int r = session_new(c, &session);

	if (r < 0)
		return r;
	c->session = session;
	if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)) ||
		nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, WHOLE_WINDOW))
		return -ENOMEM;
	return 0;
}

static void ended(struct client_conn *c, bool clean)
{
	(void)clean; /* HTTP/2 says itself where a reply ends */
	c->no_more = true;
}

static void forget(struct client_conn *c, struct http_call *call)
{
	int32_t stream = call->grpc ? call->grpc->stream : 0;

	if (stream <= 0)
		return;
	nghttp2_session_set_stream_user_data(c->session, stream, NULL);
	nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
	client_conn_flush(c);
}

static void close_h2(struct client_conn *c)
{
	nghttp2_session_del(c->session);
}

const struct client_protocol client_h2 = {
	.alpn = "\x02h2",
	.calls_max = CALLS_MAX,
	.open = open_h2,
	.begin = begin,
	.refill = refill,
	.input = input,
	.ended = ended,
	.forget = forget,
	.close = close_h2,
};
