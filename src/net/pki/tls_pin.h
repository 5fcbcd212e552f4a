/* SPDX-License-Identifier: Apache-2.0 */
/* tls_pin.h - fingerprints of certificates, and those that the user trusts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/errinfo.h"

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
