/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_grpc.c - replies to gRPC's calls. See server_private.h.
 *
 * HTTP's own status is 200 whatever happens; gRPC's comes behind the message, or in the head of a
 * reply without one ("Trailers-Only"). A peer that speaks gRPC never sees a page or JSON. */
#include "net/server/server_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void set_error(struct http_exchange *x, int status, const char *text)
{
	_cleanup_buf_ struct buf message = BUF_INIT(GRPC_MESSAGE_MAX), detail = BUF_INIT(2048);
	const char *after = exchange_get_field(x, "retry-after");
	int code = grpc_status_for_http(status);
	char number[16];

	snprintf(number, sizeof(number), "%d", code);
	grpc_message_encode(&message, text);
	exchange_set_field(x, "grpc-status", number, true);
	exchange_set_field(x, "grpc-message", buf_str(&message), true);
	if (!after)
		return;
	grpc_retry_encode(&detail, code, text, strtoul(after, NULL, 10));
	if (!detail.err)
		exchange_set_field(x, "grpc-status-details-bin", buf_str(&detail), true);
}

void exchange_reply_grpc(
	struct http_exchange *x, int status, const char *text, const void *body, size_t len)
{
	_cleanup_buf_ struct buf framed = BUF_INIT(GRPC_FRAME + len);
	struct connection *c = x->conn;
	unsigned char frame[GRPC_FRAME];

	if (status == 200) {
		grpc_frame(frame, len, false);
		buf_append(&framed, frame, sizeof(frame));
		buf_append(&framed, body, len);
		if (framed.err) {
			status = 503;
			text = "out of memory for this reply";
			buf_done(&framed);
		}
	}
	if (status != 200)
		set_error(x, status, text);
	exchange_set_field(x, "content-type", "application/grpc", true);
	connection_enter(c);
	c->protocol->reply(x, 200, framed.data, framed.len);
	connection_leave(c);
}
