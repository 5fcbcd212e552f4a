/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - see file.h. Files under /proc report size 0 and change while they are read, so reading
 * goes on to the end of file and never trusts st_size. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/file_origin.h"

int file_join(char *out, size_t size, const char *root, const char *path)
{
	int n = snprintf(out, size, "%s%s", root, path);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int read_all(int fd, size_t max, struct buf *b)
{
	char chunk[16384];
	size_t total = 0;

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		if ((size_t)n > max - total) {
			buf_append(b, chunk, max - total);
			return b->err ? b->err : -EFBIG;
		}
		buf_append(b, chunk, (size_t)n);
		if (b->err)
			return b->err;
		total += (size_t)n;
	}
}

int file_read(const char *path, size_t max, struct buf *b)
{
	/* O_NONBLOCK: a named pipe planted under a well-known name must not stop the caller. */
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return read_all(fd, max, b);
}

int file_read_at(const char *root, const char *path, size_t max, struct buf *b)
{
	char full[PATH_MAX];
	int r = file_join(full, sizeof(full), root, path);

	return r < 0 ? r : file_read(full, max, b);
}

int file_open_inside(const char *root, const char *path, int flags, struct stat *ret_st)
{
	struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW)),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	_cleanup_fd_ int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int found = -1;
	const char *base = strrchr(root, '/');
	char again[32], mounts[PATH_MAX];
	struct statx known;
	struct stat st;
	int fd, r;

	if (dir < 0)
		return -errno;
	found = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (found < 0)
		return -errno;
	snprintf(mounts, sizeof(mounts), "%.*s/mountinfo", base ? (int)(base - root) : 0, root);
	r = file_origin(found, mounts, &known); /* beside /proc/7/root */
	if (r < 0)
		return r;
	if (!S_ISREG(known.stx_mode))
		return -EINVAL;
	/* What was looked at is what is opened, whatever its name leads to by now. */
	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (ret_st && fstat(fd, &st) == 0)
		*ret_st = st;
	return fd;
}

int file_read_line(const char *root, const char *path, char *out, size_t size)
{
	_cleanup_buf_ struct buf b = BUF_INIT(size);
	int r = file_read_at(root, path, size, &b);

	if (r < 0 && r != -EFBIG)
		return r;
	snprintf(out, size, "%.*s", (int)strcspn(buf_str(&b), "\n"), buf_str(&b));
	return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int file_sync(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fsync(fd) < 0 ? -errno : 0;
}

static int sync_directory_of(const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path) + 1, path);
	else
		snprintf(dir, sizeof(dir), ".");
	return file_sync(dir);
}

int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode)
{
	char tmp[PATH_MAX];
	_cleanup_fd_ int fd = -1;
	int r = file_join(tmp, sizeof(tmp), path, ".XXXXXX");

	if (r < 0)
		return r;
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_all(fd, data, len);
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0) {
		unlink(tmp);
		return r;
	}
	return sync_directory_of(path);
}
