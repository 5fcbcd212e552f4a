/* SPDX-License-Identifier: Apache-2.0 */
/* client_socket.c - see client_private.h.
 *
 * TLS reads and writes through a BIO of ours, for two reasons: a write to a closed connection must
 * not raise SIGPIPE, and the kernel's own time of arrival comes with recvmsg() alone. That time is
 * what clock offsets are estimated from: among hundreds of handshakes on one thread, the moment
 * when the loop gets round to a socket is many milliseconds late. */
#include "net/client/client_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "net/pki/tls_client.h"

#define ARRIVAL_AGE_MAX (60 * NS_PER_S) /* older: the wall clock was set meanwhile */

int client_socket_open(struct client_socket *s, const struct sockaddr_storage *address)
{
	socklen_t len = address->ss_family == AF_INET ? sizeof(struct sockaddr_in)
						      : sizeof(struct sockaddr_in6);
	int one = 1;

	s->fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -errno;
	/* Without it a small write waits for the other side's delayed ACK: 40 ms. */
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	if (connect(s->fd, (const struct sockaddr *)address, len) < 0 && errno != EINPROGRESS)
		return -errno;
	return 0;
}

int client_socket_connected(struct client_socket *s)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

void client_socket_close(struct client_socket *s)
{
	if (s->ssl) {
		/* Our word that we end it; nobody waits for an answer. */
		if (s->is_secure && !s->error)
			SSL_shutdown(s->ssl);
		ERR_clear_error();
		SSL_free(s->ssl);
	}
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct client_socket){.fd = -1, .host = s->host, .endpoint = s->endpoint};
}

/* When the kernel took in what came with @m, in monotonic time. The wall clock is read first: if we
 * are preempted between the two, the result is late, as it would be without the kernel's help, and
 * never before the truth. */
static uint64_t arrival_ns(struct msghdr *m)
{
	int64_t wall_ns = wall_now().ns;
	uint64_t now_ns = mono_now().ns;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct timespec t;
		int64_t age_ns;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof(t));
		age_ns = wall_ns - ((int64_t)t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec);
		if (age_ns > 0 && age_ns < (int64_t)ARRIVAL_AGE_MAX)
			return now_ns - (uint64_t)age_ns;
	}
	return now_ns;
}

static ssize_t receive(struct client_socket *s, void *data, size_t size)
{
	char control[CMSG_SPACE(sizeof(struct timespec)) + 64]
		__attribute__((aligned(sizeof(struct cmsghdr))));
	struct iovec part = {.iov_base = data, .iov_len = size};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n;

	do
		n = recvmsg(s->fd, &m, 0);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		s->received_ns = arrival_ns(&m);
	else if (n == 0)
		s->is_ended = true;
	else if (errno != EAGAIN)
		s->error = errno;
	return n < 0 ? -errno : n;
}

static ssize_t transmit(struct client_socket *s, const void *data, size_t len)
{
	ssize_t n;

	s->sent_ns = mono_now().ns;
	do
		n = send(s->fd, data, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		s->error = errno;
	return n < 0 ? -errno : n;
}

/* ---- the BIO ---- */

static int bio_read(BIO *b, char *data, int size)
{
	ssize_t n = receive(BIO_get_data(b), data, (size_t)size);

	BIO_clear_retry_flags(b);
	if (n == -EAGAIN)
		BIO_set_retry_read(b);
	return n < 0 ? -1 : (int)n;
}

static int bio_write(BIO *b, const char *data, int len)
{
	ssize_t n = transmit(BIO_get_data(b), data, (size_t)len);

	BIO_clear_retry_flags(b);
	if (n == -EAGAIN)
		BIO_set_retry_write(b);
	return n < 0 ? -1 : (int)n;
}

static long bio_control(BIO *b, int what, long number, void *pointer)
{
	const struct client_socket *s = BIO_get_data(b);

	(void)number, (void)pointer;
	if (what == BIO_CTRL_EOF)
		return s->is_ended;
	return what == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

static BIO_METHOD *bio_method; /* kept: it must outlive every BIO */

static void bio_method_make(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "ingero client");

	if (!m)
		return;
	BIO_meth_set_read(m, bio_read);
	BIO_meth_set_write(m, bio_write);
	BIO_meth_set_ctrl(m, bio_control);
	BIO_meth_set_create(m, bio_create);
	bio_method = m;
}

static BIO *bio_new(struct client_socket *s)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT; /* each thread may have a client */
	BIO *b;

	pthread_once(&once, bio_method_make);
	b = bio_method ? BIO_new(bio_method) : NULL;
	if (b)
		BIO_set_data(b, s);
	return b;
}

/* ---- TLS ---- */

int client_socket_start_tls(
	struct client_socket *s, struct tls *tls, const char *alpn, struct errinfo *reterr)
{
	BIO *b;
	int r;

	s->met = (struct tls_meeting){.endpoint = s->endpoint};
	r = tls_client_ssl(tls, s->host, &s->met, &s->ssl, reterr);
	if (r < 0)
		return r;
	b = bio_new(s);
	if (!b || SSL_set_alpn_protos(
			  s->ssl, (const unsigned char *)alpn, (unsigned int)strlen(alpn))) {
		BIO_free(b);
		return errinfo_set(reterr, -ENOMEM, "%s: out of memory for TLS", s->endpoint);
	}
	SSL_set_bio(s->ssl, b, b);
	return 0;
}

/* What an operation's result @n means: -EAGAIN, 0 for the end, or a failure with its sentence. */
static int outcome(struct client_socket *s, int n, struct errinfo *reterr)
{
	switch (SSL_get_error(s->ssl, n)) {
	case SSL_ERROR_WANT_READ: return -EAGAIN;
	case SSL_ERROR_WANT_WRITE: s->wants_write = true; return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN: s->is_ended = s->is_ended_cleanly = true; return 0;
	case SSL_ERROR_SYSCALL: return s->error ? -s->error : -ECONNRESET;
	default:
		if (s->is_ended && s->is_secure && tls_client_was_cut())
			return 0;
		if (!s->error)
			s->error = EPROTO;
		return tls_client_explain(s->ssl, s->endpoint, reterr);
	}
}

int client_socket_handshake(struct client_socket *s, struct errinfo *reterr)
{
	int n, r;

	s->wants_write = false;
	ERR_clear_error();
	n = SSL_connect(s->ssl);
	s->is_secure = n == 1;
	if (s->is_secure)
		return tls_client_met(&s->met, reterr);
	r = outcome(s, n, reterr);
	return r ? r : -ECONNRESET;
}

bool client_socket_speaks(const struct client_socket *s, const char *alpn)
{
	const unsigned char *chosen;
	unsigned int len;

	SSL_get0_alpn_selected(s->ssl, &chosen, &len);
	return len == (unsigned char)alpn[0] && !memcmp(chosen, alpn + 1, len);
}

ssize_t client_socket_read(struct client_socket *s, void *data, size_t size, struct errinfo *reterr)
{
	ssize_t n;

	if (!s->ssl) {
		n = receive(s, data, size);
		/* A plain connection's end is as good as any of its bytes. */
		s->is_ended_cleanly = n == 0;
		return n;
	}
	s->wants_write = false;
	ERR_clear_error();
	n = SSL_read(s->ssl, data, (int)MIN(size, (size_t)INT32_MAX));
	return n > 0 ? n : outcome(s, (int)n, reterr);
}

ssize_t client_socket_write(
	struct client_socket *s, const void *data, size_t len, struct errinfo *reterr)
{
	ssize_t n;

	if (!s->ssl)
		return transmit(s, data, len);
	ERR_clear_error();
	n = SSL_write(s->ssl, data, (int)MIN(len, (size_t)INT32_MAX));
	if (n > 0)
		return n;
	n = outcome(s, (int)n, reterr);
	return n ? n : -EPIPE;
}
