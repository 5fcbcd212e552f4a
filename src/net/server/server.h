/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - an HTTP server: HTTP/1.1 and HTTP/2, with or without TLS, on one loop.
 *
 * A request goes through these in order, each with a JSON body {"error": "…"} when it fails: the
 * ceilings of http.h; Host (and Origin, if there is one) must be an allowed name (403); the route
 * (404, 405); the token unless the route is open or an owner asks on loopback (401); then the
 * what the body is encoded with (415); then the route's handler, which replies at once or later. A
 * refused request is answered without waiting for its body.
 *
 * A route with .grpc is a unary call of gRPC: q->body is the message without its frame, inflated. The
 * same functions reply to it: http_reply() with 200 and the message, or http_reply_error() with a
 * status of HTTP, which becomes one of gRPC (grpc.h) with the text as its message and, if the field
 * retry-after is set, RetryInfo. Further fields are metadata. That goes for whatever refuses a call
 * before its handler, too. */
#pragma once

#include <sys/types.h>

#include "base/errinfo.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/pki/tls.h"
#include "net/server/token.h"

struct http_server;
struct http_exchange; /* one request that waits for its reply */

typedef void http_handler(void *arg, struct http_exchange *x, const struct http_request *q);

struct http_route {
	const char *method; /* NULL ends the table. GET answers HEAD too */
	const char *path;   /* exact, or a prefix if it ends in '/' and is longer than that */
	http_handler *handler;
	bool open;           /* needs no token */
	bool grpc;           /* POST, over HTTP/2, with one of gRPC's content types */
	size_t body_max;     /* of its bytes as sent; 0: HTTP_BODY_MAX */
	size_t inflated_max; /* of a body in gzip, inflated; 0: gzip is not understood (415) */
	void *arg;           /* what its handler is given; NULL: the server's */
};

/* Told of each request that is refused before its handler, with the status; may add fields to the
 * reply. Path and query are "" if the head was not read to its end. */
typedef void http_refused(
	void *arg, struct http_exchange *x, const struct http_request *q, int status);

/* Writes the body of an error reply, as JSON; false: it is to be {"error": "…"} as ever. */
typedef bool http_error_body(struct buf *b, const char *path, int status, const char *text);

/* Time and number limits. A server without any has those of http.h; tests have shorter ones. */
struct http_limits {
	uint64_t handshake_ns, head_ns, idle_ns, age_ns, linger_ns;
	unsigned body_rate; /* bytes a second, both ways */
	unsigned per_peer, total;
	size_t bodies; /* bytes of request bodies at once, of all connections (503) */
};
#define HTTP_LIMITS                                                                                \
	((struct http_limits){                                                                     \
		.handshake_ns = 5 * NS_PER_S,                                                      \
		.head_ns = HTTP_HEAD_NS,                                                           \
		.idle_ns = HTTP_IDLE_NS,                                                           \
		.age_ns = HTTP_AGE_NS,                                                             \
		.linger_ns = NS_PER_S,                                                             \
		.body_rate = HTTP_BODY_RATE,                                                       \
		.per_peer = HTTP_PER_PEER,                                                         \
		.total = HTTP_TOTAL,                                                               \
		.bodies = HTTP_BODIES_MAX,                                                         \
	})

struct http_server_settings {
	const char *address; /* "127.0.0.1:8080", "[::1]:8080", ":8080" (every address), "host:0" */
	const char *flag;    /* the one that chose it, "--addr"; NULL: none did */
	struct tls *tls;     /* NULL: plain. The caller's, as everything here */
	struct token_set *tokens; /* NULL: none is asked for */
	const uid_t *owners;      /* users of this machine who need none on loopback */
	size_t owner_count;
	const char *const *names;        /* allowed in Host and Origin besides loopback's names and
					    the address listened on (allow.h says in which forms);
					    NULL-terminated or NULL */
	const struct http_route *routes; /* copied */
	void *arg;                       /* of the handlers */
	http_refused *refused;           /* NULL: nobody wants to know */
	http_error_body *error_body;     /* NULL: {"error": "…"} */
	bool plain;  /* without TLS beyond loopback: the user has asked for exactly that */
	bool anyone; /* likewise without tokens or client certificates */
	const struct http_limits *limits; /* NULL: HTTP_LIMITS */
};

/* http_server_new - listens. An address that is not loopback needs tokens or client certificates,
 * and TLS unless @plain is set: -EPERM with a sentence otherwise. -EADDRINUSE: somebody else has
 * the port. */
int http_server_new(struct loop *l, const struct http_server_settings *s, struct http_server **ret,
	struct errinfo *reterr);
DECLARE_FREE(struct http_server, http_server_free) /* closes all connections. Not from a handler */

/* http_server_address - "127.0.0.1:43211": where it listens, with the port that was chosen. */
const char *http_server_address(const struct http_server *s);

/* http_server_drain - stop listening, let replies under way end, then call @done. */
void http_server_drain(struct http_server *s, loop_fn *done, void *arg);

struct http_server_stats {
	uint64_t requests, rejected; /* rejected: over a ceiling, or not allowed */
	uint64_t connections, open_connections;
	uint64_t late;    /* connections that took longer than they may: half-open, slow */
	uint64_t evicted; /* closed to make room for others of the same address */
	uint64_t bombs;   /* bodies that would have inflated to too many bytes; rejected, too */
	size_t bodies;    /* bytes of request bodies that are held now */
};
struct http_server_stats http_server_stats(const struct http_server *s);

/* http_reply - answers @x and ends it: exactly one http_reply() for each. @body is copied; @type
 * NULL is application/json. Every reply carries nosniff, no-store and no referrer;
 * http_reply_field() before it adds a field or replaces one of these. */
void http_reply_field(struct http_exchange *x, const char *name, const char *value);
void http_reply(
	struct http_exchange *x, int status, const char *type, const void *body, size_t len);
void http_reply_error(struct http_exchange *x, int status, const char *fmt, ...) _printf_(3, 4);

/* http_on_gone - @fn runs if the client goes away before the reply (one that closes its sending
 * half over HTTP/1.1 without TLS looks like that, too), or the server is freed: then
 * @x must still be replied to, within @fn or later (nobody may be there to read it). */
void http_on_gone(struct http_exchange *x, loop_fn *fn, void *arg);
