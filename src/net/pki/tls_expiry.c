/* SPDX-License-Identifier: Apache-2.0 */
/* tls_expiry.c - what of a server's or client's files will soon be too old. */
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "net/pki/cert_build.h"
#include "net/pki/tls_private.h"

#define WARN_DAYS 30

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
				? "restart, and a new one is made"
				: "make a new one with `ingero cert rotate`, and copy it here");
	if (!t->ca || file_read(t->ca, CERT_PEM_MAX, &pem) < 0)
		return;
	/* The first one signs; the one before it may well expire while a fleet moves on. */
	ca = cert_from_pem(buf_str(&pem), pem.len, 0);
	if (ca && is_near(ca, now_s))
		put(b, "CA certificate", t->ca, ca, now_s, "see `ingero cert rotate --ca`");
}
