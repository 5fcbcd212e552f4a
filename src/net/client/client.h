/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - asks HTTP servers, many at once, from one loop.
 *
 * Connections are kept for the next call to the same place. Redirects are not followed. A call ends
 * exactly once: with a response, or with a sentence why there is none. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/pki/tls.h"

struct http_client;
struct http_call;

struct http_client_settings {
	struct tls *tls;    /* for https, the caller's; NULL: with the system's authorities */
	const char *bearer; /* sent with every call; NULL: none */
	bool plain_ok;      /* the bearer may travel without TLS to other machines too */
};

#define HTTP_CLIENT_CONNECTIONS 512  /* open at once; further calls wait, within their time */
#define HTTP_CLIENT_CALLS       4096 /* begun and not ended: -ENOBUFS from http_ask() beyond */
#define HTTP_CLIENT_REQUEST_MAX (64u << 20) /* bytes of a request's body: -EMSGSIZE beyond */

int http_client_new(struct loop *l, const struct http_client_settings *s, struct http_client **ret,
	struct errinfo *reterr);
/* http_client_free - ends its calls without telling. May be called where a call is told. */
DECLARE_FREE(struct http_client, http_client_free)

struct http_endpoint { /* where to */
	bool tls;
	char host[256]; /* a name or an address, without brackets */
	uint16_t port;
};

/* http_endpoint_parse - "gpu1:8080", "https://gpu1:8080", "http://[::1]:8080", "::1"; without a scheme
 * @tls decides, without a port @port (0: there must be one). A path other than "/" is not allowed:
 * -EINVAL with a sentence. */
int http_endpoint_parse(const char *text, bool tls, uint16_t port, struct http_endpoint *ret,
	struct errinfo *reterr);

struct http_response {
	int status;
	struct http_head head;
	const char *body;
	size_t body_len;
	/* CLOCK_MONOTONIC: just before the end of the request was handed to the kernel; when the
	 * kernel took in the first bytes of the response, however busy this loop was then */
	uint64_t sent_ns, first_ns;
};

/* @err 0 and @r, or a negative errno and a sentence that names host and port: -ETIMEDOUT,
 * -ECONNREFUSED, -EHOSTUNREACH, -ECONNRESET (closed too early), -ENOENT (no such host), -EPROTO
 * (not HTTP, or TLS on our side only), -EPROTOTYPE (TLS on its side only), -EKEYREJECTED (TLS: not
 * trusted), -EMSGSIZE (over body_max),
 * -EPERM (the bearer would travel in the clear), …
 *
 * @r is valid during the call. A connection that was kept from an earlier call and turns out to be
 * closed before a byte came back is replaced once, quietly, if the request is a GET or HEAD, or if
 * nothing of it was sent. */
typedef void http_done(void *arg, const struct http_response *r, int err, const struct errinfo *e);

struct http_ask {
	const struct http_endpoint *endpoint;
	const char *method, *path; /* path with its query, escaped */
	const char *type;          /* of the body; NULL: application/json */
	const void *body;          /* copied */
	size_t body_len;
	bool gzip;                       /* the body is */
	const struct http_field *fields; /* further ones; count of them */
	size_t field_count;
	uint64_t timeout_ns; /* for all of it */
	size_t body_max;     /* of the response */
	bool alone;          /* on a connection of its own */
};

/* http_ask - begins a call; @done runs on the loop, never from within. @ret_call may be NULL; what
 * it is given is valid until @done. A field named authorization replaces the bearer. -EINVAL: a
 * method, path or field that cannot be sent. */
int http_ask(struct http_client *c, const struct http_ask *a, http_done *done, void *arg,
	struct http_call **ret_call);
void http_call_cancel(struct http_call *call); /* @done will not run */

/* ---- gRPC ---- */

/* @status is gRPC's (0 is OK), @message decoded and the server's words: escape it where it is
 * shown; @err as above if there was none. A reply without gRPC's status but with one of HTTP is
 * given the status that gRPC's rules make of it. */
typedef void grpc_done(void *arg, int status, const char *message, const void *reply, size_t len,
	int err, const struct errinfo *e);

/* grpc_ask - one unary call over HTTP/2, by TLS with ALPN h2 or in the clear with prior knowledge.
 * @a->path is "/package.Service/Method", @a->body one message without its frame. */
int grpc_ask(struct http_client *c, const struct http_ask *a, grpc_done *done, void *arg);

/* ---- fetches one small file by https, in a loop of its own ---- */

#define HTTPS_FETCH_REDIRECTS 10

/* https_fetch - appends what @url holds to @b, whose ceiling is the largest file. Only https is asked, also after redirects, of which
 * there may be HTTPS_FETCH_REDIRECTS; @timeout_ns is for all of it. @ca: PEM of authorities to trust;
 * NULL: the system's. A sentence that names the URL says what went wrong. */
int https_fetch(const char *url, const char *ca, uint64_t timeout_ns, struct buf *b,
	struct errinfo *reterr);
