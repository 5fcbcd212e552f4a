/* SPDX-License-Identifier: Apache-2.0 */
/* server_h2.h - the parts of HTTP/2: server_h2.c has the session, server_h2_stream.c what a request's
 * fields become, and the way back. */
#pragma once

#include <nghttp2/nghttp2.h>

#include "net/rate.h"
#include "net/server/server_private.h"

/* The fields of the block that is coming. There is one at a time: nothing may stand between its
 * frames. Offsets, because the text moves while it grows. */
struct h2_head {
	struct http_exchange *x; /* NULL: trailers, which are not used */
	uint32_t name_at[HTTP_FIELDS_MAX], value_at[HTTP_FIELDS_MAX];
	size_t count, bytes;
	uint32_t method_at, path_at, authority_at; /* 0: not there */
};

struct h2 {
	struct connection *conn;
	nghttp2_session *session;
	struct h2_head head;
	struct rate resets, controls;
	int32_t reset_by_peer;  /* the stream that the peer has reset just now */
	size_t unsent;          /* bytes of replies not sent yet */
	uint64_t head_since_ns; /* a block of fields is incomplete since; 0: none is */
	struct pace pace;       /* of what is not sent yet */
	bool started, busy, ended;
};

void h2_head_begin(struct h2 *h, struct http_exchange *x);
void h2_head_add(
	struct h2 *h, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len);
void h2_head_spoil(struct h2 *h); /* a field of it cannot be accepted */
/* h2_head_end - the block is complete: @x has its method and fields, and is admitted or refused. */
void h2_head_end(struct h2 *h);

nghttp2_nv h2_nv(const char *name, const char *value);
void h2_reply(struct http_exchange *x, int status, const void *body, size_t len);
int h2_on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg);
/* h2_flush - sends what may be sent. Not from within nghttp2's callbacks. */
void h2_flush(struct connection *c);
