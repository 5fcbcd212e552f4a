/* SPDX-License-Identifier: Apache-2.0 */
/* cert.h - the self-signed certificate of a server that was given none.
 *
 * It is kept in a folder (mode 0700) as cert.pem and key.pem (0600) and made anew only if it is not
 * there, does not fit its key, lacks one of the names, or has less than 60 of its 730 days left:
 * its fingerprint is what clients trust. */
#pragma once

#include <openssl/types.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/errinfo.h"

#define CERT_DAYS       730
#define CERT_RENEW_DAYS 60
#define CERT_NAMES_MAX  64

/* cert_names - localhost, 127.0.0.1, ::1, the machine's name and @more (in the forms of allow.h),
 * each once; NULL-terminated. The caller frees it with cert_names_free(). */
int cert_names(const char *const *more, char ***ret, struct errinfo *reterr);
void cert_names_free(char **names);
DEFINE_CLEANUP(char **, cert_names_free)

/* cert_make - a P-256 key and a certificate for @names from one hour ago to @days from now, in PEM.
 */
int cert_make(
	char *const *names, int days, struct buf *cert, struct buf *key, struct errinfo *reterr);

/* cert_keep - makes sure that @dir holds a good one. Two programs may do so at once. */
int cert_keep(const char *dir, char *const *names, struct errinfo *reterr);

/* cert_fingerprint - SHA-256 in hexadecimal digits. */
int cert_fingerprint(const X509 *cert, char out[65]);

/* Certificates of every kind that ingero makes, put together in one place: P-256,
 * SHA-256, random serial numbers, valid from an hour ago for clients whose clock is behind. */

#define CERT_DAY_S    86400L
#define CERT_PEM_MAX  (256u << 10)
#define CERT_HEX_MAX  65 /* a SHA-256 or a serial number in hexadecimal digits */
#define CERT_NAME_LEN 64 /* what the common name of a certificate can hold */

DEFINE_CLEANUP(X509 *, X509_free)
DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)

enum cert_kind {
	CERT_SELF,      /* of a server, signed by itself */
	CERT_AUTHORITY, /* signs the next two, and no other authority */
	CERT_NODE,      /* shown to clients and to servers */
	CERT_CLIENT,    /* shown to servers only */
};

struct cert_spec {
	enum cert_kind kind;
	const char *fleet;     /* of an authority: the id that its successors keep */
	const char *name;      /* common name */
	char *const *names;    /* DNS names and addresses; NULL-terminated or NULL */
	const char *permit;    /* of an authority: its name constraints as OpenSSL writes them */
	const X509 *permit_as; /* or: those of this one */
	int days;              /* never beyond the issuer's end */
	X509 *issuer;          /* NULL: signed by its own key */
	EVP_PKEY *issuer_key;
};

/* cert_build - a certificate for @key. -EINVAL: @permit is not a list of names. */
int cert_build(const struct cert_spec *s, EVP_PKEY *key, X509 **ret);

/* cert_is_address, cert_is_name - what may stand in a certificate: an IP address, a DNS name. */
bool cert_is_address(const char *name);
bool cert_is_name(const char *name);

/* cert_put_pem, cert_put_key - append. Whoever has put a key wipes it with cert_wipe(). */
int cert_put_pem(const X509 *cert, struct buf *b);
int cert_put_key(EVP_PKEY *key, struct buf *b);
void cert_wipe(struct buf *b); /* and frees it */
#define _cleanup_key_ _cleanup_(cert_wipe)

/* cert_from_pem - the @nth certificate of a text; NULL: there is none that can be read. */
X509 *cert_from_pem(const char *text, size_t len, size_t nth);
EVP_PKEY *cert_key_from_pem(const char *text, size_t len);

/* What is in one. cert_fleet() writes the fleet's id and the generation of an authority's name (a
 * certificate's subject or issuer); false: it is none of ours. */
int64_t cert_from_s(const X509 *cert);
int64_t cert_until_s(const X509 *cert);
int cert_serial(const X509 *cert, char out[CERT_HEX_MAX]);
bool cert_fleet(const X509_NAME *name, char fleet[CERT_HEX_MAX], unsigned *ret_generation);
