/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - what requests and replies are, whatever version of HTTP carries them. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"

/* Ceilings (docs/adr/0006): a peer that exceeds one is answered with a status, if possible, and
 * disconnected. */
#define HTTP_LINE_MAX   8192  /* bytes of the request line */
#define HTTP_HEAD_MAX   16384 /* bytes of all fields */
#define HTTP_FIELDS_MAX 64
#define HTTP_BODY_MAX   (1u << 20)           /* of a request, unless a route says otherwise */
#define HTTP_HEAD_NS    (5 * NS_PER_S)       /* from the first byte, or the connection's begin */
#define HTTP_IDLE_NS    (60 * NS_PER_S)      /* between requests */
#define HTTP_BODY_RATE  1024                 /* bytes a second at least, after HTTP_HEAD_NS */
#define HTTP_AGE_NS     (30 * 60 * NS_PER_S) /* of a connection, +- 10 % */
#define HTTP_PER_PEER   64           /* connections of one address that have shown no valid token */
#define HTTP_TOTAL      12000        /* connections */
#define HTTP_STREAMS    100          /* requests at once on one HTTP/2 connection */
#define HTTP_BODIES_MAX (256u << 20) /* bytes of request bodies that a server holds at once */

struct http_field {
	const char *name; /* in lower case */
	const char *value;
};

struct http_head { /* fields of a request or reply, in order */
	struct http_field field[HTTP_FIELDS_MAX];
	size_t count;
};

/* http_head_get - the value of @name (lower case); NULL if it is not there. */
const char *http_head_get(const struct http_head *h, const char *name);

struct http_request {       /* valid until the exchange has been replied to */
	const char *method; /* "GET" */
	const char *path;   /* decoded, without the query: "/api/v1/ops" */
	const char *query;  /* as sent, without '?'; "" if none */
	struct http_head head;
	const char *body;
	size_t body_len;
	const char *peer;    /* address of the other end, as text */
	const char *subject; /* of the certificate that it has shown; NULL: none */
	uint64_t asker;      /* the same for all requests of one address, token and certificate */
	/* a number for the token, or else the certificate, that it has shown, the same whatever its
	 * address and in every run of the server; 0: neither */
	uint64_t credential;
	bool admitted; /* who asks has been let in: on a route that needs it, always */
	bool grpc;     /* a call of gRPC: body is its message */
};

/* http_query_get - decodes the value of @name in @query into @out; *ret_found says if it is there.
 * -EINVAL: badly encoded, -ENOBUFS: longer than @size allows. */
int http_query_get(const char *query, const char *name, char *out, size_t size, bool *ret_found);

/* http_unescape - decodes %XX (and '+' as a blank if @form) of @s into @out. Its length, -EINVAL
 * (badly encoded, or a NUL in it), or -ENOBUFS. */
int http_unescape(const char *s, size_t len, bool form, char *out, size_t size);

/* http_escape - appends @s with what has a meaning in URLs escaped. */
void http_escape(struct buf *b, const char *s);

const char *http_status_text(int status); /* "Not Found" */

/* What a request line or :path asks for. */
struct http_target {
	char *path;      /* decoded; begins with '/', or is "*" */
	char *query;     /* as sent; "" if none */
	char *authority; /* of "http://host:port/path"; NULL if there is none */
};

/* http_target_parse - splits @text in place; @ret points into it. -EINVAL: not a target, bad escapes,
 * control characters, or a path that climbs ("/../"). */
int http_target_parse(char *text, struct http_target *ret);

/* Gzip undone piece by piece, as it comes from a stranger, and made in one. No I/O.
 *
 * A few bytes can be told to become gigabytes. What comes out has a ceiling (the buffer's), and once
 * INFLATE_FREE bytes are out it may not be more than INFLATE_RATIO times what went in: a bomb is
 * found out long before it fills the buffer. Ordinary telemetry inflates 5 to 60 times, nothing
 * but zeros 1030 times. */

#define INFLATE_RATIO 200
#define INFLATE_FREE  (1u << 20) /* bytes that may come out whatever the ratio */
#define INFLATE_BYTES (48 << 10) /* what one holds besides its output: mostly a window of 32 KiB */

struct inflate;

int inflate_new(struct inflate **ret);
DECLARE_FREE(struct inflate, inflate_free)

/* inflate_feed - appends what @data becomes to @out. -E2BIG: more than @out's ceiling or the ratio
 * allows; -EBADMSG: not gzip, damaged, or something follows its end; -ENOMEM. *ret_fault is then a
 * sentence. */
int inflate_feed(
	struct inflate *z, const void *data, size_t len, struct buf *out, const char **ret_fault);

/* inflate_is_complete - whether the end of the stream has come, with its checksum. */
bool inflate_is_complete(const struct inflate *z);

/* inflate_undo - the opposite: appends all of @data as gzip to @out. -ENOMEM, -ENOBUFS. */
int inflate_undo(const void *data, size_t len, struct buf *out);
