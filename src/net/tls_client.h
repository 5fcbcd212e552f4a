/* SPDX-License-Identifier: Apache-2.0 */
/* tls_client.h - what the client's sockets need of a struct tls that tls_client_new() has made. */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>

#include "net/tls.h"

/* tls_client_ssl - a connection's own state, which will accept a certificate for @host alone: its
 * name or address. @place is for sentences. The caller sets its BIO and frees it. */
int tls_client_ssl(
	struct tls *t, const char *host, const char *endpoint, SSL **ret, struct errinfo *reterr);

/* tls_client_explain - why the last operation on @ssl failed, as OpenSSL's queue of errors has it:
 * -EKEYREJECTED if one side does not trust the other's certificate, else -EPROTO. */
int tls_client_explain(const SSL *ssl, const char *endpoint, struct errinfo *reterr);

/* tls_client_was_cut - whether it failed because the connection ended without TLS's own word. */
bool tls_client_was_cut(void);
