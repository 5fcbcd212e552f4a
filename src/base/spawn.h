/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - this program once more, under another name, as a process that may hang or die.
 *
 * The two talk over a pair of sockets that keeps messages apart (SOCK_SEQPACKET). The child shares
 * no memory and no other file with its parent; main() finds out by argv[0] what it is meant to be.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define SPAWN_SOCKET 3 /* the child's end */

/* spawn_self - execute this program as @name with the one argument @arg (NULL: none). The child's
 * standard descriptors are /dev/null, its session its own. *ret_pid is to be reaped by the caller,
 * *ret_socket (closed on exec) is the caller's. Returns 0 or what socketpair(2) or fork(2) gave. */
int spawn_self(const char *name, const char *arg, pid_t *ret_pid, int *ret_socket);

/* spawn_is_gone_after - reap @pid if it ends within @naps of 2 ms; whether it did. */
bool spawn_is_gone_after(pid_t pid, int naps);
