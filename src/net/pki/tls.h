/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - certificates and what a connection demands of its peer. TLS 1.3 only.
 *
 * A server without certificate files keeps a self-signed P-256 one in a folder of its own, so that
 * its fingerprint stays the same; a client may trust that one certificate by its fingerprint, by
 * naming the file as its authority, or because it has met it before. Key files must be the owner's alone (mode & 077 is 0), unless
 * INGERO_TLS_ALLOW_LOOSE_KEY_PERMS=1. */
#pragma once

#include <openssl/types.h>

#include "base/buf.h"
#include "base/errinfo.h"

/* Fingerprints of certificates, and those that the user trusts. */

#define TLS_PIN_BYTES 32 /* SHA-256 */
#define TLS_PINS_MAX  1024
#define TLS_NODE_MAX  272 /* "gpu1:8080", "[::1]:8080" */

struct tls_pin {
	unsigned char bytes[TLS_PIN_BYTES];
};

/* tls_pin_parse - "AB:CD:…" or "abcd…", as openssl and we print it. -EINVAL. */
int tls_pin_parse(const char *s, size_t len, struct tls_pin *ret);
void tls_pin_text(const struct tls_pin *p, char out[2 * TLS_PIN_BYTES + 1]);
bool tls_pin_equal(const struct tls_pin *a, const struct tls_pin *b); /* in constant time */

struct tls_pins {
	struct tls_pin_row {
		char node[TLS_NODE_MAX]; /* with or without a port; "": any */
		struct tls_pin pin;
	} * rows;
	size_t count;
};
void tls_pins_done(struct tls_pins *p);

/* tls_pins_add - "HEX" or "NODE=HEX". -EINVAL with a sentence. */
int tls_pins_add(struct tls_pins *p, const char *text, struct errinfo *reterr);

enum tls_pins_verdict {
	TLS_PINS_SILENT, /* nothing is said about this node */
	TLS_PINS_MATCH,
	TLS_PINS_DIFFER,
};

/* tls_pins_judge - a node that has fingerprints of its own must show one of them; another one of
 * those for any node, if there are such. */
enum tls_pins_verdict tls_pins_judge(
	const struct tls_pins *p, const char *endpoint, const struct tls_pin *shown);

struct tls; /* shared by the connections that were made with it */

struct tls_server_settings {
	const char *cert, *key; /* PEM; both or none */
	const char *client_ca;  /* clients must show a certificate of this authority; NULL: none */
	const char *state_dir;  /* without cert: where the self-signed one is kept */
	const char *const *names; /* of the self-signed one besides localhost, 127.0.0.1, ::1 and
				     the host's; NULL-terminated or NULL */
};

struct tls_client_settings {
	const char *ca;         /* PEM of the authorities to trust; NULL: the system's */
	const char *cert, *key; /* shown to servers; both or none */
	/* Fingerprints to trust instead, "HEX" or "NODE=HEX"; see tls.h. */
	const char *const *pins;
	size_t pin_count;
	const char *known; /* file of nodes met before (known_nodes.h); NULL: none is looked at */
	bool first_use;    /* trust whoever is not in it, and write that down there */
};

int tls_server_new(const struct tls_server_settings *s, struct tls **ret, struct errinfo *reterr);
int tls_client_new(const struct tls_client_settings *s, struct tls **ret, struct errinfo *reterr);
DECLARE_FREE(struct tls, tls_free)

/* Servers that nobody vouches for and that are not in the file of known nodes either: they were
 * refused. */
struct tls_stranger {
	char node[TLS_NODE_MAX];
	struct tls_pin pin;
};
size_t tls_strangers(const struct tls *t, const struct tls_stranger **ret);
/* tls_trust - from now on, here and in the file. */
int tls_trust(struct tls *t, const struct tls_stranger *s, struct errinfo *reterr);
/* tls_forget_strangers - those that were refused so far. */
void tls_forget_strangers(struct tls *t);

/* tls_expiry - appends a line for each file that is too old soon: its own certificate, its CA. */
void tls_expiry(const struct tls *t, struct buf *b);

/* tls_reload - reads the files again: new connections use them, or after a failure what was before.
 */
int tls_reload(struct tls *t, struct errinfo *reterr);

#define TLS_FINGERPRINT_LEN 65                    /* SHA-256 in lower-case hexadecimal digits */
const char *tls_fingerprint(const struct tls *t); /* of the server's own certificate */
const char *tls_cert_path(const struct tls *t);   /* its file: what a client may name as its CA */
bool tls_is_self_signed(const struct tls *t);

/* tls_has_name - whether the certificate that the server shows now, after a reload the new one, is
 * for the DNS name or address @name. */
bool tls_has_name(const struct tls *t, const char *name);

/* What the client's sockets need of a struct tls that tls_client_new() has made. */

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
