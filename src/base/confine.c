/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - drops privileges, by system calls alone. */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITY_LAST 63

static void set_limit(int which, rlim_t value)
{
	struct rlimit limit = {value, value};

	(void)setrlimit(which, &limit); /* a lower one is in force: also good */
}

void confine_limits(const struct confine_limits *limits)
{
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_MEMLOCK, 0);
	set_limit(RLIMIT_FSIZE, limits->file_bytes);
	set_limit(RLIMIT_NOFILE, limits->open_files);
	if (limits->cpu_seconds)
		set_limit(RLIMIT_CPU, limits->cpu_seconds);
	if (limits->no_processes)
		set_limit(RLIMIT_NPROC, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	set_limit(RLIMIT_AS, limits->address_bytes);
#endif
}

void confine_bounding_set(void)
{
	for (unsigned long c = 0; c <= CAPABILITY_LAST; c++)
		(void)prctl(PR_CAPBSET_DROP, c, 0, 0, 0); /* fails for those the kernel lacks */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

int confine_user(uid_t uid, gid_t gid)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

int confine_reader(const char *path)
{
	struct stat st;
	int fd;

	if (geteuid() != 0 || stat(path, &st) < 0)
		return 0;
	setfsgid(st.st_gid);
	setfsuid(st.st_uid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	setfsuid(0);
	setfsgid(0);
	if (fd < 0)
		return confine_user(0, 0);
	close(fd);
	return confine_user(st.st_uid, st.st_gid);
}

int confine_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}, {0}};

	if (syscall(SYS_capset, &header, none) < 0)
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int confine_life(int socket)
{
	struct pollfd fd = {.fd = socket};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	/* It may have ended before that was in force; then its end of the socket is closed. */
	return poll(&fd, 1, 0) == 0 ? 0 : -ESRCH;
}
