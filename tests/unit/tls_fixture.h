/* SPDX-License-Identifier: Apache-2.0 */
/* tls_fixture.h - certificates of a test or benchmark: an authority, and what it signs. P-256. */
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"

#define made_check(x)                                                                              \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "tls_fixture.h: %s is false\n", #x);                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct made_cert {
	EVP_PKEY *key;
	X509 *cert;
	char cert_path[128], key_path[128];
	char fingerprint[65];
};

struct made_dir {
	char path[64];
	char files[64][128];
	size_t count;
};

static inline void made_dir_init(struct made_dir *d)
{
	*d = (struct made_dir){};
	snprintf(d->path, sizeof(d->path), "/tmp/ingero-tls-XXXXXX");
	made_check(mkdtemp(d->path));
}

static inline void made_dir_done(struct made_dir *d)
{
	for (size_t i = 0; i < d->count; i++)
		unlink(d->files[i]);
	rmdir(d->path);
}

static inline FILE *made_file(
	struct made_dir *d, const char *name, const char *suffix, char path[128])
{
	FILE *f;

	made_check(d->count < ARRAY_SIZE(d->files));
	snprintf(path, 128, "%s/%s%s", d->path, name, suffix);
	snprintf(d->files[d->count++], 128, "%s", path);
	f = fopen(path, "w");
	made_check(f);
	fchmod(fileno(f), 0600);
	return f;
}

static inline void made_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	made_check(e);
	X509_add_ext(cert, e, -1);
	X509_EXTENSION_free(e);
}

/* made_cert - a certificate of @issuer (NULL: its own), for @names ("DNS:a,IP:127.0.0.1"; NULL: it
 * is an authority), valid from now + @from_s to now + @to_s; its files are @name.pem, @name.key. */
static inline void made_cert(struct made_cert *c, struct made_dir *d, const char *name,
	const char *names, const struct made_cert *issuer, long from_s, long to_s)
{
	static int serial = 1;
	unsigned char digest[32];
	FILE *f;

	*c = (struct made_cert){.key = EVP_EC_gen("P-256"), .cert = X509_new()};
	if (!issuer)
		issuer = c;
	X509_set_version(c->cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(c->cert), serial++);
	X509_gmtime_adj(X509_getm_notBefore(c->cert), from_s);
	X509_gmtime_adj(X509_getm_notAfter(c->cert), to_s);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(c->cert), "CN", MBSTRING_ASC,
		(const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(c->cert, X509_get_subject_name(issuer->cert));
	X509_set_pubkey(c->cert, c->key);
	made_extension(c->cert, issuer->cert, NID_basic_constraints,
		names ? "critical,CA:FALSE" : "critical,CA:TRUE");
	if (names)
		made_extension(c->cert, issuer->cert, NID_subject_alt_name, names);
	made_check(X509_sign(c->cert, issuer->key, EVP_sha256()) > 0);
	f = made_file(d, name, ".pem", c->cert_path);
	PEM_write_X509(f, c->cert);
	fclose(f);
	f = made_file(d, name, ".key", c->key_path);
	PEM_write_PrivateKey(f, c->key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
	X509_digest(c->cert, EVP_sha256(), digest, NULL);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(c->fingerprint + 2 * i, 3, "%02x", digest[i]);
}

static inline void made_cert_done(struct made_cert *c)
{
	EVP_PKEY_free(c->key);
	X509_free(c->cert);
}

static inline int made_alpn(SSL *ssl, const unsigned char **out, unsigned char *len,
	const unsigned char *in, unsigned int in_len, void *arg)
{
	const char *want = arg;

	(void)ssl;
	if (SSL_select_next_proto((unsigned char **)out, len, (const unsigned char *)want,
		    (unsigned int)strlen(want), in, in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	return SSL_TLSEXT_ERR_OK;
}

/* made_server - a server's context that shows @c and asks for a client's certificate of @client_ca
 * (NULL: none); it speaks @alpn ("\x02h2"; NULL: does not say). */
static inline SSL_CTX *made_server(
	const struct made_cert *c, const struct made_cert *client_ca, const char *alpn)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	SSL_CTX_use_certificate(ctx, c->cert);
	SSL_CTX_use_PrivateKey(ctx, c->key);
	if (client_ca) {
		X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), client_ca->cert);
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	}
	if (alpn)
		SSL_CTX_set_alpn_select_cb(ctx, made_alpn, (void *)(uintptr_t)alpn);
	return ctx;
}
