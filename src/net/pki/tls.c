/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - what servers' and clients' TLS have in common. See tls.h. */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "net/pki/cert.h"
#include "net/pki/cert_build.h"
#include "net/pki/tls_private.h"
#include "net/secret_file.h"

#define KEY_MAX   (64u << 10)
#define WARN_DAYS 30

void tls_free(struct tls *t)
{
	SSL_CTX_free(t->ctx);
	free(t->ca);
	free(t->cert);
	free(t->key);
	tls_pins_done(&t->pins);
	free(t->known_path);
	known_nodes_done(&t->known);
	free(t->strangers);
	free(t->state_dir);
	if (t->names)
		cert_names_free(t->names);
	free(t);
}

int tls_reload(struct tls *t, struct errinfo *reterr)
{
	SSL_CTX *ctx = NULL;
	int r = t->load(t, &ctx, reterr);

	if (r < 0)
		return r;
	SSL_CTX_free(t->ctx); /* connections that use it hold it on */
	t->ctx = ctx;
	return 0;
}

int tls_key_check(const char *path, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(KEY_MAX);
	int r = secret_file_read(path, "key file", KEY_MAX, &b, reterr);

	if (b.data)
		OPENSSL_cleanse(b.data, b.len);
	return r;
}

const char *tls_reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_last_error());
	unsigned long first = ERR_peek_error();

	/* Of a file that cannot be read the last words are "system lib"; the errno came before. */
	if (ERR_SYSTEM_ERROR(first))
		return strerror(ERR_GET_REASON(first));
	return text ? text : "unknown reason";
}

const char *tls_fingerprint(const struct tls *t)
{
	return t->fingerprint;
}

const char *tls_cert_path(const struct tls *t)
{
	return t->cert;
}

bool tls_is_self_signed(const struct tls *t)
{
	return t->state_dir != NULL;
}

/* ---- what of the files will soon be too old ---- */

/* A certificate for a few days is not always about to expire. */
static bool is_near(const X509 *cert, int64_t now_s)
{
	int64_t until_s = cert_until_s(cert), life_s = until_s - cert_from_s(cert);
	int64_t warn_s = MIN((int64_t)WARN_DAYS * CERT_DAY_S, life_s / 4);

	return until_s - now_s < warn_s;
}

static void put(struct buf *b, const char *what, const char *path, const X509 *cert, int64_t now_s,
	const char *advice)
{
	int64_t until_s = cert_until_s(cert), left_s = until_s - now_s;
	time_t t = (time_t)until_s;
	char date[32];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
	if (left_s <= 0)
		buf_printf(b, "the %s %s has expired (%s): %s\n", what, path, date, advice);
	else
		buf_printf(b, "the %s %s expires in %lld %s (%s): %s\n", what, path,
			(long long)(left_s >= 2 * CERT_DAY_S ? left_s / CERT_DAY_S : left_s / 3600),
			left_s >= 2 * CERT_DAY_S ? "days" : "hours", date, advice);
}

void tls_expiry(const struct tls *t, struct buf *b)
{
	_cleanup_buf_ struct buf pem = BUF_INIT(CERT_PEM_MAX);
	_cleanup_(X509_freep) X509 *ca = NULL;
	X509 *own = SSL_CTX_get0_certificate(t->ctx);
	int64_t now_s = time(NULL);

	if (own && t->cert && is_near(own, now_s))
		put(b, "certificate", t->cert, own, now_s,
			t->state_dir
				? "restart to create a new one"
				: "make a new one with `ingero cert rotate`, and copy it here");
	if (!t->ca || file_read(t->ca, CERT_PEM_MAX, &pem) < 0)
		return;
	/* The first one signs; the one before it may well expire while a fleet moves on. */
	ca = cert_from_pem(buf_str(&pem), pem.len, 0);
	if (ca && is_near(ca, now_s))
		put(b, "CA certificate", t->ca, ca, now_s, "see `ingero cert rotate --ca`");
}
