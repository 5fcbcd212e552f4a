/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - one peer: which protocol it speaks, what time it may take, how it is closed. See
 * server_private.h.
 *
 * Invariants:
 *  1. A connection is freed only when none of its functions is running (depth is 0): handlers reply
 *     and peers vanish in the middle of anything.
 *  2. It always has a time at which it is looked at again: no phase is without an end but
 *     PHASE_WORK, in which the handler has the word.
 *  3. It ends by saying so first and reading on for a moment: closing a socket with bytes unread
 *     would make the kernel throw away the reply that is under way. */
#include "net/server/server_private.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "net/loop.h"
#include "net/pki/tls_private.h"

#define PREFACE     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PREFACE_LEN (sizeof(PREFACE) - 1)
#define SUBJECT_MAX 512

/* ---- its TLS ---- */

static struct bufferevent *tls_bufferevent(struct connection *c, struct event_base *base, int fd)
{
	SSL *ssl = SSL_new(c->server->tls->ctx);
	struct bufferevent *bev;

	if (!ssl)
		return NULL;
	bev = bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
		BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!bev) {
		SSL_free(ssl);
		return NULL;
	}
	/* Lengths are told inside; peers that close without TLS's own word have lost nothing. */
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

/* subject_text - "CN=agent,O=fleet", with what is not printable escaped. */
static char *subject_text(X509 *cert)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data, *text = NULL;

	if (!bio)
		return NULL;
	if (X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253) >= 0) {
		long len = BIO_get_mem_data(bio, &data);

		text = strndup(data, MIN((size_t)len, (size_t)SUBJECT_MAX));
	}
	BIO_free(bio);
	return text;
}

static int tls_accepted(struct connection *c)
{
	SSL *ssl = bufferevent_openssl_get_ssl(c->bev);
	X509 *cert = SSL_get0_peer_certificate(ssl);

	if (!cert)
		return 0;
	if (SSL_get_verify_result(ssl) != X509_V_OK)
		return -EKEYREJECTED;
	c->subject = subject_text(cert);
	if (!c->subject)
		return -ENOMEM;
	connection_prove(c);
	return 0;
}

static bool tls_chose_h2(const struct connection *c)
{
	const unsigned char *name = NULL;
	unsigned len = 0;

	SSL_get0_alpn_selected(bufferevent_openssl_get_ssl(c->bev), &name, &len);
	return len == 2 && memcmp(name, "h2", 2) == 0;
}

/* Who was given http:// instead of https:// is told so. HTTP/2's preface (PRI) is left to TLS, whose alert a client of
 * gRPC understands. */
static bool is_plain_request(const char *start, ssize_t len)
{
	return len > 0 && *start && strchr("CDGHOPT", *start) && !(len > 1 && start[1] == 'R');
}

static void tls_say_goodbye(struct connection *c)
{
	if (!c->tls)
		return;
	ERR_clear_error();
	SSL_shutdown(bufferevent_openssl_get_ssl(c->bev));
	ERR_clear_error(); /* which the next connection would take for its own */
}

/* ---- its life ---- */

void connection_enter(struct connection *c)
{
	c->depth++;
}

static void connection_free(struct connection *c)
{
	struct http_server *s = c->server;

	TAILQ_REMOVE(&s->connections, c, link);
	if (c->counted)
		peers_leave(s->peers, &c->remote);
	if (c->protocol)
		c->protocol->end(c);
	if (c->first) {
		int fd = event_get_fd(c->first);

		event_free(c->first);
		if (!c->bev)
			close(fd);
	}
	if (c->bev)
		bufferevent_free(c->bev);
	if (c->timer)
		event_free(c->timer);
	free(c->subject);
	free(c);
	s->stats.open_connections--;
	server_connection_ended(s);
}

bool connection_leave(struct connection *c)
{
	if (--c->depth || !c->dead)
		return true;
	connection_free(c);
	return false;
}

void connection_close(struct connection *c)
{
	struct http_exchange *x;

	if (c->dead)
		return;
	connection_enter(c);
	c->dead = true;
	while ((x = TAILQ_FIRST(&c->exchanges)))
		exchange_gone(x);
	connection_leave(c);
}

size_t connection_pending(const struct connection *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->bev));
}

/* ---- closing ---- */

/* begin_linger - all is sent: say that nothing follows, and wait until the peer closes too. */
static void begin_linger(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);

	if (c->eof) {
		connection_close(c);
		return;
	}
	tls_say_goodbye(c);
	shutdown(bufferevent_getfd(c->bev), SHUT_WR);
	evbuffer_drain(in, evbuffer_get_length(in));
	connection_phase(c, PHASE_LINGER);
}

void connection_finish(struct connection *c)
{
	if (c->dead || c->closing)
		return;
	c->closing = true;
	if (!connection_pending(c))
		begin_linger(c);
}

void connection_retire(struct connection *c)
{
	if (c->retired || c->dead)
		return;
	c->retired = true;
	if (!c->protocol)
		connection_close(c);
	else if (!c->closing)
		c->protocol->retire(c);
}

void connection_prove(struct connection *c)
{
	if (c->counted)
		peers_leave(c->server->peers, &c->remote);
	c->counted = false;
}

/* has_asked - whether a request of it is complete. One whose body is still coming is not: it would
 * be a way to hold a place by sending slowly. */
static bool has_asked(const struct connection *c)
{
	const struct http_exchange *x;

	TAILQ_FOREACH (x, &c->exchanges, link)
		if (x->dispatched)
			return true;
	return false;
}

bool connection_evict(struct http_server *s, const union address *a)
{
	struct connection *c;

	TAILQ_FOREACH (c, &s->connections, link) {
		if (!c->counted || c->dead || !address_host_equal(&c->remote, a) || has_asked(c))
			continue;
		s->stats.evicted++;
		connection_close(c);
		return true;
	}
	return false;
}

/* ---- bytes ---- */

static int begin_protocol(struct connection *c, const struct protocol *p)
{
	c->protocol = p;
	if (p->begin(c) < 0) {
		c->protocol = NULL;
		connection_close(c);
		return -ENOMEM;
	}
	return 0;
}

/* choose_protocol - of a connection without TLS by its first bytes. False: too few are there. */
static bool choose_protocol(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	char start[PREFACE_LEN];
	ssize_t n = evbuffer_copyout(in, start, sizeof(start));
	bool same = n > 0 && memcmp(start, PREFACE, (size_t)n) == 0;

	if (c->tls) { /* ALPN has said it; without ALPN it is HTTP/1.1 */
		return begin_protocol(c, tls_chose_h2(c) ? &server_h2 : &server_h1) == 0;
	}
	if (same && (size_t)n < PREFACE_LEN && !c->eof)
		return false;
	return begin_protocol(c, same && n == PREFACE_LEN ? &server_h2 : &server_h1) == 0;
}

static void on_read(struct bufferevent *bev _unused_, void *arg)
{
	struct connection *c = arg;
	struct evbuffer *in = bufferevent_get_input(c->bev);

	if (c->dead)
		return;
	connection_enter(c);
	if (c->phase == PHASE_LINGER || c->closing)
		evbuffer_drain(in, evbuffer_get_length(in));
	else if (c->protocol || choose_protocol(c))
		c->protocol->readable(c);
	connection_leave(c);
}

static void on_write(struct bufferevent *bev _unused_, void *arg)
{
	struct connection *c = arg;

	if (c->dead)
		return;
	connection_enter(c);
	if (c->closing) {
		if (!connection_pending(c) && c->phase != PHASE_LINGER)
			begin_linger(c);
	} else if (c->protocol) {
		c->protocol->writable(c);
	}
	connection_leave(c);
}

/* What has happened since the last turn comes together: a peer that has asked, closed and reset is
 * one call. */
static void on_event(struct bufferevent *bev _unused_, short what, void *arg)
{
	struct connection *c = arg;

	if (c->dead)
		return;
	connection_enter(c);
	if (what & (BEV_EVENT_ERROR | BEV_EVENT_WRITING) && !(what & BEV_EVENT_CONNECTED))
		connection_close(c);
	if (what & BEV_EVENT_CONNECTED && !c->dead) { /* the handshake is complete */
		if (what & BEV_EVENT_ERROR || tls_accepted(c) < 0)
			connection_close(c);
		else
			connection_phase(c, PHASE_HEAD);
	}
	if (what & BEV_EVENT_EOF && !c->dead) {
		/* The peer sends no more. It may have closed its sending half only and still read, but not
		 * within TLS: libevent stops writing too when it has seen TLS's end. */
		c->eof = true;
		if (c->tls || c->phase == PHASE_LINGER || (c->closing && !connection_pending(c)))
			connection_close(c);
		else if (!c->closing && (c->protocol || choose_protocol(c)))
			c->protocol->readable(c);
	}
	connection_leave(c);
}

static void on_output(struct evbuffer *out _unused_, const struct evbuffer_cb_info *info, void *arg)
{
	struct connection *c = arg;

	c->out.bytes += info->n_deleted;
	if (info->orig_size + info->n_added == info->n_deleted) {
		c->out.since_ns = 0;
	} else if (!c->out.since_ns) {
		pace_start(&c->out, server_now_ns());
		connection_look_by(c, c->out.since_ns, c->out.since_ns + c->server->limits.head_ns);
	}
}

/* ---- birth ---- */

/* life_ns - the age at which it is retired, 10 % more or less, so that the connections that began
 * together after a restart do not end together. */
static uint64_t life_ns(uint64_t age_ns)
{
	uint32_t dice = 0;

	if (getrandom(&dice, sizeof(dice), GRND_NONBLOCK) < 0)
		dice = UINT32_MAX / 2;
	return age_ns - age_ns / 10 + (uint64_t)((double)(age_ns / 5) * dice / UINT32_MAX);
}

static int open_buffers(struct connection *c, int fd)
{
	struct event_base *base = loop_base(c->server->loop);

	c->bev = c->tls ? tls_bufferevent(c, base, fd)
			: bufferevent_socket_new(
				  base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!c->bev)
		return -ENOMEM;
	bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, INPUT_PAUSE);
	bufferevent_setwatermark(c->bev, EV_WRITE, OUTPUT_PAUSE / 2, 0);
	if (!evbuffer_add_cb(bufferevent_get_output(c->bev), on_output, c))
		return -ENOMEM;
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	return 0;
}

/* Of a connection that is to speak TLS: its first bytes, which stay where they are. */
static void on_first(evutil_socket_t fd, short what _unused_, void *arg)
{
	struct connection *c = arg;
	char start[2];
	ssize_t n = recv(fd, start, sizeof(start), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		event_add(c->first, NULL);
		return;
	}
	connection_enter(c);
	c->tls = !is_plain_request(start, n);
	if (n <= 0 || open_buffers(c, fd) < 0)
		connection_close(c);
	else if (!c->tls && begin_protocol(c, &server_h1) == 0)
		server_h1_refuse(
			c, 400, "this port speaks HTTPS: write https:// instead of http://");
	connection_leave(c);
}

static int open_connection(struct connection *c, int fd)
{
	struct event_base *base = loop_base(c->server->loop);

	c->timer = event_new(base, -1, 0, connection_on_timer, c);
	if (!c->timer)
		return -ENOMEM;
	if (!c->tls)
		return open_buffers(c, fd);
	c->first = event_new(base, fd, EV_READ, on_first, c);
	return c->first && event_add(c->first, NULL) == 0 ? 0 : -ENOMEM;
}

int connection_new(struct http_server *s, int fd, const union address *remote)
{
	struct connection *c = calloc(1, sizeof(*c));
	socklen_t len = sizeof(c->local);
	int on = 1;

	if (!c) {
		peers_leave(s->peers, remote);
		close(fd);
		return -ENOMEM;
	}
	c->server = s;
	c->remote = *remote;
	c->counted = true;
	c->tls = s->tls != NULL;
	TAILQ_INIT(&c->exchanges);
	TAILQ_INSERT_TAIL(&s->connections, c, link);
	s->stats.connections++;
	s->stats.open_connections++;
	address_format_host(remote, c->peer);
	/* Without it a reply in two pieces waits 40 ms for the peer's acknowledgement. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (getsockname(fd, &c->local.any, &len) < 0)
		c->local.any.sa_family = AF_UNSPEC;
	if (open_connection(c, fd) < 0) {
		if (!c->bev && !c->first)
			close(fd);
		connection_free(c);
		return -ENOMEM;
	}
	c->age_end_ns = server_now_ns() + life_ns(s->limits.age_ns);
	c->look_ns = UINT64_MAX;
	connection_look_by(c, server_now_ns(), c->age_end_ns);
	connection_phase(c, c->tls ? PHASE_HANDSHAKE : PHASE_HEAD);
	return 0;
}
