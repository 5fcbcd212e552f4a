/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - the remediation stream: a Unix socket at which programs on this machine hear of
 * stragglers, one JSON object a line (stream_message.h).
 *
 * Any number of consumers up to STREAM_CONSUMERS_MAX may be connected; each gets every message that
 * is published while it is. What a consumer has not read yet waits in the kernel, up to
 * STREAM_QUEUE_BYTES; one for which a line does not fit is disconnected, so that it knows that it
 * has missed something and nobody waits for it. Consumers are this user, root, and members of the
 * group that the socket was given to, of whom each has STREAM_CONSUMERS_USER connections at most and all of them leave
 * as many to this user and root.
 *
 * Belongs to one thread and never waits. The owner calls stream_poll() when stream_fd() is readable
 * (loop_watch(), poll(2)), or now and then. */
#pragma once

#include <sys/types.h>

#include "base/errinfo.h"
#include "base/macros.h"
#include "stream/stream_message.h"

#define STREAM_AGENT_SOCKET   "remediate.sock" /* names for socket_path_default() */
#define STREAM_CLUSTER_SOCKET "remediate-cluster.sock"

#define STREAM_CONSUMERS_MAX  32
#define STREAM_CONSUMERS_USER 8
#define STREAM_QUEUE_BYTES    (256u << 10)

/* Why a message, or a consumer, was lost. X(NAME, id) */
#define STREAM_DROPS(X)                                                                            \
	X(NO_CLIENT, "no_client")         /* messages: nobody was there */                         \
	X(MARSHAL_ERROR, "marshal_error") /* messages that could not be written as JSON */         \
	X(WRITE_ERROR, "write_error")     /* consumers whose connection failed */                  \
	X(SLOW_CLIENT, "slow_client")     /* consumers whose queue was full */                     \
	X(NOT_ALLOWED, "not_allowed")     /* connections of other users */                         \
	X(TOO_MANY, "too_many_clients")   /* connections beyond what all, or a user, may have */

enum stream_drop {
#define X(NAME, ...) STREAM_DROP_##NAME,
	STREAM_DROPS(X)
#undef X
		STREAM_DROP_COUNT
};
const char *stream_drop_id(enum stream_drop d);

struct stream_stats {
	uint64_t messages; /* published to at least one consumer */
	uint64_t dropped[STREAM_DROP_COUNT];
	size_t consumers; /* now */
};

struct stream;

/* stream_open - listens at @path, in a folder that is made if missing; errors as of
 * socket_path_bind(): -EBUSY if another program listens there. @group: SOCKET_NO_GROUP, or whose
 * members may connect, too. */
int stream_open(const char *path, gid_t group, struct stream **ret, struct errinfo *reterr);

/* stream_close - disconnects everybody and removes the socket. */
void stream_close(struct stream *s);
/* stream_leave_path - another removes it: this process may not any more. */
void stream_leave_path(struct stream *s);
DEFINE_CLEANUP(struct stream *, stream_close)

int stream_fd(const struct stream *s); /* the stream's; readable: stream_poll() has work */
void stream_poll(struct stream *s);

/* stream_publish - to everybody who is connected now. Lost messages are counted. */
void stream_publish(struct stream *s, const struct stream_message *m);

struct stream_stats stream_stats(const struct stream *s);
