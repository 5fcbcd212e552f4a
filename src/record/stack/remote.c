/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - see remote.h. */
#include "record/stack/remote.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>

#include "base/bounded.h"
#include "base/file.h"

#define DEBUG_FOLDER   "/usr/lib/debug/.build-id"
#define BUILD_ID_BYTES 64 /* longer ones are nobody's */
#define STATUS_BYTES   16384

/* The second of "Uid:". The owner of /proc/PID would be root for a process that has given up a privilege. */
int foreign_user(const char *root, uint32_t pid, uid_t *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STATUS_BYTES);
	unsigned effective;
	const char *line;

	if (file_read_at(
		    root, FORMATTED(64, "/proc/%" PRIu32 "/status", pid), STATUS_BYTES, &text) < 0)
		return -ESRCH;
	line = strstr(buf_str(&text), "\nUid:");
	if (!line || sscanf(line, "\nUid: %*u %u", &effective) != 1)
		return -ESRCH;
	*ret = effective;
	return 0;
}

int foreign_open_debug(const char *root, const uint8_t *build_id, unsigned len)
{
	char id[2 * BUILD_ID_BYTES + 1], path[sizeof(DEBUG_FOLDER) + sizeof(id) + 16];
	int fd = -ENOENT;
	uid_t user = 0;
	uint32_t pid;

	if (len < 2 || len > BUILD_ID_BYTES)
		return -ENOENT;
	for (unsigned i = 0; i < len; i++)
		snprintf(id + 2 * i, 3, "%02x", build_id[i]);
	snprintf(path, sizeof(path), DEBUG_FOLDER "/%.2s/%s.debug", id, id + 2);
	if (sscanf(root, "/proc/%" SCNu32 "/root", &pid) == 1)
		(void)foreign_user("", pid, &user); /* gone: so is its root */
	if (root[0])
		fd = bounded_open_inside(user, root, path, 0, NULL);
	if (fd < 0)
		fd = file_open_inside("/", path, 0, NULL);
	return fd < 0 ? -ENOENT : fd;
}

int foreign_open_perf_map(const char *root, uint32_t pid, uint32_t own_pid, struct stat *ret_st)
{
	char inside[PATH_MAX], path[64];
	struct stat st;
	uid_t user;
	int r, fd;

	r = foreign_user(root, pid, &user);
	if (r < 0)
		return r;
	if (snprintf(inside, sizeof(inside), "%s/proc/%" PRIu32 "/root", root, pid) >=
		(int)sizeof(inside))
		return -ENAMETOOLONG;
	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", own_pid);
	fd = bounded_open_inside(user, inside, path, O_NOFOLLOW, &st);
	if (fd < 0)
		return fd;
	if (st.st_nlink != 1 || (st.st_uid != user && st.st_uid != 0)) {
		close(fd);
		return -EPERM;
	}
	*ret_st = st;
	return fd;
}

int remote_read_now(uint32_t pid, uint64_t address, void *out, size_t len)
{
	struct iovec to = {out, len}, from = {(void *)(uintptr_t)address, len};
	ssize_t n = process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EFAULT;
}

struct read_job {
	struct bounded_job job;
	uint32_t pid;
	uint64_t address;
	size_t len;
	uint8_t bytes[];
};

static int run_read(struct bounded_job *j)
{
	struct read_job *r = (struct read_job *)j;

	return remote_read_now(r->pid, r->address, r->bytes, r->len);
}

int remote_read(uint32_t pid, uint32_t uid, uint64_t address, void *out, size_t len)
{
	struct read_job *j = malloc(sizeof(*j) + len);
	int r;

	if (!j)
		return -ENOMEM;
	*j = (struct read_job){
		.job = {.run = run_read, .uid = uid}, .pid = pid, .address = address, .len = len};
	r = bounded_run(&j->job, BOUNDED_WAIT_NS);
	if (r < 0)
		return r;
	r = j->job.result;
	if (r == 0)
		memcpy(out, j->bytes, len);
	free(j);
	return r;
}
