/* SPDX-License-Identifier: Apache-2.0 */
/* confine_thread.c - see confine_thread.h.
 *
 * The order: the bounding set needs a capability that then goes; landlock and seccomp need
 * no_new_privs where there is no CAP_SYS_ADMIN; a change of the file user takes capabilities out of
 * the effective set, which are put back from the permitted one; system calls come last. */
#include "base/confine_thread.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/log.h"

/* See docs/adr/0011-confined-tracer.md. One plan for all threads: they are
 * made afterwards and inherit it. */

static const uint16_t fcntl_commands[] = {
	F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETLK, F_SETLK};
static const uint16_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK /* who asks */};
static const uint16_t prctl_commands[] = {PR_SET_NAME};
static const struct confine_choice choices[] = {
	{.call = __NR_prctl,
		.arg = 0,
		.values = prctl_commands,
		.count = ARRAY_SIZE(prctl_commands)},
	{.call = __NR_socket, .arg = 0, .values = families, .count = ARRAY_SIZE(families)},
	CONFINE_IOCTL,
};

static const uint16_t calls[] = {
	/* network */
	__NR_bind, __NR_listen, __NR_connect, __NR_accept4, __NR_sendto, __NR_recvfrom,
	__NR_getsockopt, __NR_setsockopt, __NR_getsockname, __NR_getpeername, __NR_shutdown,
	__NR_socketpair, __NR_write, __NR_writev, __NR_epoll_create1, __NR_epoll_ctl,
	__NR_epoll_pwait, __NR_eventfd2, __NR_pipe2, __NR_dup, __NR_dup3, __NR_pselect6,
	/* files */
	__NR_pwrite64, __NR_pwritev, __NR_fsync, __NR_fdatasync, __NR_ftruncate, __NR_fallocate,
	__NR_fadvise64, __NR_flock, __NR_getdents64, __NR_openat2, __NR_statfs, __NR_fstatfs,
	__NR_unlinkat, __NR_renameat, __NR_renameat2, __NR_linkat, __NR_mkdirat, __NR_fchown,
	__NR_fchownat, __NR_fchmod, __NR_fchmodat, __NR_utimensat, __NR_umask, __NR_setfsuid,
	__NR_setfsgid, __NR_getgroups, __NR_setgroups,
#ifdef __NR_epoll_wait
	__NR_epoll_wait, __NR_dup2, __NR_select, __NR_unlink, __NR_rename, __NR_link, __NR_mkdir,
	__NR_rmdir, __NR_chown, __NR_chmod,
#endif
	/* processes for SQL, threads, the clock */
	__NR_kill, __NR_setpriority, __NR_getpriority, __NR_nanosleep, __NR_clock_nanosleep,
	__NR_getrusage, __NR_uname, __NR_sched_getaffinity, __NR_getuid, __NR_getgid, __NR_getegid,
	__NR_getppid, __NR_getcpu, __NR_sigaltstack};

void confine_server(const struct confine_server *s)
{
	struct confine_thread plan = {
		.capabilities = s->capabilities,
		.paths = true,
		.files = s->files,
		.calls = {CONFINE_CALLS(calls, fcntl_commands, choices), .opens = true,
			.writes = true, .forks = true, .strict = true},
	};
	struct confine_report report;
	int r = s->program_count ? spawn_server_start(s->programs, s->program_count, NULL) : 0;

	if (r < 0) {
		log_warning("cannot drop all privileges: %s", strerror(-r));
		return;
	}
	plan.files.freedoms |= CONFINE_CONNECTS | CONFINE_LISTENS | CONFINE_SIGNALS;
	confine_thread_enter(&plan, &report);
	confine_report_warn(&report);
}

#define CAPABILITY_LAST 63

struct capabilities {
	uint64_t effective, permitted;
};

static struct capabilities get_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};

	(void)syscall(SYS_capget, &header, data); /* of oneself it does not fail */
	return (struct capabilities){
		.effective = (uint64_t)data[1].effective << 32 | data[0].effective,
		.permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted,
	};
}

static int set_capabilities(struct capabilities c)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)c.effective, .permitted = (uint32_t)c.permitted},
		{.effective = (uint32_t)(c.effective >> 32),
			.permitted = (uint32_t)(c.permitted >> 32)},
	};

	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

uint64_t confine_thread_permitted(void)
{
	return get_capabilities().permitted;
}

int confine_thread_keep(const struct confine_thread *plan)
{
	struct capabilities c = get_capabilities();

	c.permitted &= plan->capabilities;
	/* What is not in force stays so: a thread that works with another user's rights to files
	 * has put those of root's aside. */
	c.effective &= plan->capabilities;
	for (unsigned long n = 0; n <= CAPABILITY_LAST; n++)
		if (!(plan->capabilities >> n & 1)) /* fails for those the kernel lacks */
			(void)prctl(PR_CAPBSET_DROP, n, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (plan->files_as_nobody && c.effective & CONFINE_CAP(CAP_DAC_READ_SEARCH)) {
		(void)syscall(SYS_setfsgid, CONFINE_NOBODY);
		(void)syscall(SYS_setfsuid, CONFINE_NOBODY);
	}
	return set_capabilities(c);
}

static int forbid_files(const struct confine_thread *plan)
{
	int version = 0, r = 0;

	if (plan->paths)
		r = confine_files(&plan->files, &version);
	return r == 0 && plan->paths && !version ? -EOPNOTSUPP : r;
}

static int forbid_calls(const struct confine_thread *plan)
{
	int r = confine_calls(&plan->calls);

	return r == 0 ? -EOPNOTSUPP : MIN(r, 0);
}

void confine_thread_enter(const struct confine_thread *plan, struct confine_report *ret)
{
	int *parts = ret->parts;

	parts[CONFINE_NO_NEW_PRIVILEGES] = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	parts[CONFINE_PATHS] = forbid_files(plan);
	parts[CONFINE_CAPABILITIES] = confine_thread_keep(plan);
	parts[CONFINE_CALLS] = forbid_calls(plan);
}

int confine_thread_try(const struct confine_thread *plan, struct confine_report *ret)
{
	struct confine_report report;
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe(ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		confine_thread_enter(plan, &report);
		n = write(ends[1], &report, sizeof(report));
		_exit(n == sizeof(report) ? 0 : 1);
	}
	n = pid < 0 ? -errno : 0;
	close(ends[1]);
	if (pid > 0) {
		n = read(ends[0], &report, sizeof(report));
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	close(ends[0]);
	if (n != sizeof(report))
		return n < 0 ? (int)n : -EPROTO;
	*ret = report;
	return 0;
}

void confine_report_warn(const struct confine_report *r)
{
	static atomic_flag told[CONFINE_PARTS];

	for (enum confine_part p = 0; p < CONFINE_PARTS; p++)
		if (r->parts[p] < 0 && !atomic_flag_test_and_set(&told[p]))
			log_warning("cannot drop all privileges: no %s (%s)", confine_part_name(p),
				confine_part_reason(p, r->parts[p]));
}

const char *confine_part_name(enum confine_part part)
{
	static const char *const names[] = {[CONFINE_CAPABILITIES] = "capabilities",
		[CONFINE_NO_NEW_PRIVILEGES] = "no_new_privs",
		[CONFINE_PATHS] = "landlock",
		[CONFINE_CALLS] = "seccomp"};

	return names[part];
}

const char *confine_part_reason(enum confine_part part, int err)
{
	if (part == CONFINE_PATHS && err == -EOPNOTSUPP)
		return "not supported by the kernel, or not enabled (lsm=…,landlock)";
	if (part == CONFINE_CALLS && err == -EOPNOTSUPP)
		return "not available in a build with sanitizers";
	if (part == CONFINE_CALLS && (err == -EINVAL || err == -ENOSYS))
		return "not supported by the kernel (CONFIG_SECCOMP_FILTER)";
	return strerror(-err);
}
