/* SPDX-License-Identifier: Apache-2.0 */
/* server_tls.h - the TLS of a server's connection. */
#pragma once

#include "net/server/server_private.h"

struct event_base;

struct bufferevent *server_tls_bufferevent(struct connection *c, struct event_base *base, int fd);
/* server_tls_accepted - after the handshake: remembers whose certificate was shown. */
int server_tls_accepted(struct connection *c);
bool server_tls_chose_h2(const struct connection *c);
void server_tls_say_goodbye(struct connection *c);
