/* SPDX-License-Identifier: Apache-2.0 */
/* tls_private.h - struct tls as its makers and the connections see it. */
#pragma once

#include <openssl/types.h>

#include "net/pki/known_nodes.h"
#include "net/pki/tls.h"

struct tls {
	SSL_CTX *ctx; /* of new connections */
	/* reads the files anew, for tls_reload() */
	int (*load)(struct tls *t, SSL_CTX **ret, struct errinfo *reterr);
	char *ca, *cert, *key; /* files; NULL: not given. A server's ca is of its clients */

	/* of a client */
	struct tls_pins pins;
	char *known_path; /* NULL: nobody is known */
	struct known_nodes known;
	bool first_use;
	struct tls_stranger *strangers;
	size_t stranger_count;

	/* of a server */
	char *state_dir; /* of the self-signed certificate; NULL: cert and key were given */
	char **names;    /* of it; NULL-terminated */
	char fingerprint[TLS_FINGERPRINT_LEN];
};

/* tls_key_check - whether the key in @path is its owner's alone: -EPERM with a sentence if not. */
int tls_key_check(const char *path, struct errinfo *reterr);

/* tls_demands_client - whether it is a server's, and clients must show a certificate. */
bool tls_demands_client(const struct tls *t);

/* tls_reason - the last failure as OpenSSL calls it. */
const char *tls_reason(void);
