/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file.c - see secret_file.h. The file that was looked at is the file that is read: by its
 * descriptor, not again by its name. */
#include "net/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/path_user.h"

/* What nobody but the owner may do with it. A file of root's that a group may read was given to the members of that
 * group on purpose, and a service that is not root has no other way to a secret of root's: so Kubernetes
 * mounts them. */
static mode_t forbidden(const struct stat *st)
{
	return st->st_uid == 0 && geteuid() != 0 ? 037 : 077;
}

static int check_mode(const char *path, const char *what, int fd, struct errinfo *reterr)
{
	const char *loose = getenv(SECRET_FILE_LOOSE);
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return errinfo_set_exit(
			reterr, EXIT_CONFIG, -EINVAL, "the %s %s is not a file", what, path);
	if (loose && strcmp(loose, "1") == 0)
		return 0;
	if (st.st_mode & forbidden(&st))
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"other users can read the %s %s: run `chmod 600 %s`", what, path, path);
	if (st.st_uid != geteuid() && st.st_uid != path_user_now() && st.st_uid != 0)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"another user owns the %s %s: run `chown %u %s`", what, path,
			(unsigned)geteuid(), path);
	return 0;
}

int secret_file_read(
	const char *path, const char *what, size_t max, struct buf *b, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_fd_ int fd = -1;
	int r = path_user_enter(path, &before, reterr);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errinfo_set_exit(reterr, errno == ENOENT ? EXIT_NO_INPUT : EXIT_CONFIG,
			-errno, "cannot read the %s %s: %s", what, path, strerror(errno));
	r = check_mode(path, what, fd, reterr);
	if (r < 0)
		return r;
	r = file_read(FORMATTED(40, "/proc/self/fd/%d", fd), max, b);
	if (r < 0)
		return errinfo_set_exit(reterr, EXIT_CONFIG, r, "cannot read the %s %s: %s", what,
			path, strerror(-r));
	return 0;
}
