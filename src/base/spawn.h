/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - this program once more, under another name, as a process that may hang or die.
 *
 * The two talk over a pair of sockets that keeps messages apart (SOCK_SEQPACKET). The child shares
 * no memory and no other file with its parent; main() finds out by argv[0] what it is meant to be.
 *
 * A program that gives up its privileges (base/confine_thread.h) can begin no process that has them
 * for long enough to become another user. It calls spawn_server_start() before: a small process
 * that stays behind does it for spawn_self() then, and its children are the caller's.
 */
#pragma once

#include <sys/types.h>

#include "base/macros.h"

#define SPAWN_SOCKET 3 /* the child's end */

/* spawn_self - execute this program as @name with the one argument @arg (NULL: none). The child's
 * standard descriptors are /dev/null, its session its own. *ret_pid is to be reaped by the caller,
 * *ret_socket (closed on exec) is the caller's. Returns 0 or what socketpair(2) or fork(2) gave;
 * -EPERM if the server was not told of @name, -EPIPE if it is gone. Any thread may call it. */
int spawn_self(const char *name, const char *arg, pid_t *ret_pid, int *ret_socket);

/* spawn_is_gone_after - reap @pid if it ends within @naps of 2 ms; whether it did. */
bool spawn_is_gone_after(pid_t pid, int waits);

struct spawn_program {
	const char *name, *arg; /* as for spawn_self() */
};

/* spawn_server_start - begin it. It starts the @count @programs and no other, and removes the files
 * @sockets (SPAWN_SOCKETS of them, any may be NULL; @sockets NULL: none) when spawn_server_remove() says
 * so; all of them are to stay valid. To be called once, while there is one thread. It ends with the caller. */
#define SPAWN_SOCKETS 2
int spawn_server_start(
	const struct spawn_program *programs, size_t count, const char *const *sockets);

/* spawn_server_remove - remove those files. -ENOTCONN if there is no server. */
int spawn_server_remove(void);
