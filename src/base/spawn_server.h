/* SPDX-License-Identifier: Apache-2.0 */
/* spawn_server.h - between spawn.c and spawn_server.c. */
#pragma once

#include <sys/types.h>

#include "base/macros.h"

/* spawn_become - after a fork: turn into this program as @name, which finds @sock at SPAWN_SOCKET.
 */
_noreturn_ void spawn_become(int sock, const char *name, const char *arg);

/* spawn_server_ask - the pid of a child that has @sock; -ENOTCONN if there is no server. */
pid_t spawn_server_ask(int sock, const char *name, const char *arg);
