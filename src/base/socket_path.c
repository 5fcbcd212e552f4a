/* SPDX-License-Identifier: Apache-2.0 */
/* socket_path.c - see socket_path.h. The folder is judged by descriptor, without following a link; since only
 * its owner can write to it, what is in it cannot change hands afterwards. Root listens only where
 * nobody else can change a name on the way either. The folder is locked from the look at an old
 * socket until the new one listens, so that no two programs find it dead and remove each other's. */
#include "base/socket_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/path_user.h"

/* The kernel lists sockets by number, and each process what it has
 * open; both are read anew each time. */

#define TABLE_MAX (8 << 20) /* 150 bytes a socket */
#define LISTENING 0x0a
#define LINKS_MAX 65536 /* descriptors looked at in a process */

static void dir_closep(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* The number of the socket that listens on @port, of a line of /proc/net/tcp; 0: not such a line. */
static uint64_t listening_inode(const char *line, uint16_t port)
{
	unsigned local, state;
	uint64_t inode;

	if (sscanf(line,
		    " %*u: %*[0-9A-Fa-f]:%4x %*[0-9A-Fa-f]:%*x %2x %*x:%*x %*x:%*x %*x %*u %*u %" SCNu64,
		    &local, &state, &inode) != 3)
		return 0;
	return local == port && state == LISTENING ? inode : 0;
}

static uint64_t find_socket(const char *root, uint32_t inside, uint16_t port)
{
	char tables[2][48];

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (inside)
			snprintf(tables[i], sizeof(tables[i]), "/proc/%" PRIu32 "/net/tcp%s",
				inside, i ? "6" : "");
		else
			snprintf(tables[i], sizeof(tables[i]), "/proc/net/tcp%s", i ? "6" : "");
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT(TABLE_MAX + 1);

		(void)file_read_at(root, tables[i], TABLE_MAX, &text);
		for (const char *line = buf_str(&text); line; line = strchr(line, '\n')) {
			uint64_t inode;

			line += *line == '\n';
			inode = listening_inode(line, port);
			if (inode)
				return inode;
		}
	}
	return 0;
}

static bool holds(const char *root, const char *pid, const char *name)
{
	_cleanup_(dir_closep) DIR *d = NULL;
	char path[PATH_MAX], target[64];
	struct dirent *e;

	if (file_join(path, sizeof(path), root, FORMATTED(64, "/proc/%.16s/fd", pid)) < 0)
		return false;
	d = opendir(path);
	for (int i = 0; d && i < LINKS_MAX && (e = readdir(d)); i++) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = 0;
		if (!strcmp(target, name))
			return true;
	}
	return false;
}

int port_holder_find(const char *root, uint32_t inside, uint16_t port, struct port_holder *ret)
{
	_cleanup_(dir_closep) DIR *d = NULL;
	uint64_t inode = find_socket(root, inside, port);
	char path[PATH_MAX], name[64], comm[64];
	struct dirent *e;

	if (!inode || file_join(path, sizeof(path), root, "/proc") < 0)
		return -ENOENT;
	snprintf(name, sizeof(name), "socket:[%" PRIu64 "]", inode);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || !holds(root, e->d_name, name))
			continue;
		snprintf(comm, sizeof(comm), "/proc/%.16s/comm", e->d_name);
		*ret = (struct port_holder){.pid = (uint32_t)strtoul(e->d_name, NULL, 10)};
		if (file_read_line(root, comm, ret->comm, sizeof(ret->comm)) < 0)
			snprintf(ret->comm, sizeof(ret->comm), "a program");
		return 0;
	}
	return -ENOENT;
}

#define BACKLOG 64

int socket_path_default(const char *name, char out[SOCKET_PATH_MAX], struct errinfo *reterr)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (geteuid() == 0)
		n = snprintf(out, SOCKET_PATH_MAX, "/run/ingero/%s", name);
	else if (runtime && runtime[0] == '/')
		n = snprintf(out, SOCKET_PATH_MAX, "%s/ingero/%s", runtime, name);
	else
		return errinfo_set(reterr, -ENOENT,
			"$XDG_RUNTIME_DIR is not set: give the path of the socket");
	if (n >= SOCKET_PATH_MAX)
		return errinfo_set(
			reterr, -ENAMETOOLONG, "$XDG_RUNTIME_DIR is too long for a socket's path");
	return 0;
}

int socket_path_find(
	const char *given, const char *name, char out[SOCKET_PATH_MAX], struct errinfo *reterr)
{
	if (!given && (socket_path_default(name, out, NULL) < 0 || access(out, F_OK) < 0))
		snprintf(out, SOCKET_PATH_MAX, "/run/ingero/%s", name);
	if (given && strlen(given) >= SOCKET_PATH_MAX)
		return errinfo_set_exit(
			reterr, EXIT_USAGE, -ENAMETOOLONG, "%.80s…: too long for a socket", given);
	if (given)
		snprintf(out, SOCKET_PATH_MAX, "%s", given);
	return 0;
}

static int address_set(struct sockaddr_un *address, const char *path, struct errinfo *reterr)
{
	if (strlen(path) >= sizeof(address->sun_path))
		return errinfo_set_exit(
			reterr, EXIT_USAGE, -ENAMETOOLONG, "%.80s…: too long for a socket", path);
	snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
	return 0;
}

int socket_path_connect(const char *path, int flags, int *ret_fd, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r = fd < 0 ? -errno : address_set(&address, path, reterr);

	if (r < 0)
		return r;
	if (connect(fd, (const void *)&address, sizeof(address)) < 0)
		return -errno;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int unsafe(const char *folder, const char *why, struct errinfo *reterr)
{
	return errinfo_set(reterr, -EPERM,
		"folder %s of the socket %s: remove it, or choose another", folder, why);
}

/* Whether nobody but this user can make @path lead elsewhere. */
static int check_way(const char *path, const char *folder, struct errinfo *reterr)
{
	uid_t uid = geteuid();
	int r = path_user_find(path, &uid, reterr);

	if (r == -EPERM)
		return unsafe(folder, "can be written by others", reterr);
	if (r == 0 && uid != geteuid())
		return unsafe(folder, "can be replaced by another user", reterr);
	return r;
}

/* The folder is made if it is missing. */
static int make_folder(const char *folder, const char *path, struct errinfo *reterr)
{
	char parent[SOCKET_PATH_MAX];
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

/* Who may pass through the folder: this user, and the groups of all sockets in it. */
static int let_through(int fd, const struct stat *st, gid_t group)
{
	bool shared = group != SOCKET_NO_GROUP, by_another = st->st_mode & S_IXGRP;
	mode_t mode = 0700 | (st->st_mode & 0011);

	if (shared && by_another && st->st_gid != group)
		mode |= 0011;
	else if (shared)
		mode |= 0010;
	if (shared && !by_another && fchown(fd, (uid_t)-1, group) < 0)
		return -errno;
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

/* Leaves the folder with the right mode, and locked as long as *ret_fd is open. */
static int prepare_folder(const char *folder, gid_t group, int *ret_fd, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return unsafe(folder, "is a link or a file", reterr);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errinfo_set(reterr, -errno, "folder %s: %s", folder, strerror(errno));
	if (st.st_uid != geteuid())
		return unsafe(folder, "belongs to another user", reterr);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return unsafe(folder, "can be written by others", reterr);
	r = flock(fd, LOCK_EX) < 0 ? -errno : let_through(fd, &st, group);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot change the group of folder %s: %s", folder,
			strerror(-r));
	*ret_fd = fd;
	fd = -1;
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
			"another program is listening at %s: stop it first, or choose another path",
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
	bool shared = group != SOCKET_NO_GROUP;
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
	_cleanup_fd_ int lock = -1;
	char folder[SOCKET_PATH_MAX];
	char *slash;
	int r = address_set(&address, path, reterr);

	if (r < 0)
		return r;
	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return errinfo_set(reterr, -EINVAL,
			"%s: the socket needs its own folder; give a full path", path);
	*slash = 0;
	r = make_folder(folder, path, reterr);
	r = r ?: prepare_folder(folder, group, &lock, reterr);
	r = r ?: clear_socket_path(&address, reterr);
	return r < 0 ? r : bind_here(&address, group, ret_fd, reterr);
}
