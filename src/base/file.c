/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - see space.h. Files under /proc report size 0 and change while they are read, so reading
 * goes on to the end of file and never trusts st_size. */
#include "base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

/* A mount is found by its number, which statx(2) tells from memory. Devices do not
 * help: btrfs and overlay show others in stat(2) than in mountinfo. But one with a major number is a disk. */

#define MOUNTINFO_MAX (16 << 20) /* of lines up to 4 KiB: overlay's */

/* "fuse.sshfs NAME rw,user_id=1000,group_id=1000,allow_other" */
static enum file_origin judge(const char *type, bool is_ours)
{
	size_t len = strcspn(type, "\n");
	const char *options = memrchr(type, ' ', len);
	const char *user = options ? strstr(options, ",user_id=") : NULL;

	if (strncmp(type, "fuse", 4) != 0)
		return FILE_ORIGIN_TRUSTED;
	return is_ours && user && user < type + len && !strncmp(user, ",user_id=0,", 11)
		       ? FILE_ORIGIN_TRUSTED
		       : FILE_ORIGIN_USERS;
}

enum file_origin file_origin_judge(const char *text, uint64_t mount, bool is_ours)
{
	const char *type;
	char *end;

	for (const char *line = text; *line; line = *end ? end + 1 : end) {
		uint64_t number = strtoull(line, &end, 10);
		bool is_it = end > line && *end == ' ' && number == mount;

		end = (char *)line + strcspn(line, "\n");
		type = is_it ? strstr(line, " - ") : NULL; /* spaces in names are escaped */
		if (type && type < end)
			return judge(type + 3, is_ours);
	}
	return FILE_ORIGIN_UNKNOWN;
}

static enum file_origin look(const char *path, uint64_t mount, bool is_ours)
{
	_cleanup_buf_ struct buf text = BUF_INIT(MOUNTINFO_MAX);

	if (file_read(path, MOUNTINFO_MAX, &text) < 0)
		return FILE_ORIGIN_UNKNOWN;
	return file_origin_judge(buf_str(&text), mount, is_ours);
}

int file_origin(int fd, const char *mountinfo, struct statx *ret)
{
	const char *const ours[] = {"/proc/self/mountinfo", "/proc/1/mountinfo"};
	enum file_origin o = FILE_ORIGIN_UNKNOWN;
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID,
		    &st) < 0)
		return -errno;
	*ret = st;
	if (st.stx_dev_major)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(ours) && o == FILE_ORIGIN_UNKNOWN; i++)
		o = look(ours[i], st.stx_mnt_id, true);
	if (o == FILE_ORIGIN_UNKNOWN && mountinfo)
		o = look(mountinfo, st.stx_mnt_id, false);
	return o == FILE_ORIGIN_TRUSTED ? 0 : -EREMOTE;
}

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

int file_open_regular(const char *path)
{
	/* O_NONBLOCK: a named pipe planted under a well-known name must not stop the caller. */
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	r = fd;
	fd = -1;
	return r;
}

int file_read(const char *path, size_t max, struct buf *b)
{
	_cleanup_fd_ int fd = file_open_regular(path);

	return fd < 0 ? fd : read_all(fd, max, b);
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

int file_write_all(int fd, const void *data, size_t len)
{
	for (const char *at = data; len > 0;) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += MAX(n, (ssize_t)0);
		len -= (size_t)MAX(n, (ssize_t)0);
	}
	return 0;
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

static bool is_database(const char *path)
{
	static const char magic[16] = "SQLite format 3";
	_cleanup_fd_ int fd = file_open_regular(path);
	char start[sizeof(magic)];

	return fd >= 0 && pread(fd, start, sizeof(start), 0) == sizeof(start) &&
	       !memcmp(start, magic, sizeof(magic));
}

static bool has_name_beside_recording(const char *path)
{
	static const char *const suffixes[] = {"-wal", "-shm", "-journal", ".lock"};
	char database[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t len = strlen(path), end = strlen(suffixes[i]);

		if (len <= end || len >= sizeof(database) || strcmp(path + len - end, suffixes[i]))
			continue;
		memcpy(database, path, len - end);
		database[len - end] = 0;
		return is_database(database);
	}
	return false;
}

bool file_is_beside_recording(const char *path)
{
	char real[PATH_MAX];

	return has_name_beside_recording(path) ||
	       (realpath(path, real) && has_name_beside_recording(real));
}

bool file_is_recording(const char *path)
{
	return is_database(path) || file_is_beside_recording(path);
}

/* A link is replaced, not what it leads to. */
static int check_replaced(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0 || S_ISLNK(st.st_mode))
		return 0;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return S_ISREG(st.st_mode) && !file_is_recording(path) ? 0 : -EEXIST;
}

int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode)
{
	char tmp[PATH_MAX];
	_cleanup_fd_ int fd = -1;
	int r = file_join(tmp, sizeof(tmp), path, ".XXXXXX");

	r = r ?: check_replaced(path);
	if (r < 0)
		return r;
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = file_write_all(fd, data, len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
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
