/* SPDX-License-Identifier: Apache-2.0 */
/* allow.h - which Host and Origin a server answers to. Without this a web page anywhere could have
 * its name resolved to this machine and read what the browser's user may read.
 *
 * Allowed are loopback's names, the address that the connection came to, the machine's own name if
 * it listens beyond loopback, the names of a certificate that was given (somebody vouched for them,
 * and a browser that was led here by another name refuses the certificate), and what the settings
 * name:
 *	gpu1                  with the port listened on, or without one in Host
 *	gpu1:9443             exactly that, for a forwarded port
 *	https://gpu.example   exactly that origin and its host, for a proxy in front
 * An Origin must have the scheme spoken here, and its port be the one listened on. */
#pragma once

#include "net/address.h"
#include "net/pki/tls.h"

struct allow;

struct allow_settings {
	const char *const *names; /* NULL-terminated or NULL */
	bool tls;
	const struct tls *named_by; /* whose certificate's names are allowed; NULL: none */
	bool beyond_loopback;
	uint16_t port;
};

int allow_new(const struct allow_settings *s, struct allow **ret, struct errinfo *reterr);
DECLARE_FREE(struct allow, allow_free)

/* @local is the connection's own end. */
bool allow_host(const struct allow *a, const char *host, const union address *local);
bool allow_origin(const struct allow *a, const char *origin, const union address *local);
