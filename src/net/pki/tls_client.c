/* SPDX-License-Identifier: Apache-2.0 */
/* tls_client.c - which servers a client trusts, what it shows them, and why a handshake failed.
 *
 * A server is trusted if its certificate is of an authority (or is itself one of the certificates
 * in the file of authorities) and holds the name or address that was asked for; or if it shows
 * exactly the certificate of a fingerprint, or of an earlier meeting: then neither authority, name
 * nor dates matter, because no other certificate would do. */
#include "net/pki/tls_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/pki/cert_build.h"
#include "net/pki/tls_private.h"

DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)

/* ---- trust ---- */

/* Where distributions keep their authorities; a static program cannot know which it runs on. */
static int trust_system(SSL_CTX *ctx)
{
	static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

	SSL_CTX_set_default_verify_paths(ctx);
	if (getenv(X509_get_default_cert_file_env()) || !access(X509_get_default_cert_dir(), R_OK))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(bundles); i++)
		if (!access(bundles[i], R_OK))
			return SSL_CTX_load_verify_file(ctx, bundles[i]) == 1 ? 0 : -EINVAL;
	return 0; /* nobody is trusted: each server is refused with a sentence */
}

static int trust_file(SSL_CTX *ctx, const char *path, struct errinfo *reterr)
{
	ERR_clear_error();
	if (SSL_CTX_load_verify_file(ctx, path) != 1)
		return errinfo_set(reterr, access(path, R_OK) < 0 ? -errno : -EINVAL,
			"cannot read the CA certificates from %s: %s", path, tls_reason());
	/* What the file holds is trusted as it is: a server's own certificate too. */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
	return 0;
}

/* ---- what it shows ---- */

static int show(SSL_CTX *ctx, const char *cert, const char *key, struct errinfo *reterr)
{
	int r = tls_key_check(key, reterr);

	if (r < 0)
		return r;
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
		return errinfo_set(reterr, access(cert, R_OK) < 0 ? -errno : -EINVAL,
			"cannot read the client certificate from %s: %s", cert, tls_reason());
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) == 1)
		return 0;
	if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
		return errinfo_set(
			reterr, -EINVAL, "%s is not the key of the certificate in %s", key, cert);
	return errinfo_set(
		reterr, -EINVAL, "cannot read the client key from %s: %s", key, tls_reason());
}

/* ---- the context ---- */

static int load(struct tls *t, SSL_CTX **ret, struct errinfo *reterr)
{
	_cleanup_(SSL_CTX_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	int r = 0;

	if (!ctx)
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	/* Bytes that the kernel did not take are offered again from wherever they lie by then. */
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_cert_verify_callback(ctx, tls_judge, NULL);
	if (t->ca)
		r = trust_file(ctx, t->ca, reterr);
	else
		r = trust_system(ctx);
	if (r == 0 && t->cert)
		r = show(ctx, t->cert, t->key, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(ctx);
	return 0;
}

static int copy(const char *s, char **ret)
{
	*ret = s ? strdup(s) : NULL;
	return s && !*ret ? -ENOMEM : 0;
}

int tls_client_new(const struct tls_client_settings *s, struct tls **ret, struct errinfo *reterr)
{
	_cleanup_(tls_freep) struct tls *t = calloc(1, sizeof(*t));
	int r;

	if (!t || copy(s->ca, &t->ca) || copy(s->cert, &t->cert) || copy(s->key, &t->key))
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	if (!s->cert != !s->key)
		return errinfo_set(
			reterr, -EINVAL, "client certificate and key must be given together");
	for (size_t i = 0; i < s->pin_count; i++) {
		r = tls_pins_add(&t->pins, s->pins[i], reterr);
		if (r < 0)
			return r;
	}
	t->first_use = s->first_use;
	if (copy(s->known, &t->known_path))
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	r = s->known ? known_nodes_load(s->known, &t->known, reterr) : 0;
	if (r < 0)
		return r;
	t->load = load;
	r = load(t, &t->ctx, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

/* ---- one connection ---- */

static bool is_address(const char *host)
{
	unsigned char a[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, a) == 1 || inet_pton(AF_INET6, host, a) == 1;
}

/* The name that must be in the certificate; also told to the server, which may have several. */
static int expect(SSL *ssl, const char *host)
{
	char name[256];
	size_t len = strlen(host);

	if (is_address(host))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	if (len && host[len - 1] == '.') /* the root, which certificates leave out */
		len--;
	snprintf(name, sizeof(name), "%.*s", (int)len, host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
}

int tls_client_ssl(
	struct tls *t, const char *host, struct tls_meeting *m, SSL **ret, struct errinfo *reterr)
{
	SSL *ssl = SSL_new(t->ctx);

	if (!ssl || !expect(ssl, host)) {
		SSL_free(ssl);
		return errinfo_set(reterr, -ENOMEM, "%s: out of memory for TLS", m->endpoint);
	}
	m->tls = t;
	SSL_set_app_data(ssl, m);
	SSL_set_connect_state(ssl);
	*ret = ssl;
	return 0;
}
