/* SPDX-License-Identifier: Apache-2.0 */
/* tls_server.c - what a server shows and what it demands of clients.
 *
 * Invariant: a context is complete before it takes the place of the one in use; a file that cannot
 * be read changes nothing. Sessions are not resumed: a full handshake each time is what makes the
 * client's certificate be looked at each time, and connections are kept. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path_user.h"
#include "net/pki/cert.h"
#include "net/secret_file.h"
#include "net/pki/tls_private.h"

#define KEY_MAX (64u << 10)

DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)
DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)
DEFINE_CLEANUP(BIO *, BIO_free_all)

/* Without it OpenSSL would ask on the terminal. */
static int no_password(char *out, int size, int writing, void *arg)
{
	return 0;
}

static int use_key(SSL_CTX *ctx, const char *path, const char *cert, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(KEY_MAX);
	_cleanup_(BIO_free_allp) BIO *bio = NULL;
	_cleanup_(EVP_PKEY_freep) EVP_PKEY *key = NULL;
	int r = secret_file_read(path, "key file", KEY_MAX, &b, reterr);

	if (r < 0)
		return r;
	bio = BIO_new_mem_buf(buf_str(&b), (int)b.len);
	key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
	if (b.data)
		OPENSSL_cleanse(b.data, b.len);
	if (!key)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"cannot read a key from %s: it must be a PEM file without a password",
			path);
	if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"%s is not the key of the certificate in %s", path, cert);
	return 0;
}

static int use_certificate(struct tls *t, SSL_CTX *ctx, char *fingerprint, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	const X509 *cert;
	int r = path_user_enter(t->cert, &before, reterr);

	if (r < 0)
		return r;
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ctx, t->cert) != 1)
		return errinfo_set_exit(reterr, EXIT_CONFIG,
			access(t->cert, R_OK) < 0 ? -errno : -EINVAL,
			"cannot read the certificate %s: %s", t->cert, tls_reason());
	cert = SSL_CTX_get0_certificate(ctx);
	if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EKEYEXPIRED,
			"the certificate %s has expired: renew it", t->cert);
	if (cert_fingerprint(cert, fingerprint) < 0)
		return errinfo_set(reterr, -EIO,
			"cannot compute the fingerprint of the certificate %s", t->cert);
	return use_key(ctx, t->key, t->cert, reterr);
}

/* demand_client - connections without a certificate of the authority end in the handshake. */
static int demand_client(SSL_CTX *ctx, const char *ca, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	STACK_OF(X509_NAME) * names;
	int r = path_user_enter(ca, &before, reterr);

	if (r < 0)
		return r;
	ERR_clear_error();
	names = SSL_load_client_CA_file(ca);
	if (!names || SSL_CTX_load_verify_file(ctx, ca) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return errinfo_set_exit(reterr, EXIT_CONFIG,
			access(ca, R_OK) < 0 ? -errno : -EINVAL,
			"cannot read the CA for client certificates %s: %s", ca, tls_reason());
	}
	SSL_CTX_set_client_CA_list(ctx, names);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
	const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char spoken[] = "\x02h2\x08http/1.1";
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, out_len, spoken, sizeof(spoken) - 1, in, in_len) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* Made if need be, and read, with the rights of whoever may change the folder. */
static int use_kept_certificate(
	struct tls *t, SSL_CTX *ctx, char fingerprint[TLS_FINGERPRINT_LEN], struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = path_user_enter(t->state_dir, &before, reterr);

	if (r == 0)
		r = cert_keep(t->state_dir, t->names, reterr);
	return r < 0 ? r : use_certificate(t, ctx, fingerprint, reterr);
}

static int load(struct tls *t, SSL_CTX **ret, struct errinfo *reterr)
{
	_cleanup_(SSL_CTX_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char fingerprint[TLS_FINGERPRINT_LEN];
	int r;

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
		!SSL_CTX_set1_groups_list(ctx, "X25519:P-256"))
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	r = t->state_dir ? use_kept_certificate(t, ctx, fingerprint, reterr)
			 : use_certificate(t, ctx, fingerprint, reterr);
	if (r == 0 && t->ca)
		r = demand_client(ctx, t->ca, reterr);
	if (r < 0)
		return r;
	memcpy(t->fingerprint, fingerprint, sizeof(fingerprint));
	*ret = TAKE(ctx);
	return 0;
}

static int copy(const char *s, char **ret)
{
	*ret = s ? strdup(s) : NULL;
	return s && !*ret ? -ENOMEM : 0;
}

/* take_paths - the files of the certificate: those given, or those in the folder. */
static int take_paths(struct tls *t, const struct tls_server_settings *s, struct errinfo *reterr)
{
	if (!s->cert != !s->key)
		return errinfo_set_exit(
			reterr, EXIT_CONFIG, -EINVAL, "certificate and key must be given together");
	if (copy(s->client_ca, &t->ca) < 0)
		return -ENOMEM;
	if (s->cert)
		return copy(s->cert, &t->cert) || copy(s->key, &t->key) ? -ENOMEM : 0;
	if (!s->state_dir)
		return errinfo_set(reterr, -EINVAL, "no folder for the certificate");
	if (copy(s->state_dir, &t->state_dir) < 0 ||
		asprintf(&t->cert, "%s/cert.pem", s->state_dir) < 0 ||
		asprintf(&t->key, "%s/key.pem", s->state_dir) < 0)
		return -ENOMEM;
	return cert_names(s->names, &t->names, reterr);
}

int tls_server_new(const struct tls_server_settings *s, struct tls **ret, struct errinfo *reterr)
{
	_cleanup_(tls_freep) struct tls *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	r = take_paths(t, s, reterr);
	if (r < 0)
		return r;
	t->load = load;
	r = load(t, &t->ctx, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

bool tls_has_name(const struct tls *t, const char *name)
{
	X509 *cert = SSL_CTX_get0_certificate(t->ctx);

	/* OpenSSL takes ".example" for every name below it. */
	if (!cert || name[0] == '.' || strchr(name, '*'))
		return false;
	return X509_check_ip_asc(cert, name, 0) == 1 ||
	       X509_check_host(cert, name, strlen(name),
		       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
		       NULL) == 1;
}

bool tls_demands_client(const struct tls *t)
{
	return SSL_CTX_get_verify_mode(t->ctx) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
}
