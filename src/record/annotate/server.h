/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the annotation socket: takes lines from workloads and answers every one, in order,
 * once it is stored or refused.
 *
 * Runs on its owner's thread and never waits: the owner calls annotate_server_poll() often, gives
 * what arrives to the store, and reports back with annotate_server_ack(). */
#pragma once

#include "base/errinfo.h"
#include "base/macros.h"
#include "model/event.h"

#define ANNOTATE_CONNECTIONS_MAX  64
#define ANNOTATE_CONNECTIONS_USER 16   /* of another user than this one and root */
#define ANNOTATE_CONNECTIONS_KEPT 8    /* for these two */
#define ANNOTATE_LINES_PER_S      1000 /* of one connection, or of another user; more have to wait */

struct annotate_server;

/* Takes a copy of @a to be stored; false: there is no room now, the writer is told so. */
typedef bool annotate_put(void *arg, const struct annotation *a, uint64_t ticket);

/* annotate_server_new - serve @listen_fd (socket_path_bind()), which becomes the server's.
 * @root is the prefix of /proc, "" for the real one. */
int annotate_server_new(int listen_fd, const char *root, annotate_put *put, void *arg,
	struct annotate_server **ret);
void annotate_server_free(struct annotate_server *s);
DEFINE_CLEANUP(struct annotate_server *, annotate_server_free)

/* annotate_server_poll - accept, read, answer what can be done now; a bounded number of lines. */
void annotate_server_poll(struct annotate_server *s);

/* annotate_server_ack - the fate of @ticket: the row's id, or a negative errno. */
void annotate_server_ack(struct annotate_server *s, uint64_t ticket, int64_t id);

/* annotate_server_refuse - take no more connections or lines; what was taken is still answered. */
void annotate_server_refuse(struct annotate_server *s);

/* annotate_server_waiting - lines given to the store and not yet acknowledged. */
size_t annotate_server_waiting(const struct annotate_server *s);
