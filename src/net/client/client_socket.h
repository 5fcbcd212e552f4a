/* SPDX-License-Identifier: Apache-2.0 */
/* client_socket.h - bytes to and from a server, with or without TLS, and when they came.
 *
 * Nothing waits: -EAGAIN says that the event loop should, for reading, and for writing too while
 * wants_write is set. */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/errinfo.h"
#include "net/pki/tls_client.h"

struct client_socket {
	int fd;   /* -1: not open */
	SSL *ssl; /* NULL: plain */
	struct tls_meeting met;
	const char *host;      /* the caller's; for TLS */
	const char *endpoint;  /* the caller's; for sentences: "gpu1:8080" */
	uint64_t received_ns;  /* CLOCK_MONOTONIC: when the kernel took in what was read last */
	uint64_t sent_ns;      /* just before the last write */
	bool is_secure;        /* the handshake is complete */
	bool wants_write;      /* TLS must write before it can read */
	bool is_ended;         /* the other side sends no more, */
	bool is_ended_cleanly; /* and that can be believed */
	int error;             /* of the last system call, positive */
};

/* client_socket_open - begins to connect. 0 or a negative errno. */
int client_socket_open(struct client_socket *s, const struct sockaddr_storage *address);
/* client_socket_connected - after it has become writable: 0, or why there is no connection. */
int client_socket_connected(struct client_socket *s);
void client_socket_close(struct client_socket *s);

/* client_socket_start_tls - @alpn: what to speak inside, as TLS writes it. */
int client_socket_start_tls(
	struct client_socket *s, struct tls *tls, const char *alpn, struct errinfo *reterr);
/* client_socket_handshake - 0 when it is complete, -EAGAIN, or a negative errno and a sentence. */
int client_socket_handshake(struct client_socket *s, struct errinfo *reterr);
/* client_socket_speaks - whether the server has agreed to @alpn. */
bool client_socket_speaks(const struct client_socket *s, const char *alpn);

/* client_socket_read - bytes, 0 at the end, -EAGAIN, or a negative errno; a sentence in @reterr if
 * TLS has one, else its text is empty. client_socket_write likewise. */
ssize_t client_socket_read(
	struct client_socket *s, void *data, size_t size, struct errinfo *reterr);
ssize_t client_socket_write(
	struct client_socket *s, const void *data, size_t len, struct errinfo *reterr);
