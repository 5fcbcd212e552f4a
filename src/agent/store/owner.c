/* SPDX-License-Identifier: Apache-2.0 */
/* owner.c - the store's place, and its owner under sudo.
 *
 * Root writes here into a folder that another user controls, so: only what this process has just
 * created is ever given away, by descriptor and never by name, and a folder that is a symbolic link
 * is not followed when running for somebody else. SQLite gives -wal and -shm the owner of the
 * database file by itself. */
#include "agent/store/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HOME_FILE ".ingero/ingero.db"

static bool parse_id(const char *name, unsigned *ret)
{
	const char *text = getenv(name);
	unsigned long v;
	char *end;

	if (!text || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || v >= UINT_MAX) /* (uid_t)-1 means "leave as it is" */
		return false;
	*ret = (unsigned)v;
	return true;
}

bool owner_invoking(uid_t *ret_uid, gid_t *ret_gid)
{
	unsigned uid, gid;

	if (geteuid() != 0 || !parse_id("SUDO_UID", &uid) || !parse_id("SUDO_GID", &gid))
		return false;
	*ret_uid = uid;
	*ret_gid = gid;
	return true;
}

/* The home folder of @uid; "" if unknown. */
static void home_of(uid_t uid, char *out, size_t size)
{
	struct passwd pw, *found = NULL;
	char space[4096];

	out[0] = 0;
	if (getpwuid_r(uid, &pw, space, sizeof(space), &found) == 0 && found && pw.pw_dir)
		snprintf(out, size, "%s", pw.pw_dir);
}

int store_default_path(char **ret_path, struct errinfo *reterr)
{
	const char *set = getenv("INGERO_DB");
	char home[PATH_MAX] = "";
	char *path;
	uid_t uid;
	gid_t gid;
	int n;

	if (set && *set) {
		path = strdup(set);
		if (!path)
			return -ENOMEM;
		*ret_path = path;
		return 0;
	}
	if (owner_invoking(&uid, &gid))
		home_of(uid, home, sizeof(home));
	else if (getenv("HOME"))
		snprintf(home, sizeof(home), "%s", getenv("HOME"));
	if (!home[0])
		home_of(geteuid(), home, sizeof(home));
	if (!home[0])
		return errinfo_set(reterr, -ENOENT,
			"no home folder is known for the database: give its path with --db");
	n = asprintf(&path, "%s/%s", home, HOME_FILE);
	if (n < 0)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}

int owner_give(int fd)
{
	uid_t uid;
	gid_t gid;

	if (!owner_invoking(&uid, &gid))
		return 0;
	return fchown(fd, uid, gid) < 0 ? -errno : 0;
}

static int make_and_give(const char *folder, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (mkdir(folder, 0755) < 0) {
		r = -errno;
		return errinfo_set(reterr, r, "folder %s for the database cannot be made: %s",
			folder, strerror(-r));
	}
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : owner_give(fd);
	if (r < 0) {
		rmdir(folder);
		return errinfo_set(reterr, r, "folder %s cannot be given to its user: %s", folder,
			strerror(-r));
	}
	return 0;
}

int owner_make_folder(const char *path, bool *ret_made, struct errinfo *reterr)
{
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
	if (lstat(folder, &st) == 0) {
		if (S_ISLNK(st.st_mode) && owner_invoking(&uid, &gid) && st.st_uid != 0)
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
