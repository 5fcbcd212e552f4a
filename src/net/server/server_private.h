/* SPDX-License-Identifier: Apache-2.0 */
/* server_private.h - the parts of the server as they see each other.
 *
 *	listener.c	accepts
 *	connection.c	one peer: TLS, which protocol, closing; connection_time.c its time limits
 *	server_h1.c	requests of HTTP/1.1 out of a connection, replies into it
 *	server_h2.c	the same for HTTP/2
 *	exchange.c	one request: whether it is let in, its handler; exchange_asker.c who asks,
 *			exchange_body.c its body, exchange_reply.c its reply, gRPC's too
 *	server.c	settings, life and death of all of these */
#pragma once

#include <event2/bufferevent.h>
#include <sys/queue.h>

#include "net/address.h"
#include "net/server/allow.h"
#include "net/grpc.h"
#include "net/http.h"
#include "net/server/peer.h"
#include "net/server/server.h"

#define OUTPUT_PAUSE (64 << 10) /* unsent bytes beyond which no further request is begun */
#define INPUT_PAUSE  (64 << 10) /* unread bytes beyond which the kernel keeps the rest */
#define REPLY_FIELDS 16
#define ADDED_FIELDS (REPLY_FIELDS - 6)
#define BODIES_MAX                                                                                 \
	(32u << 20) /* request bodies of one connection that are kept at once, unless one
				    alone may be longer */
#define REPLIES_MAX (32u << 20) /* unsent replies beyond which new streams are refused */
#define FIELD_VALUE 1024        /* bytes of a field of a reply */

struct connection;
struct listener;
struct event;

struct http_server {
	struct loop *loop;
	struct tls *tls;
	struct token_set *tokens;
	const uid_t *owners;
	size_t owner_count;
	struct http_route *routes;
	size_t route_count;
	void *arg;
	http_refused *refused;
	http_error_body *error_body;
	struct allow *allow;
	struct http_limits limits;
	struct peers *peers;
	struct listener *listener;                       /* NULL: it does not listen any more */
	TAILQ_HEAD(connections, connection) connections; /* oldest first */
	TAILQ_HEAD(orphans, http_exchange) orphans;      /* owed a reply, without a connection */
	struct http_server_stats stats;
	loop_fn *drained;
	void *drained_arg;
	bool draining;
	char address[ADDRESS_TEXT_MAX];
};

/* ---- listener.c ---- */

int listener_new(struct http_server *s, const char *address, const char *flag,
	struct listener **ret, union address *ret_bound, struct errinfo *reterr);
DECLARE_FREE(struct listener, listener_free)
void listener_room(struct listener *l); /* a descriptor has been closed */

/* ---- connection.c ---- */

enum phase {
	PHASE_HANDSHAKE,
	PHASE_HEAD,  /* waits for a head, or what is left of it */
	PHASE_BODY,  /* a body is coming */
	PHASE_WORK,  /* requests are being answered */
	PHASE_IDLE,  /* between requests */
	PHASE_LINGER /* all is said; what the peer still sends is thrown away */
};

struct protocol { /* how requests and replies look */
	int (*begin)(struct connection *c);
	void (*end)(struct connection *c);
	void (*readable)(struct connection *c); /* also at the end of input: c->eof */
	void (*writable)(struct connection *c); /* output is below OUTPUT_PAUSE */
	void (*reply)(struct http_exchange *x, int status, const void *body, size_t len);
	void (*late)(struct connection *c);   /* the phase has taken longer than it may */
	void (*retire)(struct connection *c); /* answer what has been asked, then close */
	/* limits that are not the connection's own; NULL: none. True: look again soon */
	bool (*tick)(struct connection *c, uint64_t now_ns);
};
extern const struct protocol server_h1, server_h2;

/* server_h1_refuse - answers what comes, or does not come, with @status, and closes. */
void server_h1_refuse(struct connection *c, int status, const char *why);

/* How much of something has gone through, and since when it should. Counted anew every now and
 * then: a peer that was fast once must not rest on that. */
struct pace {
	uint64_t since_ns; /* 0: there is nothing to go through */
	uint64_t bytes;
};

static inline void pace_start(struct pace *p, uint64_t now_ns)
{
	*p = (struct pace){.since_ns = now_ns};
}

struct connection {
	TAILQ_ENTRY(connection) link;
	struct http_server *server;
	struct bufferevent *bev;         /* NULL: see first */
	const struct protocol *protocol; /* NULL until it is known */
	void *state;                     /* the protocol's */
	TAILQ_HEAD(exchanges, http_exchange) exchanges;
	union address remote, local;
	char peer[ADDRESS_TEXT_MAX];
	char *subject;
	struct event *timer;
	struct event
		*first; /* of TLS: waits for the first bytes; owns the socket while bev is NULL */
	enum phase phase;
	uint64_t phase_ns, age_end_ns, look_ns; /* CLOCK_MONOTONIC; look_ns: of the next look */
	struct pace body, out; /* of the body that is coming; of output that is not sent yet */
	size_t bodies;         /* bytes of requests that are kept */
	unsigned depth;        /* of our functions that are running on it */
	bool tls, eof, dead, retired, closing;
	bool counted; /* among its address's connections without a token */
	bool owner_known, is_owner;
};

int connection_new(struct http_server *s, int fd, const union address *remote);
/* connection_close - now. Its exchanges are told. Freed when no function runs on it any more. */
void connection_close(struct connection *c);
void connection_finish(struct connection *c); /* when all output has been sent */
void connection_retire(struct connection *c); /* when what has been asked is answered */
void connection_enter(struct connection *c);
bool connection_leave(struct connection *c); /* false: @c has been freed */
void connection_phase(struct connection *c, enum phase phase);
void connection_look_soon(struct connection *c); /* at its limits */
/* connection_look_by - at the latest; a look that is due earlier sees to it anyway. */
void connection_look_by(struct connection *c, uint64_t now_ns, uint64_t due_ns);
void connection_on_timer(evutil_socket_t fd, short what, void *arg);
/* connection_is_slow - whether less has gone through than the limits ask for. */
bool connection_is_slow(const struct connection *c, struct pace *p, uint64_t now_ns);
void connection_prove(struct connection *c); /* it has shown who it is */
/* connection_evict - closes the oldest one of @a without a complete request; false: there is none. */
bool connection_evict(struct http_server *s, const union address *a);
size_t connection_pending(const struct connection *c); /* unsent bytes */

/* ---- exchange.c ---- */

struct reply_field {
	char *name, *value;
};

struct http_exchange {
	TAILQ_ENTRY(http_exchange) link; /* of its connection, or of the server's orphans */
	struct http_server *server;      /* NULL: freed */
	struct connection *conn;         /* NULL: gone */
	bool orphan;                     /* among the server's */
	struct http_request q;
	const struct http_route *route;
	struct buf text;
	char *target;
	char peer[ADDRESS_TEXT_MAX];
	char *subject;
	int refused; /* the status that it will be answered with; 0: it is let in */
	char why[160];
	struct reply_field fields[REPLY_FIELDS];
	size_t field_count;
	loop_fn *gone;
	void *gone_arg;
	bool dispatched, replied;

	struct buf body;         /* as the handler gets it */
	struct inflate *inflate; /* NULL: it is not in gzip, or nothing of it has come */
	bool gzip;               /* it may be, as the head says */
	unsigned char frame[GRPC_FRAME];
	size_t frame_len;
	size_t wire_bytes; /* of it that have come, as sent */
	uint64_t address;  /* its key among the server's peers */
	size_t held_bytes; /* counted in the connection's bodies, the address's and the server's */

	int32_t stream; /* HTTP/2 */
	char *reply;
	size_t reply_len, reply_at;
	struct pace pace; /* of its body */
};

int exchange_new(struct connection *c, struct http_exchange **ret);
DECLARE_FREE(struct http_exchange, exchange_free)

/* exchange_admit - looks at the head (q.method, q.head): @target as sent, @authority as HTTP/2 has
 * it, or NULL. Sets route, or refused and why. */
void exchange_admit(struct http_exchange *x, const char *target, const char *authority);
/* exchange_admit_asker - false: refused, since neither a token nor the peer's user was good. Sets
 * q.asker. */
bool exchange_admit_asker(struct http_exchange *x);
void exchange_refuse(struct http_exchange *x, int status, const char *fmt, ...) _printf_(3, 4);
/* exchange_dispatch - the request is complete: its handler, or its refusal. @x may be freed. */
void exchange_dispatch(struct http_exchange *x);
/* exchange_gone - the connection is no more. @x may be freed. */
void exchange_gone(struct http_exchange *x);
bool exchange_is_head(const struct http_exchange *x);

/* ---- exchange_body.c ---- */

size_t exchange_body_max(const struct http_exchange *x); /* bytes as sent */
/* exchange_admit_body - looks at how the head says it is encoded; refuses what is not understood. */
void exchange_admit_body(struct http_exchange *x);
/* exchange_add_body - the next piece, as sent. False: refused because of it; no more is wanted. */
bool exchange_add_body(struct http_exchange *x, const void *data, size_t len);
/* exchange_end_body - all of it has come: refused if that cannot be. */
void exchange_end_body(struct http_exchange *x);
void exchange_drop_body(struct http_exchange *x); /* its memory is needed no more */

/* ---- exchange_reply.c ---- */

/* ---- exchange_reply.c: gRPC ---- */

/* exchange_reply_grpc - status 200: the message @body; else an error with that of gRPC and @text. */
void exchange_reply_grpc(
	struct http_exchange *x, int status, const char *text, const void *body, size_t len);

/* ---- server.c ---- */

void server_connection_ended(struct http_server *s);
uint64_t server_now_ns(void);
