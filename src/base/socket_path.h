/* SPDX-License-Identifier: Apache-2.0 */
/* socket_path.h - where a Unix socket of ours is, and who may reach it. */
#pragma once

#include <sys/types.h>

#include "base/errinfo.h"

#define SOCKET_PATH_MAX 108 /* of a socket's name in the kernel */
#define SOCKET_NO_GROUP ((gid_t)-1)

/* socket_path_default - root: /run/ingero/@name; else $XDG_RUNTIME_DIR/ingero/@name.
 * -ENOENT if there is no such folder for this user. */
int socket_path_default(const char *name, char out[SOCKET_PATH_MAX], struct errinfo *reterr);

/* socket_path_find - for who connects: @given, or if that is NULL the user's own socket @name if one
 * is there, else the machine's. -ENAMETOOLONG with a sentence. */
int socket_path_find(
	const char *given, const char *name, char out[SOCKET_PATH_MAX], struct errinfo *reterr);

/* socket_path_connect - a connection to @path, the caller's; *ret_fd is untouched on failure, which
 * is what connect(2) gave, without a sentence, or -ENAMETOOLONG with one. */
int socket_path_connect(const char *path, int flags, int *ret_fd, struct errinfo *reterr);

/* socket_path_bind - a listening socket at @path. Its folder is made if missing; it must be a
 * real folder of this user's that nobody else can write to. A socket left by a process that is gone
 * is replaced, anything else at @path is refused; of two programs that start at once one is refused.
 * Mode: folder 0700 and socket 0600, or with @group 0710 and 0770 of that group; where the folder
 * lets another group through already, both may pass (0711) and the sockets' own modes decide.
 * On success *ret_fd is the caller's, non-blocking.
 * -EBUSY: another process listens; -EPERM: the folder is not safe; -EEXIST: something else is
 * there. */
int socket_path_bind(const char *path, gid_t group, int *ret_fd, struct errinfo *reterr);

/* Which process listens on a port of this machine, for the sentence that says so. */

struct port_holder {
	uint32_t pid;
	char comm[64];
};

/* port_holder_find - one that listens on TCP port @port, as process @inside sees the network (0: as this one does).
 * @root is a prefix as in base/file.h. All processes are looked into: not for every call.
 * 0; -ENOENT: nobody, or a process of another user that this one may not look into. */
int port_holder_find(const char *root, uint32_t inside, uint16_t port, struct port_holder *ret);
