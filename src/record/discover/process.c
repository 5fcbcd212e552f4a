/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - the facts of one process from /proc/PID/{stat,status,cmdline,cgroup}.
 * The name in stat is any bytes, parentheses and newlines included: it ends at the last ')'. The command line lies in the
 * process's own memory, which may keep its reader waiting: it is read beside (base/bounded.h). */
#include "record/discover/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/bounded.h"
#include "base/file.h"

static int read_proc(const char *root, uint32_t pid, const char *file, struct buf *b)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, file);
	r = file_read_at(root, path, b->max, b);
	return r == -ENOENT ? -ESRCH : r == -EFBIG ? 0 : r;
}

int discover_open_file(const char *root, uint32_t pid, const char *name)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/%s", root, pid, name) >=
		(int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : errno == EPERM ? -EACCES : -errno;
	return fd;
}

/* Fields behind the name, numbered as in proc(5): 3 state, 4 ppid, 20 threads, 22 start, 23 vsize.
 */
static int parse_stat_tail(const char *p, struct discover_process *d)
{
	char *end;

	for (int field = 3; field <= 23; field++) {
		unsigned long long v = 0;

		while (*p == ' ')
			p++;
		if (!*p)
			return -EBADMSG;
		if (field == 4 || field == 20 || field >= 22) {
			errno = 0;
			v = strtoull(p, &end, 10);
			if (errno || end == p || (*end && *end != ' ' && *end != '\n'))
				return -EBADMSG;
		}
		switch (field) {
		case 4: d->ppid = (uint32_t)v; break;
		case 20: d->threads = (uint32_t)v; break;
		case 22: d->start_ticks = v; break;
		case 23: d->vsize_bytes = v; break;
		}
		p += strcspn(p, " ");
	}
	return 0;
}

int discover_process_stat(const char *root, uint32_t pid, struct discover_process *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct discover_process d = {.pid = pid};
	const char *open, *close;
	int r = read_proc(root, pid, "stat", &b);

	if (r < 0)
		return r;
	open = memchr(buf_str(&b), '(', b.len);
	close = memrchr(buf_str(&b), ')', b.len);
	if (!open || !close || close < open)
		return -EBADMSG;
	snprintf(d.comm, sizeof(d.comm), "%.*s", (int)(close - open - 1), open + 1);
	r = parse_stat_tail(close + 1, &d);
	if (r < 0)
		return r;
	*ret = d;
	return 0;
}

int discover_uid(const char *root, uint32_t pid, uint32_t *ret_uid)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	const char *line;
	int r = read_proc(root, pid, "status", &b);

	if (r < 0)
		return r;
	/* "Name:" comes first and has its newlines escaped, so no name can forge this line. */
	line = strstr(buf_str(&b), "\nUid:\t");
	if (!line)
		return -EBADMSG;
	*ret_uid = (uint32_t)strtoul(line + 6, NULL, 10);
	return 0;
}

/* The arguments as they are, at most TARGET_CMDLINE_MAX - 1 bytes and a NUL; "" if they may not be read. */
static size_t read_arguments(
	const char *root, uint32_t pid, uint32_t uid, char out[TARGET_CMDLINE_MAX])
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/cmdline", root, pid);

	n = n < (int)sizeof(path) ? bounded_read(uid, path, out, TARGET_CMDLINE_MAX - 1) : 0;
	out[MAX(n, 0)] = 0;
	return (size_t)MAX(n, 0);
}

static void read_cmdline(const char *root, uint32_t pid, uint32_t uid, char out[TARGET_CMDLINE_MAX])
{
	size_t len = read_arguments(root, pid, uid, out);

	while (len > 0 && out[len - 1] == 0)
		len--;
	for (size_t i = 0; i < len; i++)
		out[i] = out[i] ? out[i] : ' ';
}

/* "Cpus_allowed:\tff,ffffffff" */
static uint32_t read_cpus(const char *root, uint32_t pid)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *at = read_proc(root, pid, "status", &b) < 0
				 ? NULL
				 : strstr(buf_str(&b), "\nCpus_allowed:\t");
	uint32_t cpus = 0;

	for (at = at ? strchr(at, '\t') + 1 : ""; *at && *at != '\n'; at++) {
		const char digit[] = {*at, 0};

		cpus += (uint32_t)__builtin_popcountl(strtoul(digit, NULL, 16));
	}
	return cpus;
}

void discover_program(
	const char *root, uint32_t pid, char ret_script[SCRIPT_MAX], uint32_t *ret_cpus)
{
	char arguments[TARGET_CMDLINE_MAX];
	uint32_t uid = 0;

	ret_script[0] = 0;
	(void)discover_uid(root, pid, &uid); /* gone: there is nothing to read either */
	script_of(arguments, read_arguments(root, pid, uid, arguments), ret_script);
	*ret_cpus = read_cpus(root, pid);
}

static void read_cgroup(const char *root, uint32_t pid, char out[TARGET_PATH_MAX])
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *path, *unified;

	out[0] = 0;
	if (read_proc(root, pid, "cgroup", &b) < 0)
		return;
	unified = strncmp(buf_str(&b), "0::", 3) == 0 ? buf_str(&b) : strstr(buf_str(&b), "\n0::");
	path = strchr(unified ? unified : buf_str(&b), '/');
	if (path)
		snprintf(out, TARGET_PATH_MAX, "%.*s", (int)strcspn(path, "\n"), path);
}

int discover_process(const char *root, uint32_t pid, struct discover_process *ret)
{
	struct discover_process d;
	int r = discover_process_stat(root, pid, &d);

	if (r < 0)
		return r;
	r = discover_uid(root, pid, &d.uid);
	if (r < 0)
		return r;
	read_cmdline(root, pid, d.uid, d.cmdline);
	read_cgroup(root, pid, d.cgroup);
	*ret = d;
	return 0;
}
