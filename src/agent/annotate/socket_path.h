/* SPDX-License-Identifier: Apache-2.0 */
/* socket_path.h - where the annotation socket is, and who may reach it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/errinfo.h"

#define ANNOTATE_PATH_MAX 108 /* of a socket's name in the kernel */
#define ANNOTATE_NO_GROUP ((gid_t)-1)

/* socket_path_default - root: /run/ingero/annotate.sock; else $XDG_RUNTIME_DIR/ingero/… .
 * -ENOENT if there is no such folder for this user. */
int socket_path_default(char out[ANNOTATE_PATH_MAX], struct errinfo *reterr);

/* socket_path_bind - a listening socket at @path. Its folder is made if missing; it must be a
 * real folder of this user's that nobody else can write to. A socket left by a process that is gone
 * is replaced; anything else at @path is refused. Mode: folder 0700 and socket 0600, or with @group
 * 0710 and 0770 of that group. On success *ret_fd is the caller's, non-blocking.
 * -EBUSY: another process listens; -EPERM: the folder is not safe; -EEXIST: something else is
 * there. */
int socket_path_bind(const char *path, gid_t group, int *ret_fd, struct errinfo *reterr);
