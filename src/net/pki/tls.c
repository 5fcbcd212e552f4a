/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - what servers' and clients' TLS have in common. See tls.h. */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "net/pki/cert.h"
#include "net/secret_file.h"
#include "net/pki/tls_private.h"

#define KEY_MAX (64u << 10)

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
