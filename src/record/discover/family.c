/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - descendants by parent ids from /proc/PID/stat. One pass reads all processes; the
 * closure is taken over that snapshot, so a process that changes its parent meanwhile is found by
 * the next scan through its fork event. */
#include "record/discover/family.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/discover/discover.h"
#include "base/file.h"

#define SNAPSHOT_MAX 65536
#define FAMILY_MAX   4096

struct link {
	uint32_t pid, ppid;
};

static void dir_closep(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int snapshot(const char *root, struct link *links)
{
	_cleanup_(dir_closep) DIR *d = NULL;
	struct discover_process p;
	char path[256];
	struct dirent *e;
	int n = 0;

	if (file_join(path, sizeof(path), root, "/proc") < 0)
		return -ENAMETOOLONG;
	d = opendir(path);
	if (!d)
		return -errno;
	while (n < SNAPSHOT_MAX && (e = readdir(d))) {
		uint32_t pid = (uint32_t)strtoul(e->d_name, NULL, 10);

		if (pid && discover_process_stat(root, pid, &p) == 0)
			links[n++] = (struct link){p.pid, p.ppid};
	}
	return n;
}

int family_list(const char *root, uint32_t pid, uint32_t *ret, size_t max)
{
	_cleanup_free_ struct link *links = calloc(SNAPSHOT_MAX, sizeof(*links));
	struct discover_process p;
	size_t count = 1;
	int n;

	if (!links || !max)
		return -ENOMEM;
	if (discover_process_stat(root, pid, &p) < 0)
		return -ESRCH;
	n = snapshot(root, links);
	if (n < 0)
		return n;
	ret[0] = pid;
	for (size_t i = 0; i < count; i++) /* grows while it is walked: breadth first */
		for (int k = 0; k < n && count < max; k++)
			if (links[k].ppid == ret[i] && links[k].pid != pid)
				ret[count++] = links[k].pid;
	return (int)count;
}

int family_uses_cuda(const char *root, uint32_t pid, struct errinfo *reterr)
{
	struct target_library libraries[DISCOVER_LIBRARIES_MAX];
	_cleanup_free_ uint32_t *family = calloc(FAMILY_MAX, sizeof(*family));
	struct discover_process p = {0};
	size_t dropped;
	int n;

	if (!family)
		return -ENOMEM;
	n = family_list(root, pid, family, FAMILY_MAX);
	if (n < 0)
		return errinfo_set(reterr, n, "no process %u", pid);
	for (int i = 0; i < n; i++) {
		int r = discover_libraries(
			root, family[i], libraries, DISCOVER_LIBRARIES_MAX, &dropped);

		if (r > 0 && discover_uses_cuda(libraries, (size_t)r))
			return 0;
		if (r == -EACCES || r == -EPERM)
			return errinfo_set(reterr, -EACCES, "cannot inspect process %u: %s",
				family[i],
				geteuid() ? "CAP_SYS_PTRACE is missing; run with sudo"
					  : "the kernel or a security module forbids it");
	}
	discover_process_stat(root, pid, &p);
	return errinfo_set(reterr, -EBADMSG,
		"process %u (%s) is not a CUDA process: neither it nor a child has libcudart or "
		"libcuda loaded; without --pid, ingero waits for processes that load them later",
		pid, p.comm);
}
