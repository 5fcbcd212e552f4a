/* SPDX-License-Identifier: Apache-2.0 */
/* server_tls.c - see server_tls.h. */
#include "net/server/server_tls.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "net/pki/tls_private.h"

#define SUBJECT_MAX 512

struct bufferevent *server_tls_bufferevent(struct connection *c, struct event_base *base, int fd)
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

int server_tls_accepted(struct connection *c)
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

bool server_tls_chose_h2(const struct connection *c)
{
	const unsigned char *name = NULL;
	unsigned len = 0;

	SSL_get0_alpn_selected(bufferevent_openssl_get_ssl(c->bev), &name, &len);
	return len == 2 && memcmp(name, "h2", 2) == 0;
}

void server_tls_say_goodbye(struct connection *c)
{
	if (!c->tls)
		return;
	ERR_clear_error();
	SSL_shutdown(bufferevent_openssl_get_ssl(c->bev));
	ERR_clear_error(); /* which the next connection would take for its own */
}
