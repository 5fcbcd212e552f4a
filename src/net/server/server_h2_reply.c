/* SPDX-License-Identifier: Apache-2.0 */
/* server_h2_reply.c - replies of HTTP/2: kept until the peer's windows have let them through. See
 * server_h2.h. */
#include "net/server/server_h2.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

nghttp2_nv h2_nv(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

static ssize_t read_reply(nghttp2_session *session, int32_t stream, uint8_t *out, size_t len,
	uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct http_exchange *x = source->ptr;
	struct h2 *h = arg;
	size_t n;

	if (h->conn->dead)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	n = MIN(len, x->reply_len - x->reply_at);
	memcpy(out, x->reply + x->reply_at, n);
	x->reply_at += n;
	h->unsent -= n;
	h->pace.bytes += n;
	if (!h->unsent)
		h->pace.since_ns = 0;
	if (x->reply_at < x->reply_len)
		return (ssize_t)n;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (x->q.grpc) { /* its status comes behind the message */
		nghttp2_nv nv = h2_nv("grpc-status", "0");

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(session, stream, &nv, 1) < 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return (ssize_t)n;
}

static int keep_reply(struct h2 *h, struct http_exchange *x, const void *body, size_t len)
{
	x->reply = malloc(len);
	if (!x->reply)
		return -ENOMEM;
	memcpy(x->reply, body, len);
	x->reply_len = len;
	if (!h->unsent)
		pace_start(&h->pace, server_now_ns());
	h->unsent += len;
	return 0;
}

void h2_reply(struct http_exchange *x, int status, const void *body, size_t len)
{
	struct connection *c = x->conn;
	struct h2 *h = c->state;
	bool bare = exchange_is_head(x) || status == 204 || status == 304 || !len;
	nghttp2_data_provider data = {.source.ptr = x, .read_callback = read_reply};
	char status_text[8], len_text[24];
	nghttp2_nv nv[REPLY_FIELDS + 2];
	size_t n = 0;

	x->replied = true;
	snprintf(status_text, sizeof(status_text), "%d", status);
	snprintf(len_text, sizeof(len_text), "%zu", len);
	nv[n++] = h2_nv(":status", status_text);
	for (size_t i = 0; i < x->field_count; i++)
		nv[n++] = h2_nv(x->fields[i].name, x->fields[i].value);
	if (status != 204 && status != 304 && !x->q.grpc)
		nv[n++] = h2_nv("content-length", len_text);
	if ((!bare && keep_reply(h, x, body, len) < 0) ||
		nghttp2_submit_response(h->session, x->stream, nv, n, bare ? NULL : &data) < 0)
		nghttp2_submit_rst_stream(
			h->session, NGHTTP2_FLAG_NONE, x->stream, NGHTTP2_INTERNAL_ERROR);
	/* Only now: the reply may have been made of the request's body. */
	exchange_drop_body(x);
	connection_look_soon(c);
	if (!h->busy)
		h2_flush(c);
}

/* After a reply to a request that is still being sent: the rest is not wanted. */
int h2_on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (ends && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
		nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0)
		nghttp2_submit_rst_stream(
			session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
	return 0;
}
