/* SPDX-License-Identifier: Apache-2.0 */
/* path_user.h - with whose rights root touches a path.
 *
 * Root writes into folders of others (under sudo, or where --db says). Whoever may change a name on
 * the way can point it anywhere at any moment, so that no check of the name lasts. Instead this
 * thread takes the rights to files (setfsuid(2)) of the first user on the way who may change a
 * name; from there on the kernel refuses what it would refuse that user: a link to a file of root's
 * leads nowhere. A path that only root can change is used as root; likewise in a folder of root's that an
 * administrator lets a group write to, but for what a member has made there.
 *
 * Threads started in between have the same rights, for their whole life. */
#pragma once

#include <sys/types.h>

#include "base/errinfo.h"

struct path_user { /* what this thread was before */
	bool changed;
	bool shared; /* everybody may make names in the last folder: follow no link there */
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int group_count;
};

#define PATH_USER_INIT ((struct path_user){0})

/* path_user_enter - from here to path_user_leave() this thread uses files with the rights of the
 * user who may change @path, which need not exist yet. Does nothing unless root runs.
 * -EPERM: everybody may replace files in a folder on the way (and sudo names no user to be). */
int path_user_enter(const char *path, struct path_user *ret_before, struct errinfo *reterr);

/* path_user_leave - no-op if nothing was changed. */
void path_user_leave(struct path_user *before);
#define _cleanup_path_user_ _cleanup_(path_user_leave)

/* path_user_check - whether the rights that this thread has are still those for @path, now that
 * names on it were made which others could have laid there first. -EPERM: they are not. */
int path_user_check(const char *path, struct errinfo *reterr);

/* path_user_find - whose rights path_user_enter() would take for @path. */
int path_user_find(const char *path, uid_t *ret, struct errinfo *reterr);

/* path_user_now - whose rights to files this thread has, and who owns the files it makes. */
uid_t path_user_now(void);

/* path_user_invoking - the user who called sudo. False when not root or not under sudo. */
bool path_user_invoking(uid_t *ret_uid, gid_t *ret_gid);

/* Where recordings and what belongs to them live, and whose they are when ingero runs
 * under sudo. */

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
