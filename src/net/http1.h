/* SPDX-License-Identifier: Apache-2.0 */
/* http1.h - HTTP/1.1 messages out of bytes, for servers (requests) and clients (responses).
 *
 * Bytes in, events out; no I/O and no clock. Whatever two readers of the same bytes could take
 * differently is refused, because that is how requests are smuggled past a check: lines end in CRLF
 * and nothing else, a length is told once and in one way.
 *
 *	struct http1 p;
 *	http1_init(&p, HTTP1_REQUEST);
 *	while (len) {
 *		enum http1_event e = http1_feed(&p, data, len, &used);
 *		data += used, len -= used;
 *		if (e == HTTP1_HEAD)	look at p.method, p.target, p.head; set p.body_max
 *		if (e == HTTP1_DATA)	use p.data, p.data_len
 *		if (e == HTTP1_END)	http1_next(&p)
 *		if (e == HTTP1_ERROR)	answer p.error_status with p.error, and close
 *		if (e == HTTP1_MORE)	wait for bytes
 *	}
 *	http1_done(&p);
 *
 * HTTP1_HEAD and HTTP1_END may come without a byte being used: feed until HTTP1_MORE. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "net/http.h"

enum http1_kind {
	HTTP1_REQUEST,
	HTTP1_RESPONSE,
};

enum http1_event {
	HTTP1_MORE,  /* all bytes were used; the message goes on */
	HTTP1_HEAD,  /* the head is complete */
	HTTP1_DATA,  /* a piece of the body; it lies in the bytes that were fed */
	HTTP1_END,   /* the message is complete; a HTTP1_HEAD came before */
	HTTP1_ERROR, /* and nothing else from now on */
};

struct http1 {
	enum http1_kind kind;
	/* for the caller to set */
	uint64_t body_max; /* HTTP_BODY_MAX at first; looked at after HTTP1_HEAD was returned */
	bool no_body;      /* of a response: it answers HEAD. Before its head is complete */

	/* from HTTP1_HEAD to http1_next() */
	const char *method, *target; /* of a request, as sent */
	int status;                  /* of a response; below 200: another one follows */
	int minor;                   /* HTTP/1.minor */
	struct http_head head;
	bool keep_alive; /* the connection may be used again after this message */
	bool expects_continue;
	bool chunked;
	int64_t content_length; /* -1: not told */

	/* at HTTP1_DATA */
	const char *data;
	size_t data_len;

	/* at HTTP1_ERROR */
	int error_status;  /* what a server answers: 400, 413, 414, 431, 501, 503 or 505 */
	const char *error; /* a sentence without the peer's bytes in it */

	/* private */
	int state;
	struct buf text, line;
	size_t line_start, fields_bytes;
	uint32_t name_at[HTTP_FIELDS_MAX], value_at[HTTP_FIELDS_MAX];
	uint64_t left, body_bytes;
	bool blank_seen;
};

void http1_init(struct http1 *p, enum http1_kind kind);
void http1_done(struct http1 *p);

/* http1_next - ready for the next message on the same connection. Only after HTTP1_END. */
void http1_next(struct http1 *p);

/* http1_take_text - hands out what method, target and head point into, so that they outlive the
 * parser. Once, between HTTP1_HEAD and http1_next(). */
struct buf http1_take_text(struct http1 *p);

/* http1_is_between - whether no byte of a message has come yet (since the start or http1_next()).
 */
bool http1_is_between(const struct http1 *p);

/* http1_feed - takes up to @len bytes; *ret_used says how many. */
enum http1_event http1_feed(struct http1 *p, const char *data, size_t len, size_t *ret_used);

/* http1_eof - the connection has ended: HTTP1_END if that ends the message (a response without a
 * length), else HTTP1_ERROR. Not to be called between messages. */
enum http1_event http1_eof(struct http1 *p);

/* http1_has_token - whether @list ("keep-alive, Upgrade") holds @token, in any case. */
bool http1_has_token(const char *list, const char *token);
