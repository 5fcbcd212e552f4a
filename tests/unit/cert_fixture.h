/* SPDX-License-Identifier: Apache-2.0 */
/* cert_fixture.h - authorities and certificates in a folder of the test's own. */
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"

struct made {
	X509 *cert;
	EVP_PKEY *key;
	char cert_path[128], key_path[128];
};

static inline void made_extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *e;
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(e);
	assert_int_equal(X509_add_ext(cert, e, -1), 1);
	X509_EXTENSION_free(e);
}

static inline void made_write(const struct made *m)
{
	FILE *f = fopen(m->cert_path, "w");

	assert_non_null(f);
	assert_int_equal(PEM_write_X509(f, m->cert), 1);
	fclose(f);
	f = fopen(m->key_path, "w");
	assert_non_null(f);
	assert_int_equal(fchmod(fileno(f), 0600), 0);
	assert_int_equal(PEM_write_PrivateKey(f, m->key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(f);
}

/* made_new - "DIR/NAME.pem" and "DIR/NAME.key". @issuer NULL: an authority. @usage: "serverAuth" or
 * "clientAuth". Valid from @from_s to @to_s from now. */
static inline void made_new(struct made *m, const char *dir, const char *name, struct made *issuer,
	const char *usage, long from_s, long to_s)
{
	static long serial = 1;
	X509_NAME *subject;

	*m = (struct made){.cert = X509_new(), .key = EVP_EC_gen("P-256")};
	snprintf(m->cert_path, sizeof(m->cert_path), "%s/%s.pem", dir, name);
	snprintf(m->key_path, sizeof(m->key_path), "%s/%s.key", dir, name);
	X509_set_version(m->cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(m->cert), serial++);
	X509_gmtime_adj(X509_getm_notBefore(m->cert), from_s);
	X509_gmtime_adj(X509_getm_notAfter(m->cert), to_s);
	X509_set_pubkey(m->cert, m->key);
	subject = X509_get_subject_name(m->cert);
	X509_NAME_add_entry_by_txt(
		subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(m->cert, issuer ? X509_get_subject_name(issuer->cert) : subject);
	if (issuer) {
		made_extend(m->cert, issuer->cert, NID_basic_constraints, "critical,CA:FALSE");
		made_extend(m->cert, issuer->cert, NID_ext_key_usage, usage);
		made_extend(
			m->cert, issuer->cert, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
	} else {
		made_extend(m->cert, m->cert, NID_basic_constraints, "critical,CA:TRUE");
		made_extend(m->cert, m->cert, NID_key_usage, "critical,keyCertSign");
	}
	assert_true(X509_sign(m->cert, issuer ? issuer->key : m->key, EVP_sha256()) > 0);
	made_write(m);
}

static inline void made_done(struct made *m)
{
	unlink(m->cert_path);
	unlink(m->key_path);
	X509_free(m->cert);
	EVP_PKEY_free(m->key);
}
