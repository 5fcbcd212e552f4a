/* SPDX-License-Identifier: Apache-2.0 */
/* server_h2_stream.c - the fields of a request, and the way back: see server_h2.h. nghttp2 has checked that pseudo-fields are there once, names
 * are in lower case and nothing of HTTP/1.1's connection is among them.
 *
 * A block over a ceiling is read to its end (the tables that compress it must stay in step), but
 * nothing more of it is kept. */

#include "net/server/server_h2.h"

#define FIELD_OVERHEAD 32 /* bytes that a field counts besides its text (RFC 9113, 6.5.2) */

/* ---- what a request's fields become ---- */

void h2_head_begin(struct h2 *h, struct http_exchange *x)
{
	h->head = (struct h2_head){.x = x};
	if (x)
		buf_putc(&x->text, 0); /* so that no offset is 0 */
}

/* put - a string at the end of the text; where it begins. */
static uint32_t put(struct http_exchange *x, const uint8_t *s, size_t len)
{
	uint32_t at = (uint32_t)x->text.len;

	buf_append(&x->text, s, len);
	buf_putc(&x->text, 0);
	return at;
}

static bool is_name(const uint8_t *name, size_t len, const char *wanted)
{
	return len == strlen(wanted) && memcmp(name, wanted, len) == 0;
}

static bool over_ceiling(struct h2 *h, const uint8_t *name, size_t name_len, size_t value_len)
{
	struct h2_head *d = &h->head;

	if (is_name(name, name_len, ":path")) {
		if (value_len > HTTP_LINE_MAX)
			exchange_refuse(d->x, 414, "the path is too long");
		return value_len > HTTP_LINE_MAX;
	}
	d->bytes += name_len + value_len + FIELD_OVERHEAD;
	if (d->bytes > HTTP_HEAD_MAX)
		exchange_refuse(d->x, 431, "the header fields are too long");
	else if (d->count == HTTP_FIELDS_MAX)
		exchange_refuse(d->x, 431, "too many header fields");
	return d->x->refused;
}

void h2_head_add(
	struct h2 *h, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len)
{
	struct h2_head *d = &h->head;

	/* Also of a head that is refused: its sender waits for a status of gRPC. */
	if (d->x && is_name(name, name_len, "content-type"))
		d->x->q.grpc = grpc_is_type((const char *)value, value_len);
	if (!d->x || d->x->refused || over_ceiling(h, name, name_len, value_len))
		return;
	if (is_name(name, name_len, ":method")) {
		d->method_at = put(d->x, value, value_len);
	} else if (is_name(name, name_len, ":path")) {
		d->path_at = put(d->x, value, value_len);
	} else if (is_name(name, name_len, ":authority")) {
		d->authority_at = put(d->x, value, value_len);
	} else if (name[0] != ':') {
		d->name_at[d->count] = put(d->x, name, name_len);
		d->value_at[d->count] = put(d->x, value, value_len);
		d->count++;
	}
}

void h2_head_spoil(struct h2 *h)
{
	if (h->head.x && !h->head.x->refused)
		exchange_refuse(h->head.x, 400, "invalid character in a header field");
}

static const char *text_at(const struct http_exchange *x, uint32_t at)
{
	return at ? x->text.data + at : NULL;
}

void h2_head_end(struct h2 *h)
{
	struct h2_head *d = &h->head;
	struct http_exchange *x = d->x;
	const char *path, *authority, *host;

	d->x = NULL;
	if (x->text.err)
		exchange_refuse(x, 503, "out of memory for this request");
	if (x->refused)
		return;
	for (size_t i = 0; i < d->count; i++)
		x->q.head.field[i] =
			(struct http_field){text_at(x, d->name_at[i]), text_at(x, d->value_at[i])};
	x->q.head.count = d->count;
	x->q.method = text_at(x, d->method_at);
	path = text_at(x, d->path_at);
	authority = text_at(x, d->authority_at);
	host = http_head_get(&x->q.head, "host");
	if (!x->q.method || !path)
		exchange_refuse(x, 400, "the request has no method or path");
	else if (authority && host && strcmp(authority, host) != 0)
		exchange_refuse(x, 400, "the request has two different hosts");
	else
		exchange_admit(x, path, authority);
	if (!x->refused && h->unsent > REPLIES_MAX)
		exchange_refuse(x, 503, "too many unread replies on this connection");
}

/* ---- replies: kept until the peer's windows have let them through ---- */

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
