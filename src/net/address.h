/* SPDX-License-Identifier: Apache-2.0 */
/* address.h - addresses to listen on and addresses of peers. Numbers only: a resolver would need
 * shared libraries that the program does not bring along, and would wait. */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/errinfo.h"

#define ADDRESS_TEXT_MAX 64 /* "[…]:65535" with a scope */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage storage;
};

/* address_parse - "127.0.0.1:80", "[::1]:80", ":80" (every address), "localhost:80" and "80" (127.0.0.1). */
int address_parse(const char *text, union address *ret, struct errinfo *reterr);

/* address_parse_host - "127.0.0.1", "::1"; -EINVAL if it is a name. */
int address_parse_host(const char *text, union address *ret);

/* address_format - with its port: "127.0.0.1:80"; address_format_host without: "::1". An IPv4
 * address in IPv6's clothes is written as what it is. */
void address_format(const union address *a, char out[ADDRESS_TEXT_MAX]);
void address_format_host(const union address *a, char out[ADDRESS_TEXT_MAX]);

socklen_t address_len(const union address *a);
uint16_t address_port(const union address *a);
bool address_is_loopback(const union address *a);
/* address_text_is_loopback - whether only this machine can reach @address ("host:port"). */
bool address_text_is_loopback(const char *address);
bool address_is_any(const union address *a); /* every address of this machine */
bool address_host_equal(const union address *a, const union address *b);
