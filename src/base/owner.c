/* SPDX-License-Identifier: Apache-2.0 */
/* owner.c - the place of a user's files, and their owner under sudo.
 *
 * In a folder that another user controls, files are made with that user's rights (base/path_user.h,
 * by the callers). In one of root's, only what this process has just created is ever given away, by
 * descriptor and never by name. SQLite gives -wal and -shm the owner of the database file. */
#include "base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path_user.h"

#define HOME_FILE "ingero.db"

/* The home folder of @uid; "" if unknown. */
static void home_of(uid_t uid, char *out, size_t size)
{
	struct passwd pw, *found = NULL;
	char space[4096];

	out[0] = 0;
	if (getpwuid_r(uid, &pw, space, sizeof(space), &found) == 0 && found && pw.pw_dir)
		snprintf(out, size, "%s", pw.pw_dir);
}

int owner_home_file(const char *name, char **ret_path, struct errinfo *reterr)
{
	char home[PATH_MAX] = "";
	char *path;
	uid_t uid;
	gid_t gid;

	if (path_user_invoking(&uid, &gid))
		home_of(uid, home, sizeof(home));
	else if (getenv("HOME"))
		snprintf(home, sizeof(home), "%s", getenv("HOME"));
	if (!home[0])
		home_of(geteuid(), home, sizeof(home));
	if (!home[0])
		return errinfo_set(reterr, -ENOENT, "unknown home folder for %s", name);
	if (asprintf(&path, "%s/.ingero/%s", home, name) < 0)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}

int store_default_path(char **ret_path, struct errinfo *reterr)
{
	const char *set = getenv("INGERO_DB");
	char *copy;
	int r;

	if (!set || !*set) {
		r = owner_home_file(HOME_FILE, ret_path, reterr);
		return r == -ENOENT
			       ? errinfo_set(reterr, r,
					 "unknown home folder for the database: give its path with --db")
			       : r;
	}
	copy = strdup(set);
	if (!copy)
		return -ENOMEM;
	*ret_path = copy;
	return 0;
}

int owner_give(int fd)
{
	uid_t uid;
	gid_t gid;

	/* With the rights of another, what was made is that one's already. */
	if (!path_user_invoking(&uid, &gid) || path_user_now() != 0)
		return 0;
	return fchown(fd, uid, gid) < 0 ? -errno : 0;
}

static int make_and_give(const char *folder, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (mkdir(folder, 0755) < 0) {
		r = -errno;
		return errinfo_set(reterr, r, "cannot create folder %s for the database: %s",
			folder, strerror(-r));
	}
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : owner_give(fd);
	if (r < 0) {
		rmdir(folder);
		return errinfo_set(reterr, r, "cannot change the owner of folder %s: %s", folder,
			strerror(-r));
	}
	return 0;
}

int owner_make_folder(const char *path, bool *ret_made, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_free_ char *folder = strdup(path);
	struct stat st;
	char *slash;
	uid_t uid;
	gid_t gid;
	int r;

	if (!folder)
		return -ENOMEM;
	*ret_made = false;
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0; /* the working folder, or the root: both are there */
	*slash = 0;
	r = path_user_enter(folder, &before, reterr);
	if (r < 0)
		return r;
	if (lstat(folder, &st) == 0) {
		if (S_ISLNK(st.st_mode) && path_user_invoking(&uid, &gid) && st.st_uid != 0)
			return errinfo_set(reterr, -EACCES,
				"folder %s is a symbolic link, which is not followed under sudo: "
				"give the real path with --db",
				folder);
		return 0;
	}
	if (errno != ENOENT)
		return errinfo_set(reterr, -errno, "folder %s: %s", folder, strerror(errno));
	r = make_and_give(folder, reterr);
	if (r < 0)
		return r;
	*ret_made = true;
	return 0;
}
