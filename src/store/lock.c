/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c - see lock.h.
 *
 * Invariant: a lock counts only if the locked file is still the one of that name, since its last
 * holder removes the name while holding the lock. */
#include "store/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/path_user.h"

#define ATTEMPTS 16 /* each lost to another process that started and ended in between */

/* The pid in the lock's file, if such a process lives; 0: none. */
static pid_t read_living(int fd)
{
	char text[24] = "";
	long pid = pread(fd, text, sizeof(text) - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;

	return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM)
		       ? (pid_t)pid
		       : 0;
}

/* A holder that is not the one whose pid stands there has not written any: it is no ingero, or just begins. */
static int report_holder(int fd, const char *db_path, struct errinfo *reterr)
{
	pid_t pid = read_living(fd);

	if (pid)
		return errinfo_set(reterr, -EBUSY,
			"%s is being written by process %ld: stop it, or choose another file with "
			"--db",
			db_path, (long)pid);
	return errinfo_set(reterr, -EBUSY,
		"another process has locked %s.lock: `fuser %s.lock` names it; stop it, or choose another file with --db",
		db_path, db_path);
}

static bool still_named(int fd, const char *path)
{
	struct stat a, b;

	/* More than one name: a link that somebody laid here to have its target overwritten. */
	return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino && a.st_nlink == 1;
}

static int write_pid(int fd)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return -errno;
	return 0;
}

int store_lock_take(const char *db_path, struct store_lock *ret_lock, struct errinfo *reterr)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s.lock", db_path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	for (int i = 0; i < ATTEMPTS; i++) {
		_cleanup_fd_ int fd =
			open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

		if (fd < 0) {
			int r = -errno;

			return errinfo_set(reterr, r,
				"cannot create %s: %s; choose another file with --db", path,
				strerror(-r));
		}
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			if (errno == EWOULDBLOCK)
				return report_holder(fd, db_path, reterr);
			return errinfo_set(
				reterr, -errno, "cannot lock %s: %s", path, strerror(errno));
		}
		if (!still_named(fd, path))
			continue;
		(void)fchmod(fd, 0600); /* who can read it can hold it */
		/* The pid and the owner are a courtesy: without them the lock is as good. */
		(void)write_pid(fd);
		(void)owner_give(fd);
		*ret_lock = (struct store_lock){.fd = fd, .path = TAKE(path)};
		fd = -1;
		return 0;
	}
	return errinfo_set(reterr, -EBUSY,
		"%s changes owners too fast, or is a link: remove it and try again", path);
}

int store_lock_renew(const char *db_path, struct store_lock *l, struct errinfo *reterr)
{
	struct store_lock next = STORE_LOCK_INIT;
	int r;

	if (l->fd >= 0 && still_named(l->fd, l->path))
		return 0;
	r = store_lock_take(db_path, &next, reterr);
	if (r < 0)
		return r;
	store_lock_done(l);
	*l = next;
	return 0;
}

void store_lock_done(struct store_lock *l)
{
	if (l->fd < 0)
		return;
	if (still_named(l->fd, l->path)) /* else it is another's by now */
		unlink(l->path);
	close(l->fd);
	free(l->path);
	*l = STORE_LOCK_INIT;
}

/* The holder's pid is looked at first: asking for the lock of a file whose writer is just starting
 * could turn that writer away. */
pid_t store_lock_holder(const char *db_path)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_fd_ int fd = -1;
	pid_t pid;

	if (asprintf(&path, "%s.lock", db_path) < 0) {
		path = NULL;
		return 0;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	pid = fd < 0 ? 0 : read_living(fd);
	if (!pid)
		return 0;
	if (flock(fd, LOCK_SH | LOCK_NB) == 0)
		return 0; /* left by a killed one whose pid was given out again */
	return errno == EWOULDBLOCK ? pid : 0;
}
