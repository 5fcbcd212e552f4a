/* SPDX-License-Identifier: Apache-2.0 */
/* owner.h - where recordings and what belongs to them live, and whose they are when ingero runs
 * under sudo. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/errinfo.h"

/* store_default_path - $INGERO_DB, else .ingero/ingero.db in the home of the user who called sudo,
 * else in one's own. On success *ret_path is the caller's (free()). -ENOENT: no home is known. */
int store_default_path(char **ret_path, struct errinfo *reterr);

/* owner_home_file - .ingero/@name in the home of the user who called sudo, else in one's own. On
 * success *ret_path is the caller's. -ENOENT: no home is known. */
int owner_home_file(const char *name, char **ret_path, struct errinfo *reterr);

/* owner_give - hand what @fd refers to, just created by root, to the invoking user; no-op without
 * sudo, and where path_user_enter() has made this thread somebody else. -errno on failure. */
int owner_give(int fd);

/* owner_make_folder - the folder of @path, made (0755) and given away if it is missing.
 * *ret_made says whether, so that a failed start can take it back. */
int owner_make_folder(const char *path, bool *ret_made, struct errinfo *reterr);
