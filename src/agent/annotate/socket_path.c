/* SPDX-License-Identifier: Apache-2.0 */
/* socket_path.c - see socket_path.h. The folder is judged by descriptor, without following a link; since only
 * its owner can write to it, what is in it cannot change hands afterwards. Root listens only where
 * nobody else can change a name on the way either. */
#include "agent/annotate/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/macros.h"
#include "base/path_user.h"

#define BACKLOG 64

int socket_path_default(char out[ANNOTATE_PATH_MAX], struct errinfo *reterr)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (geteuid() == 0)
		n = snprintf(out, ANNOTATE_PATH_MAX, "/run/ingero/annotate.sock");
	else if (runtime && runtime[0] == '/')
		n = snprintf(out, ANNOTATE_PATH_MAX, "%s/ingero/annotate.sock", runtime);
	else
		return errinfo_set(reterr, -ENOENT,
			"$XDG_RUNTIME_DIR is not set: give the path of the annotation socket");
	if (n >= ANNOTATE_PATH_MAX)
		return errinfo_set(
			reterr, -ENAMETOOLONG, "$XDG_RUNTIME_DIR is too long for a socket's path");
	return 0;
}

static int unsafe(const char *folder, const char *why, struct errinfo *reterr)
{
	return errinfo_set(reterr, -EPERM,
		"folder %s of the annotation socket %s: remove it, or choose another", folder, why);
}

/* Whether nobody but this user can make @path lead elsewhere. */
static int check_way(const char *path, const char *folder, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = path_user_enter(path, &before, reterr);

	if (r == -EPERM)
		return unsafe(folder, "can be written by others", reterr);
	if (r == 0 && before.changed)
		return unsafe(folder, "can be replaced by another user", reterr);
	return r;
}

/* The folder is made if it is missing. */
static int make_folder(const char *folder, const char *path, struct errinfo *reterr)
{
	char parent[ANNOTATE_PATH_MAX];
	char *slash;
	bool made;
	int r;

	snprintf(parent, sizeof(parent), "%s", folder);
	slash = strrchr(parent, '/');
	if (slash)
		*slash = 0;
	r = check_way(slash ? parent : ".", folder, reterr);
	if (r < 0)
		return r;
	made = mkdir(folder, 0700) == 0;
	if (!made && errno != EEXIST)
		return errinfo_set(
			reterr, -errno, "cannot create folder %s: %s", folder, strerror(errno));
	r = check_way(path, folder, reterr);
	if (r < 0 && made)
		rmdir(folder);
	return r;
}

/* Leaves the folder with the right mode. */
static int prepare_folder(const char *folder, gid_t group, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return unsafe(folder, "is a link or a file", reterr);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errinfo_set(reterr, -errno, "folder %s: %s", folder, strerror(errno));
	if (st.st_uid != geteuid())
		return unsafe(folder, "belongs to another user", reterr);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return unsafe(folder, "can be written by others", reterr);
	if ((group != ANNOTATE_NO_GROUP && fchown(fd, (uid_t)-1, group) < 0) ||
		fchmod(fd, group != ANNOTATE_NO_GROUP ? 0710 : 0700) < 0)
		return errinfo_set(reterr, -errno, "cannot change the group of folder %s: %s",
			folder, strerror(errno));
	return 0;
}

/* Whether somebody accepts connections there. */
static bool is_alive(const struct sockaddr_un *address)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 &&
	       (connect(fd, (const void *)address, sizeof(*address)) == 0 || errno == EAGAIN);
}

static int clear_socket_path(const struct sockaddr_un *address, struct errinfo *reterr)
{
	const char *path = address->sun_path;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT
			       ? 0
			       : errinfo_set(reterr, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return errinfo_set(reterr, -EEXIST, "%s exists and is not an ingero socket", path);
	if (is_alive(address))
		return errinfo_set(reterr, -EBUSY,
			"another `ingero trace --annotate` is listening at %s: stop it first",
			path);
	if (unlink(path) < 0)
		return errinfo_set(reterr, -errno, "cannot remove %s: %s", path, strerror(errno));
	return 0;
}

static int bind_here(
	const struct sockaddr_un *address, gid_t group, int *ret_fd, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const char *path = address->sun_path;
	bool shared = group != ANNOTATE_NO_GROUP;
	mode_t old;
	int r;

	if (fd < 0)
		return -errno;
	old = umask(0177);
	r = bind(fd, (const void *)address, sizeof(*address)) < 0 ? -errno : 0;
	umask(old);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot create %s: %s", path, strerror(-r));
	if ((shared && (chown(path, (uid_t)-1, group) < 0 || chmod(path, 0770) < 0)) ||
		listen(fd, BACKLOG) < 0) {
		r = errinfo_set(reterr, -errno, "cannot share %s with group %u: %s", path,
			(unsigned)group, strerror(errno));
		unlink(path);
		return r;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int socket_path_bind(const char *path, gid_t group, int *ret_fd, struct errinfo *reterr)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char folder[ANNOTATE_PATH_MAX];
	char *slash;
	int r;

	if (strlen(path) >= sizeof(address.sun_path))
		return errinfo_set(reterr, -ENAMETOOLONG, "%.80s…: too long for a socket", path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return errinfo_set(reterr, -EINVAL,
			"%s: the annotation socket needs its own folder; give a full path", path);
	*slash = 0;
	r = make_folder(folder, path, reterr);
	if (r == 0)
		r = prepare_folder(folder, group, reterr);
	if (r == 0)
		r = clear_socket_path(&address, reterr);
	return r < 0 ? r : bind_here(&address, group, ret_fd, reterr);
}
