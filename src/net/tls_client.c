/* SPDX-License-Identifier: Apache-2.0 */
/* tls_client.c - which servers a client trusts, what it shows them, and why a handshake failed.
 *
 * A server is trusted if its certificate is of an authority (or is itself one of the certificates
 * in the file of authorities) and holds the name or address that was asked for; or, with a
 * fingerprint, if it shows exactly that certificate: then neither authority, name nor dates matter,
 * because no other certificate would do. */
#include "net/tls_client.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/tls_private.h"

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

/* Instead of OpenSSL's walk along the chain. */
static int check_fingerprint(X509_STORE_CTX *store, void *arg)
{
	const struct tls_pin *want = arg;
	unsigned char have[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	X509 *leaf = X509_STORE_CTX_get0_cert(store);

	if (leaf && X509_digest(leaf, EVP_sha256(), have, &len) == 1 &&
		len == sizeof(want->bytes) && !CRYPTO_memcmp(have, want->bytes, len)) {
		X509_STORE_CTX_set_error(store, X509_V_OK);
		return 1;
	}
	X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

/* "AB:CD:…" or "abcd…", as openssl and we print it. */
static int parse_fingerprint(const char *s, struct tls_pin *ret, struct errinfo *reterr)
{
	struct tls_pin f = {};
	size_t digits = 0;

	for (; *s; s++) {
		int c = tolower((unsigned char)*s);

		if (c == ':' && digits && digits % 2 == 0)
			continue;
		if (!isxdigit(c) || digits == 2 * sizeof(f.bytes))
			break;
		f.bytes[digits / 2] = (unsigned char)(f.bytes[digits / 2] << 4 |
						      (c <= '9' ? c - '0' : c - 'a' + 10));
		digits++;
	}
	if (*s || digits != 2 * sizeof(f.bytes))
		return errinfo_set(reterr, -EINVAL,
			"a fingerprint has 64 hexadecimal digits (SHA-256); the server prints it when it starts");
	*ret = f;
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
	if (t->is_pinned)
		SSL_CTX_set_cert_verify_callback(ctx, check_fingerprint, &t->pin);
	else if (t->ca)
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
	if (s->fingerprint) {
		r = parse_fingerprint(s->fingerprint, &t->pin, reterr);
		if (r < 0)
			return r;
		t->is_pinned = true;
	}
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
	struct tls *t, const char *host, const char *endpoint, SSL **ret, struct errinfo *reterr)
{
	SSL *ssl = SSL_new(t->ctx);

	if (!ssl || !expect(ssl, host)) {
		SSL_free(ssl);
		return errinfo_set(reterr, -ENOMEM, "%s: out of memory for TLS", endpoint);
	}
	SSL_set_connect_state(ssl);
	*ret = ssl;
	return 0;
}

/* ---- why not ---- */

static int explain_verify(long why, const char *endpoint, struct errinfo *reterr)
{
	switch (why) {
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s is for another name: use a name in the certificate, or add this name to it",
			endpoint);
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s has expired: renew it on the server", endpoint);
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s is not valid yet: compare the clocks of both "
			"machines",
			endpoint);
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s is not signed by a trusted CA: give --ca-cert with the CA's certificate, or with the server's own if it is self-signed",
			endpoint);
	case X509_V_ERR_APPLICATION_VERIFICATION:
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s does not match the given fingerprint: compare it with the one that the server prints when it starts",
			endpoint);
	default:
		return errinfo_set(reterr, -EKEYREJECTED, "the certificate of %s is rejected: %s",
			endpoint, X509_verify_cert_error_string(why));
	}
}

int tls_client_explain(const SSL *ssl, const char *endpoint, struct errinfo *reterr)
{
	switch (ERR_GET_REASON(ERR_peek_error())) {
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
		return explain_verify(SSL_get_verify_result(ssl), endpoint, reterr);
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
	case SSL_R_UNEXPECTED_MESSAGE:
		return errinfo_set(
			reterr, -EPROTO, "%s does not use TLS: give --no-tls or http://", endpoint);
	case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
	case SSL_R_UNSUPPORTED_PROTOCOL:
		return errinfo_set(reterr, -EPROTO,
			"%s does not support TLS 1.3, the only accepted version: update the server",
			endpoint);
	case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
		return errinfo_set(reterr, -EPROTO,
			"%s uses another protocol inside TLS than requested: check the port",
			endpoint);
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		return errinfo_set(reterr, -EKEYREJECTED,
			"%s requires a client certificate: give --client-cert and --client-key",
			endpoint);
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
		return errinfo_set(reterr, -EKEYREJECTED,
			"%s rejects the client certificate (%s): give one signed by its CA with --client-cert and --client-key",
			endpoint, tls_reason());
	default:
		return errinfo_set(
			reterr, -EPROTO, "TLS with %s failed: %s", endpoint, tls_reason());
	}
}

bool tls_client_was_cut(void)
{
	return ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
}
