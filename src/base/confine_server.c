/* SPDX-License-Identifier: Apache-2.0 */
/* confine_server.c - see confine_server.h and docs/adr/0011-confined-tracer.md. One plan for all threads: they are
 * made afterwards and inherit it. */
#include "base/confine_server.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/macros.h"

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
