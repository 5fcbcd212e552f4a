/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_confine.c - what each thread of `ingero trace` keeps once everything is open: the table in
 * docs/adr/0011-confined-tracer.md, with what was measured.
 *
 * The main thread looks into processes, which landlock forbids to whoever is under it. So it is not;
 * instead it can write no file: it opens files as nobody, with a capability that only reads, and
 * has no call that changes a path. The store's thread writes, below the recording's folder. */
#include "record/trace/tracer_private.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "record/gpu/child.h"
#include "record/symbol/child.h"
#include "base/confine_thread.h"
#include "base/spawn.h"

static const uint16_t fcntl_commands[] = {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC,
	F_GETLK, F_SETLK, F_ADD_SEALS, F_GET_SEALS};

/* No program is loaded any more: probes are put in place with those that are there. */
static const uint16_t bpf_commands[] = {BPF_MAP_CREATE, BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM,
	BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY, BPF_MAP_LOOKUP_AND_DELETE_ELEM,
	BPF_MAP_LOOKUP_BATCH, BPF_MAP_LOOKUP_AND_DELETE_BATCH, BPF_MAP_UPDATE_BATCH,
	BPF_MAP_DELETE_BATCH, BPF_OBJ_GET_INFO_BY_FD, BPF_LINK_CREATE, BPF_LINK_DETACH,
	BPF_ITER_CREATE};
static const uint16_t families[] = {AF_INET, AF_INET6};

static const struct confine_choice main_choices[] = {
	{.call = __NR_bpf, .arg = 0, .values = bpf_commands, .count = ARRAY_SIZE(bpf_commands)},
	CONFINE_IOCTL,
};
static const struct confine_choice store_choices[] = {
	CONFINE_IOCTL,
};
static const struct confine_choice metrics_choices[] = {
	{.call = __NR_socket, .arg = 0, .values = families, .count = ARRAY_SIZE(families)},
	CONFINE_IOCTL,
};

static const uint16_t main_calls[] = {
	/* probes, processes, their memory */
	__NR_perf_event_open, __NR_process_vm_readv, __NR_openat2, __NR_getdents64,
	__NR_memfd_create, __NR_ftruncate, __NR_pwrite64, __NR_statfs, __NR_fstatfs,
	__NR_inotify_add_watch, __NR_inotify_rm_watch,
	/* what is printed, pipes to other threads and processes */
	__NR_write, __NR_writev, __NR_pipe2, __NR_socketpair, __NR_sendto, __NR_recvfrom,
	__NR_accept4, __NR_getsockopt, __NR_setsockopt, __NR_shutdown, __NR_epoll_create1,
	__NR_epoll_ctl, __NR_epoll_pwait, __NR_dup, __NR_kill,
#ifdef __NR_epoll_wait
	__NR_epoll_wait,
#endif
	/* the clock, the machine, itself */
	__NR_nanosleep, __NR_clock_nanosleep, __NR_getrusage, __NR_uname, __NR_sched_getaffinity,
	__NR_getuid, __NR_getgid, __NR_getegid};

static const uint16_t store_calls[] = {
	/* contents */
	__NR_write, __NR_pwrite64, __NR_pwritev, __NR_fsync, __NR_fdatasync, __NR_ftruncate,
	__NR_fallocate, __NR_flock, __NR_getdents64, __NR_openat2, __NR_statfs, __NR_fstatfs,
	/* names and owners */
	__NR_unlinkat, __NR_renameat, __NR_renameat2, __NR_linkat, __NR_mkdirat, __NR_fchown,
	__NR_fchownat, __NR_fchmod, __NR_fchmodat, __NR_utimensat, __NR_umask, __NR_setfsuid,
	__NR_getgroups, __NR_setgroups, __NR_setfsgid,
#ifdef __NR_unlink
	__NR_unlink, __NR_rename, __NR_link, __NR_mkdir, __NR_rmdir, __NR_chown, __NR_chmod,
#endif
	/* the clock, the machine, itself */
	__NR_nanosleep, __NR_clock_nanosleep, __NR_uname, __NR_sched_getaffinity, __NR_getuid,
	__NR_getgid, __NR_getegid, __NR_getrusage, __NR_dup};

static const uint16_t engine_calls[] = {
	__NR_write, __NR_nanosleep, __NR_clock_nanosleep, __NR_uname, __NR_sched_getaffinity};

static const uint16_t metrics_calls[] = {__NR_connect, __NR_accept4, __NR_sendto, __NR_recvfrom,
	__NR_getsockopt, __NR_setsockopt, __NR_getsockname, __NR_getpeername, __NR_shutdown,
	__NR_write, __NR_writev, __NR_epoll_create1, __NR_epoll_ctl, __NR_epoll_pwait,
	__NR_eventfd2, __NR_pipe2,
#ifdef __NR_epoll_wait
	__NR_epoll_wait,
#endif
	__NR_getdents64, __NR_nanosleep, __NR_clock_nanosleep, __NR_uname, __NR_sched_getaffinity,
	__NR_getuid, __NR_getgid, __NR_getegid};

static void enter(const struct confine_thread *plan)
{
	struct confine_report report;

	confine_thread_enter(plan, &report);
	confine_report_warn(&report);
}

/* CAP_SYS_ADMIN is needed for the old kind of uprobes; it and CAP_DAC_OVERRIDE also stand for finer
 * ones where a container was given only those. */
static uint64_t main_capabilities(enum probe_method method)
{
	const uint64_t fine = CONFINE_CAP(CAP_BPF) | CONFINE_CAP(CAP_PERFMON) |
			      CONFINE_CAP(CAP_CHECKPOINT_RESTORE);
	const uint64_t read = CONFINE_CAP(CAP_DAC_READ_SEARCH);
	uint64_t has = confine_thread_permitted();
	uint64_t keep = fine | read | CONFINE_CAP(CAP_SYS_PTRACE) | CONFINE_CAP(CAP_KILL);

	if (method == PROBE_PERF || (has & fine) != fine)
		keep |= CONFINE_CAP(CAP_SYS_ADMIN);
	if (!(has & read))
		keep |= CONFINE_CAP(CAP_DAC_OVERRIDE);
	return keep;
}

void tracer_confine_main(const struct tracer_settings *s, enum probe_method method)
{
	const struct confine_thread plan = {
		.capabilities = main_capabilities(method),
		.files_as_nobody = true,
		.calls = {CONFINE_CALLS(main_calls, fcntl_commands, main_choices), .opens = true,
			.forks = true, /* uprobe_detach_all() */
			.strict = true, .logged = true},
	};

	if (s->confine)
		enter(&plan);
}

static void folder_of(const char *path, char folder[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	if (slash)
		snprintf(folder, PATH_MAX, "%.*s", (int)MAX(slash - path, 1), path);
	else
		snprintf(folder, PATH_MAX, ".");
}

/* The recording may lie in the folder of the user who called sudo: files that are begun there when
 * one is full are that user's, by giving them away or by opening them with that user's rights
 * (setfsuid). Its name may be a link: SQLite puts its own files beside what
 * the link leads to. */
void tracer_confine_store(void *arg)
{
	const struct tracer_settings *s = arg;
	char named[PATH_MAX], real[PATH_MAX], path[PATH_MAX];
	const char *const folders[] = {named, real};
	const struct confine_thread plan = {
		.capabilities = CONFINE_CAP(CAP_CHOWN) | CONFINE_CAP(CAP_DAC_OVERRIDE) |
				CONFINE_CAP(CAP_FOWNER) | CONFINE_CAP(CAP_SETUID) |
				CONFINE_CAP(CAP_SETGID),
		.paths = true,
		.files = {.folders = folders, .folder_count = ARRAY_SIZE(folders)},
		.calls = {CONFINE_CALLS(store_calls, fcntl_commands, store_choices), .opens = true,
			.writes = true, .strict = true, .logged = true},
	};

	if (!s->confine)
		return;
	folder_of(s->db_path, named);
	folder_of(realpath(s->db_path, path) ? path : s->db_path, real);
	enter(&plan);
}

void tracer_confine_explainer(void *arg)
{
	const struct tracer_settings *s = arg;
	static const struct confine_thread plan = {
		.paths = true,
		.calls = {.calls = engine_calls,
			.call_count = ARRAY_SIZE(engine_calls),
			.opens = true,
			.strict = true,
			.logged = true},
	};

	if (s->confine)
		enter(&plan);
}

void tracer_confine_metrics(void)
{
	static const struct confine_thread plan = {
		.paths = true,
		.files = {.freedoms = CONFINE_CONNECTS},
		.calls = {CONFINE_CALLS(metrics_calls, fcntl_commands, metrics_choices),
			.opens = true, .strict = true, .logged = true},
	};

	enter(&plan);
}

int tracer_confine_begin(struct tracer_settings *s)
{
	const struct spawn_program programs[] = {
		{GPU_CHILD_NAME, gpu_sampler_library()},
		{SYMBOL_CHILD_NAME, NULL},
	};
	const char *const sockets[SPAWN_SOCKETS] = {s->annotate_path, s->stream_path};
	int r = spawn_server_start(programs, ARRAY_SIZE(programs), sockets);

	s->confine |= r == 0;
	return r;
}
