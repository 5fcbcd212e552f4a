/* SPDX-License-Identifier: Apache-2.0 */
/* cert.h - the self-signed certificate of a server that was given none.
 *
 * It is kept in a folder (mode 0700) as cert.pem and key.pem (0600) and made anew only if it is not
 * there, does not fit its key, lacks one of the names, or has less than 60 of its 730 days left:
 * its fingerprint is what clients trust. */
#pragma once

#include <openssl/types.h>

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
