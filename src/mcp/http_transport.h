/* SPDX-License-Identifier: Apache-2.0 */
/* http_transport.h - the protocol over HTTP: from a request's method, fields and body to the reply's. No I/O.
 *
 * Nothing is remembered between requests: no sessions are handed out, and no stream can be opened
 * (GET is 405). A request whose tool tells of its progress is answered with a stream of events that
 * ends with the reply, every other one with a JSON object. */
#pragma once

#include "base/buf.h"
#include "mcp/dispatcher.h"

#define HTTP_TRANSPORT_REPLY_MAX (4u << 20)

struct http_transport_request {
	const char *method;
	const char *body;
	size_t body_len;
	/* The value of a field, its name in lower case; NULL: it is not there. */
	const char *(*field)(const void *arg, const char *name);
	const void *field_arg;
	void *arg; /* of its calls; NULL: the registry's */
};

struct http_transport_reply {
	int status;
	const char *type;  /* NULL: there is no body */
	const char *allow; /* value of the field Allow; NULL: none */
	struct buf body;   /* done with buf_done() */
};

/* http_transport_answer - may run in any thread, and for as long as the tool takes. */
void http_transport_answer(const struct dispatcher *t, const struct http_transport_request *q,
	struct http_transport_reply *ret);
