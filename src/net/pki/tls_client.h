/* SPDX-License-Identifier: Apache-2.0 */
/* tls_client.h - what the client's sockets need of a struct tls that tls_client_new() has made. */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>

#include "net/pki/tls.h"

enum tls_ground { /* on which a server is trusted, or not */
	TLS_BY_AUTHORITY,
	TLS_BY_PIN,
	TLS_BY_MEETING,   /* its certificate was known */
	TLS_BY_FIRST_USE, /* it is not known, and trusted from now on */
	TLS_NOT_PINNED,   /* it shows another certificate than the user has named */
	TLS_NOT_AS_MET,   /* than the one that is known */
	TLS_STRANGER,
};

struct tls_meeting { /* of a client and a server */
	struct tls *tls;
	const char *endpoint; /* "gpu1:8080" */
	enum tls_ground ground;
	struct tls_pin shown;
	size_t line;         /* of the file of known nodes: NOT_AS_MET */
	unsigned signed_by;  /* generation of the fleet's CA; 0: of another authority */
	unsigned trusted_ca; /* the newest generation that is trusted; 0: none of that fleet */
};

/* tls_client_ssl - a connection's own state, which will accept a certificate for @host alone: its
 * name or address. @m (its endpoint is set) lasts as long. The caller sets its BIO and frees it. */
int tls_client_ssl(
	struct tls *t, const char *host, struct tls_meeting *m, SSL **ret, struct errinfo *reterr);

/* tls_client_met - the handshake is complete: who is trusted from now on is written down. */
int tls_client_met(const struct tls_meeting *m, struct errinfo *reterr);

/* tls_client_explain - why the last operation on @ssl failed, as OpenSSL's queue of errors has it:
 * -EKEYREJECTED if one side does not trust the other's certificate, else -EPROTO. */
int tls_client_explain(const SSL *ssl, const char *endpoint, struct errinfo *reterr);

/* tls_client_was_cut - whether it failed because the connection ended without TLS's own word. */
bool tls_client_was_cut(void);
