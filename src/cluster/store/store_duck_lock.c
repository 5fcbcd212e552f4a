/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_lock.c - one process has a store, and the lock's file says which. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/when.h"
#include "cluster/store/store_duck_private.h"

static int refuse(int fd, const char *folder, struct errinfo *reterr)
{
	char holder[256];
	ssize_t n = pread(fd, holder, sizeof(holder) - 1, 0);

	holder[n > 0 ? n : 0] = 0;
	holder[strcspn(holder, "\n")] = 0;
	return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EAGAIN,
		"the store %s is in use by %s: stop it or name another folder", folder,
		*holder ? holder : "another process");
}

/* A full disk does not keep anybody from reading: then the holder has no name. */
static void write_holder(int fd)
{
	char line[512], host[128] = "", since[WHEN_UTC_MAX];
	int n;

	gethostname(host, sizeof(host) - 1);
	n = snprintf(line, sizeof(line), "process %d on %s since %s\n", (int)getpid(), host,
		when_utc(since, wall_now()));
	if (ftruncate(fd, 0) == 0 && pwrite(fd, line, (size_t)n, 0) < n)
		(void)!ftruncate(fd, 0);
}

int store_lock(const char *folder, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = -1;
	char path[STORE_PATH_MAX];
	int taken;

	if (snprintf(path, sizeof(path), "%s/lock", folder) >= (int)sizeof(path))
		return errinfo_set(reterr, -ENAMETOOLONG, "the name of the store is too long");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return errinfo_set(
			reterr, -errno, "%s cannot be opened: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? refuse(fd, folder, reterr)
					    : errinfo_set(reterr, -errno, "%s cannot be locked: %s",
						      path, strerror(errno));
	write_holder(fd);
	taken = fd;
	fd = -1;
	return taken;
}
