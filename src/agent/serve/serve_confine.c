/* SPDX-License-Identifier: Apache-2.0 */
/* serve_confine.c - see serve_confine.h and docs/adr/0011-confined-tracer.md.
 *
 * One plan for all threads: they are made afterwards and inherit it. A recording may be another
 * user's (that of the one who called sudo): CAP_DAC_OVERRIDE reads it and lets SQLite make the file
 * that a live one needs beside it, which landlock allows in that folder alone; with CAP_SETUID a
 * thread takes that user's rights to files (setfsuid; setuid is no call of a server's). */
#include "agent/serve/serve_confine.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/owner.h"
#include "base/log.h"
#include "base/spawn.h"
#include "sql/sql_worker.h"

static const uint16_t fcntl_commands[] = {
	F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETLK, F_SETLK};
static const uint16_t ioctl_commands[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO};
static const uint16_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK /* who asks */};
static const uint16_t prctl_commands[] = {PR_SET_NAME};
static const struct confine_choice choices[] = {
	{.call = __NR_prctl,
		.arg = 0,
		.values = prctl_commands,
		.count = ARRAY_SIZE(prctl_commands)},
	{.call = __NR_socket, .arg = 0, .values = families, .count = ARRAY_SIZE(families)},
	{.call = __NR_ioctl,
		.arg = 1,
		.values = ioctl_commands,
		.count = ARRAY_SIZE(ioctl_commands)},
};

static const uint16_t calls[] = {
	/* network */
	__NR_bind, __NR_listen, __NR_connect, __NR_accept4, __NR_sendto, __NR_recvfrom,
	__NR_getsockopt, __NR_setsockopt, __NR_getsockname, __NR_getpeername, __NR_shutdown,
	__NR_socketpair, __NR_write, __NR_writev, __NR_epoll_create1, __NR_epoll_ctl,
	__NR_epoll_pwait, __NR_eventfd2, __NR_pipe2, __NR_dup, __NR_dup3, __NR_pselect6,
	/* files */
	__NR_pwrite64, __NR_pwritev, __NR_fsync, __NR_fdatasync, __NR_ftruncate, __NR_fallocate,
	__NR_flock, __NR_getdents64, __NR_openat2, __NR_statfs, __NR_fstatfs, __NR_unlinkat,
	__NR_renameat, __NR_renameat2, __NR_linkat, __NR_mkdirat, __NR_fchown, __NR_fchownat,
	__NR_fchmod, __NR_fchmodat, __NR_utimensat, __NR_umask, __NR_setfsuid, __NR_setfsgid,
	__NR_getgroups, __NR_setgroups,
#ifdef __NR_epoll_wait
	__NR_epoll_wait, __NR_dup2, __NR_select, __NR_unlink, __NR_rename, __NR_link, __NR_mkdir,
	__NR_rmdir, __NR_chown, __NR_chmod,
#endif
	/* processes for SQL, threads, the clock */
	__NR_kill, __NR_setpriority, __NR_getpriority, __NR_nanosleep, __NR_clock_nanosleep,
	__NR_getrusage, __NR_uname, __NR_sched_getaffinity, __NR_getuid, __NR_getgid, __NR_getegid,
	__NR_getppid, __NR_sigaltstack};

/* The folder of @path, if it is there. */
static size_t add_folder(const char *path, char room[PATH_MAX], const char **folders, size_t count)
{
	char *folder;

	if (!path || snprintf(room, PATH_MAX, "%s", path) >= PATH_MAX)
		return count;
	folder = dirname(room);
	if (access(folder, F_OK) == 0)
		folders[count++] = folder;
	return count;
}

static void enter(const char *db)
{
	struct confine_thread plan = {
		.capabilities = CONFINE_CAP(CAP_CHOWN) | CONFINE_CAP(CAP_DAC_OVERRIDE) |
				CONFINE_CAP(CAP_KILL) | CONFINE_CAP(CAP_SETUID) |
				CONFINE_CAP(CAP_SETGID) | CONFINE_CAP(CAP_NET_BIND_SERVICE),
		.paths = true,
		.freedoms = CONFINE_CONNECTS | CONFINE_LISTENS | CONFINE_SIGNALS,
		.calls = {CONFINE_CALLS(calls, fcntl_commands, choices), .opens = true,
			.writes = true, .forks = true, .strict = true},
	};
	_cleanup_free_ char *default_path = NULL, *real = realpath(db, NULL);
	char rooms[3][PATH_MAX];
	const char *folders[ARRAY_SIZE(rooms)];
	struct confine_report report;

	(void)store_default_path(&default_path, NULL);
	plan.folder_count = add_folder(db, rooms[0], folders, plan.folder_count);
	plan.folder_count = add_folder(real, rooms[1], folders, plan.folder_count);
	plan.folder_count = add_folder(default_path, rooms[2], folders, plan.folder_count);
	plan.folders = folders;
	confine_thread_enter(&plan, &report);
	confine_report_warn(&report);
}

void serve_confine(struct serve_confine *c)
{
	static const struct spawn_program programs[] = {{SQL_WORKER_NAME, NULL}};
	int r;

	check_probe(&c->probes);
	r = spawn_server_start(programs, ARRAY_SIZE(programs), NULL);
	if (r < 0) {
		log_warning("cannot drop all privileges: %s", strerror(-r));
		return;
	}
	c->probes.is_old = true;
	enter(c->db);
}
