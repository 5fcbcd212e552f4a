/* SPDX-License-Identifier: Apache-2.0 */
/* client_private.h - the client's parts, as they see each other.
 *
 *	client.c         calls: begun, given a connection, ended, told
 *	client_conn.c    a connection: its calls, bytes to and from its protocol
 *	client_open.c    how it comes about: name, addresses, TLS
 *	client_socket.c  bytes in and out, with or without TLS, and when they came
 *	client_names.c   names to addresses
 *	client_h1.c      HTTP/1.1;  client_h2.c  HTTP/2, for gRPC
 *
 * Nothing here runs a caller's function except client.c's run_ended(), at the top of the loop: the
 * parts may end calls and close connections at any point without looking over their shoulder. */
#pragma once

#include <openssl/types.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/errinfo.h"
#include "base/macros.h"
#include "net/client/client.h"
#include "net/http1.h"
#include "net/pki/tls.h"

/* Bytes to and from a server, with or without TLS, and when they came.
 *
 * Nothing waits: -EAGAIN says that the event loop should, for reading, and for writing too while
 * wants_write is set. */

struct client_socket {
	int fd;   /* -1: not open */
	SSL *ssl; /* NULL: plain */
	struct tls_meeting met;
	const char *host;      /* the caller's; for TLS */
	const char *endpoint;  /* the caller's; for sentences: "gpu1:8080" */
	uint64_t received_ns;  /* CLOCK_MONOTONIC: when the kernel took in what was read last */
	uint64_t sent_ns;      /* just before the last write */
	bool is_secure;        /* the handshake is complete */
	bool wants_write;      /* TLS must write before it can read */
	bool is_ended;         /* the other side sends no more, */
	bool is_ended_cleanly; /* and that can be believed */
	int error;             /* of the last system call, positive */
};

/* client_socket_open - begins to connect. 0 or a negative errno. */
int client_socket_open(struct client_socket *s, const struct sockaddr_storage *address);
/* client_socket_connected - after it has become writable: 0, or why there is no connection. */
int client_socket_connected(struct client_socket *s);
void client_socket_close(struct client_socket *s);

/* client_socket_start_tls - @alpn: what to speak inside, as TLS writes it. */
int client_socket_start_tls(
	struct client_socket *s, struct tls *tls, const char *alpn, struct errinfo *reterr);
/* client_socket_handshake - 0 when it is complete, -EAGAIN, or a negative errno and a sentence. */
int client_socket_handshake(struct client_socket *s, struct errinfo *reterr);
/* client_socket_speaks - whether the server has agreed to @alpn. */
bool client_socket_speaks(const struct client_socket *s, const char *alpn);

/* client_socket_read - bytes, 0 at the end, -EAGAIN, or a negative errno; a sentence in @reterr if
 * TLS has one, else its text is empty. client_socket_write likewise. */
ssize_t client_socket_read(
	struct client_socket *s, void *data, size_t size, struct errinfo *reterr);
ssize_t client_socket_write(
	struct client_socket *s, const void *data, size_t len, struct errinfo *reterr);

/* Host names to addresses, without waiting and without the C library's resolver.
 */

struct event_base;
struct client_names;
struct client_lookup;

#define CLIENT_ADDRESSES 8 /* of one name; further ones are not tried */

struct client_addresses {
	struct sockaddr_storage at[CLIENT_ADDRESSES];
	size_t count;
};

/* @err 0, or -ENOENT: there is no such host; -EACCES: it leads where a name may not lead; -EHOSTUNREACH: no name server
 * answered; -ENOMEM. */
typedef void client_names_done(void *arg, int err, const struct client_addresses *a);

/* client_names_new - @root is what /etc/hosts and /etc/resolv.conf lie below: "" but for tests; it
 * must live as long as this. */
int client_names_new(struct event_base *base, const char *root, struct client_names **ret);
/* client_names_free - lookups that are under way are cancelled by their owners before. What evdns
 * still holds of these is given back by a later turn of the loop. */
DECLARE_FREE(struct client_names, client_names_free)

/* client_names_lookup - @done may run from within: *ret is NULL then. Addresses and "localhost" are
 * never asked for. */
int client_names_lookup(struct client_names *n, const char *host, uint16_t port,
	client_names_done *done, void *arg, struct client_lookup **ret);
void client_names_cancel(struct client_lookup *l); /* @done will not run */

/* client_address_is_loopback - whether only this machine can be behind it. */
bool client_address_is_loopback(const struct sockaddr_storage *a);

/* A connection that waits for its next call. Less than servers wait (HTTP_IDLE_NS), so that it is
 * mostly us who close. */
#define CLIENT_IDLE_NS       (30 * NS_PER_S)
#define CLIENT_IDLE_ENDPOINT 4 /* such connections to one place */
#define CLIENT_ENDPOINT_TEXT 272
#define CLIENT_FIELDS        32   /* of a caller */
#define CLIENT_FIELDS_MAX    8192 /* bytes of them, and of the bearer */

struct event;
struct event_base;
struct client_conn;

TAILQ_HEAD(client_calls, http_call);
TAILQ_HEAD(client_conns, client_conn);

struct http_client {
	struct event_base *base;
	struct tls *tls;     /* the caller's; NULL: own_tls */
	struct tls *own_tls; /* the system's authorities, made when first needed */
	char *bearer;
	bool plain_ok;
	struct client_names *names;
	struct client_conns conns, closed; /* closed: memory to be given back by run_ended() */
	size_t conn_count, call_count;
	struct client_calls waiting; /* for a connection */
	struct client_calls ended;   /* their callers are told by run_ended() */
	struct event *run_ended;
	bool *freed; /* run_ended() is at work: told if a caller frees the client */
};

struct http_call {
	TAILQ_ENTRY(http_call) link; /* in one of the three: waiting, ended, a connection's calls */
	struct client_calls *in;
	struct http_client *client;
	struct client_conn *conn; /* NULL: waiting or ended */
	struct event *deadline;
	uint64_t timeout_ns, deadline_ns;

	struct http_endpoint endpoint;
	char *method, *path, *type, *body;
	size_t body_len;
	struct buf fields; /* the further ones: name, NUL, value, NUL */
	bool has_authorization, alone, is_grpc, gzip;
	int interim;  /* responses below 200 that came */
	bool retried; /* on a new connection, after a kept one was found closed */
	size_t sent;  /* bytes of the request that the kernel took */
	size_t body_max;

	http_done *done;
	grpc_done *grpc_done;
	void *arg;

	/* the reply */
	struct http1 parser; /* HTTP/1.1: owns the head */
	struct http_response response;
	struct buf reply; /* its body */
	int err;
	struct errinfo errinfo;
	struct grpc_call *grpc; /* HTTP/2 */
};

enum client_state {
	CLIENT_NAMING,
	CLIENT_CONNECTING,
	CLIENT_HANDSHAKING,
	CLIENT_OPEN,
	CLIENT_CLOSED,
};

/* What carries calls over an open connection. Each function may end calls and close @c. */
struct client_protocol {
	const char *alpn;                   /* as TLS wants it: length, name */
	size_t calls_max;                   /* at once on one connection */
	int (*open)(struct client_conn *c); /* 0 or a negative errno */
	void (*begin)(struct client_conn *c, struct http_call *call);
	void (*refill)(struct client_conn *c); /* all of c->out has gone: append what there is */
	void (*input)(struct client_conn *c, const char *data, size_t len);
	/* The other side has ended it, @clean if it said so in a way that cannot be forged. Calls
	 * that are still there afterwards fail. */
	void (*ended)(struct client_conn *c, bool clean);
	void (*forget)(struct client_conn *c, struct http_call *call); /* it leaves unfinished */
	void (*close)(struct client_conn *c);
};
extern const struct client_protocol client_h1, client_h2;

struct client_conn {
	TAILQ_ENTRY(client_conn) link;
	struct http_client *client;
	const struct client_protocol *protocol;
	void *session; /* the protocol's */
	struct http_endpoint endpoint;
	char endpoint_text[CLIENT_ENDPOINT_TEXT];
	enum client_state state;
	struct client_lookup *lookup;
	struct client_addresses addresses;
	size_t address_next;
	struct client_socket socket;
	struct event *event, *timer;
	short events;
	struct client_calls calls;
	size_t call_count;
	struct buf out;
	size_t out_sent;
	bool was_kept;   /* the call on it is not its first */
	bool no_more;    /* takes no further call: it is closed when the last has ended */
	bool got_bytes;  /* since the call on it began */
	bool is_greeted; /* HTTP/2: bytes have come at all */
};

/* ---- client.c ---- */

/* client_call_end - the call has its response (@err 0), or a negative errno and a sentence. */
void client_call_end(struct http_call *call, int err, const struct errinfo *e);
/* client_call_retry - on a new connection: the kept one was closed before it took the call. */
void client_call_retry(struct http_call *call);
/* client_dispatch - a connection has become free or was closed: calls that wait may go on. */
void client_dispatch(struct http_client *c);

/* ---- client_conn.c ---- */

/* client_conn_new - a connection for @call, which ends with a sentence if there can be none. */
int client_conn_new(struct http_call *call, const struct client_protocol *protocol);
bool client_conn_has_room(const struct client_conn *c);
/* client_conn_is_alive - looks whether a kept one was closed meanwhile: if so, it is closed here.
 */
bool client_conn_is_alive(struct client_conn *c);
void client_conn_give(struct client_conn *c, struct http_call *call);
/* client_conn_leave - @call is no longer on it. The connection is kept, or closed. */
void client_conn_leave(struct client_conn *c, struct http_call *call, bool finished);
/* client_conn_flush - sends what is in c->out. */
void client_conn_flush(struct client_conn *c);
void client_conn_close(struct client_conn *c);
/* client_conn_fail - closes it; its calls end with this. */
void client_conn_fail(struct client_conn *c, int err, const char *fmt, ...) _printf_(3, 4);
void client_conn_end_calls(struct client_conn *c, int err, const struct errinfo *e);
void client_conn_free(struct client_conn *c);

/* for client_open.c */
void client_conn_want(struct client_conn *c, short events);
void client_conn_opened(struct client_conn *c);
/* client_conn_is_private - whether @call holds nothing that others could read on the way. */
bool client_conn_is_private(const struct client_conn *c, const struct http_call *call);
void client_conn_refuse_clear(struct client_conn *c, struct http_call *call); /* ends it */

/* ---- client_open.c ---- */

void client_open_begin(struct client_conn *c);
void client_open_step(struct client_conn *c); /* its socket is ready */
/* client_open_next - tries the next address; @why the last one failed. */
void client_open_next(struct client_conn *c, int why);
/* client_open_timeout - the sentence for a call whose time is over. */
int client_open_timeout(
	const struct client_conn *c, const struct http_call *call, struct errinfo *reterr);

/* ---- client_h2.c ---- */

/* client_h2_send - runs the caller's function of an ended gRPC call. */
void client_h2_send(struct http_call *call);

/* ---- client_open.c ---- */

/* client_endpoint_text - "gpu1:8080", "[::1]:8080": for Host, and for people. */
const char *client_endpoint_text(char out[CLIENT_ENDPOINT_TEXT], const struct http_endpoint *p);
bool client_endpoint_equal(const struct http_endpoint *a, const struct http_endpoint *b);
