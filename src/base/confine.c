/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - drops privileges, by system calls alone. */
#include "base/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/macros.h"

/* Seccomp: which system calls a process may still make.
 *
 * Invariants:
 *  1. A call that is not listed fails with EPERM, so that a library that tries to do something else
 *     goes on without it. Only a foreign architecture's calls, and of a strict one the hostile
 *     calls, end the process.
 *  2. No memory becomes executable, and signals go to this process alone. */

const uint16_t confine_ioctls[CONFINE_IOCTLS] = {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
/* What the kernel itself has a thread call that somebody has put a uprobe into; headers of
 * distributions are older. */
#define PROBE_CALLS 335, 336,
#define X32_CALLS   0x40000000u
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#define PROBE_CALLS
#else
#error "unsupported architecture"
#endif

static const uint16_t common_calls[] = {PROBE_CALLS
						/* what it has open */
						__NR_read,
	__NR_pread64, __NR_readv, __NR_lseek, __NR_close, __NR_fstat,
	/* the socket */
	__NR_recvmsg, __NR_sendmsg, __NR_ppoll,
#ifdef __NR_poll
	__NR_poll,
#endif
	/* memory */
	__NR_munmap, __NR_mremap, __NR_madvise, __NR_brk, __NR_sysinfo,
	/* itself */
	__NR_futex, __NR_sched_yield, __NR_membarrier, __NR_rseq, __NR_set_robust_list,
	__NR_rt_sigaction, __NR_rt_sigprocmask, __NR_rt_sigreturn, __NR_restart_syscall,
	__NR_clock_gettime, __NR_getrandom, __NR_getpid, __NR_gettid, __NR_exit, __NR_exit_group};

/* Questions about paths; landlock has no say in them. */
static const uint16_t path_calls[] = {
	__NR_getcwd,
	__NR_faccessat,
	__NR_faccessat2,
	__NR_geteuid,
	__NR_newfstatat,
	__NR_statx,
#ifdef __NR_access
	__NR_access,
	__NR_stat,
	__NR_lstat,
#endif
};

static const uint16_t link_calls[] = {
	__NR_readlinkat,
#ifdef __NR_readlink
	__NR_readlink,
#endif
};

/* Other programs, other processes' memory, the view of the file system, the kernel itself. */
static const uint16_t hostile_calls[] = {__NR_execve, __NR_execveat, __NR_ptrace,
	__NR_process_vm_writev, __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot,
	__NR_open_tree, __NR_move_mount, __NR_fsopen, __NR_fsmount, __NR_setns, __NR_unshare,
	__NR_init_module, __NR_finit_module, __NR_delete_module, __NR_kexec_load,
	__NR_kexec_file_load, __NR_reboot, __NR_swapon, __NR_swapoff, __NR_acct,
#ifdef __NR_iopl
	__NR_iopl, __NR_ioperm,
#endif
	__NR_settimeofday, __NR_clock_settime, __NR_keyctl, __NR_add_key, __NR_request_key,
	__NR_userfaultfd};

#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
		CLONE_NEWPID | CLONE_NEWNET)

struct filter {
	struct sock_filter code[512];
	uint16_t count;
};

static void emit(struct filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	if (f->count < ARRAY_SIZE(f->code))
		f->code[f->count] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
	f->count++; /* one too many is found at the end */
}

static void emit_load(struct filter *f, size_t offset)
{
	emit(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_return(struct filter *f, uint32_t action)
{
	emit(f, BPF_RET | BPF_K, action, 0, 0);
}

#define REFUSED (SECCOMP_RET_ERRNO | EPERM)

static void emit_calls(struct filter *f, const uint16_t *calls, size_t count, uint32_t action)
{
	for (size_t i = 0; i < count; i++) {
		emit(f, BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		emit_return(f, action);
	}
}

static void emit_free(struct filter *f, const uint16_t *calls, size_t count)
{
	emit_calls(f, calls, count, SECCOMP_RET_ALLOW);
}

/* Call @number with the low half of argument @arg compared with @k by @compare: allowed on @yes. */
static void emit_checked(
	struct filter *f, uint32_t number, size_t arg, uint16_t compare, uint32_t k, bool yes)
{
	emit(f, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
	emit_load(f, offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t));
	emit(f, BPF_JMP | compare | BPF_K, k, 0, 1);
	emit_return(f, yes ? SECCOMP_RET_ALLOW : REFUSED);
	emit_return(f, yes ? REFUSED : SECCOMP_RET_ALLOW);
}

/* Call @number with the low half of argument @arg one of @values: at most 126. */
static void emit_choice(
	struct filter *f, uint32_t number, size_t arg, const uint16_t *values, size_t count)
{
	emit(f, BPF_JMP | BPF_JEQ | BPF_K, number, 0, (uint8_t)(2 * count + 2));
	emit_load(f, offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t));
	emit_calls(f, values, count, SECCOMP_RET_ALLOW);
	emit_return(f, REFUSED);
}

static void emit_paths(struct filter *f, const struct confine_calls *c)
{
	static const uint32_t writes = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;

	if (!c->opens) { /* of a descriptor alone */
		emit_checked(f, __NR_newfstatat, 3, BPF_JSET, AT_EMPTY_PATH, true);
		emit_checked(f, __NR_statx, 2, BPF_JSET, AT_EMPTY_PATH, true);
		return;
	}
	emit_free(f, path_calls, ARRAY_SIZE(path_calls));
	if (!c->links_hidden)
		emit_free(f, link_calls, ARRAY_SIZE(link_calls));
	emit_checked(f, __NR_openat, 2, BPF_JSET, c->writes ? 0 : writes, false);
#ifdef __NR_open
	emit_checked(f, __NR_open, 1, BPF_JSET, c->writes ? 0 : writes, false);
#endif
}

/* The flags of clone3() are in memory, out of a filter's sight: libc then takes clone(). */
static void emit_fork(struct filter *f)
{
	static const uint16_t hidden[] = {__NR_clone3}, waiting[] = {__NR_wait4};

	emit_checked(f, __NR_clone, 0, BPF_JSET, NAMESPACES, false);
	emit_calls(f, hidden, ARRAY_SIZE(hidden), SECCOMP_RET_ERRNO | ENOSYS);
	emit_free(f, waiting, ARRAY_SIZE(waiting));
}

int confine_calls(const struct confine_calls *c)
{
	struct filter f = {.count = 0};
	struct sock_fprog program;

	emit_load(&f, offsetof(struct seccomp_data, arch));
	emit(&f, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
	emit_return(&f, SECCOMP_RET_KILL_PROCESS);
	emit_load(&f, offsetof(struct seccomp_data, nr));
#ifdef X32_CALLS
	emit(&f, BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1);
	emit_return(&f, SECCOMP_RET_KILL_PROCESS);
#endif
	if (c->strict)
		emit_calls(&f, hostile_calls, ARRAY_SIZE(hostile_calls), SECCOMP_RET_KILL_PROCESS);
	emit_free(&f, common_calls, ARRAY_SIZE(common_calls));
	emit_free(&f, c->calls, c->call_count);
	for (size_t i = 0; i < c->choice_count; i++)
		emit_choice(&f, c->choices[i].call, c->choices[i].arg, c->choices[i].values,
			c->choices[i].count);
	emit_paths(&f, c);
	if (c->forks)
		emit_fork(&f);
	emit_checked(&f, __NR_mmap, 2, BPF_JSET, PROT_EXEC, false);
	emit_checked(&f, __NR_mprotect, 2, BPF_JSET, PROT_EXEC, false);
	emit_checked(&f, __NR_tgkill, 0, BPF_JEQ, (uint32_t)getpid(), true); /* abort() */
	emit_choice(&f, __NR_fcntl, 1, c->fcntl_commands, c->fcntl_count);
	emit_return(&f, REFUSED);
	if (f.count > ARRAY_SIZE(f.code))
		return -E2BIG;
	program = (struct sock_fprog){.len = f.count, .filter = f.code};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, c->logged ? SECCOMP_FILTER_FLAG_LOG : 0,
		    &program) < 0)
		return -errno;
	return 1;
}

#else

int confine_calls(const struct confine_calls *c)
{
	(void)c;
	return 0;
}

#endif

/* Landlock: which files a process may still open. Its interface is declared here
 * as the kernel has it, because headers of distributions are older. */

struct landlock_rights {
	uint64_t files, network, scope;
};

struct landlock_rule {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

#define LANDLOCK_ASK_VERSION 1u
#define LANDLOCK_PATH        1u
#define LANDLOCK_READ_FILE   (1ULL << 2)

#define LANDLOCK_READ_DIR (1ULL << 3)
#define LANDLOCK_SOCKET   (1ULL << 9)
#define LANDLOCK_DEVICE   (1ULL << 15) /* ioctl() on one */

/* Writing, removing and making files and folders, moving them between folders, truncating. */
#define LANDLOCK_WRITES                                                                            \
	(1ULL << 1 | 1ULL << 4 | 1ULL << 5 | 1ULL << 7 | 1ULL << 8 | 1ULL << 13 | 1ULL << 14)

#define LANDLOCK_BIND    1ULL
#define LANDLOCK_CONNECT 2ULL
#define LANDLOCK_SIGNAL  2ULL

/* All that versions 1 to 6 can forbid; 7 brought no right. */
static size_t rights_of(int version, struct landlock_rights *r)
{
	static const unsigned file_rights[] = {0, 13, 14, 15, 15, 16};

	*r = (struct landlock_rights){
		.files = (1ULL << file_rights[MIN((size_t)version, ARRAY_SIZE(file_rights) - 1)]) -
			 1,
		.network = 3, /* bind and connect */
		.scope = 3,   /* abstract sockets and signals to the outside */
	};
	return version < 4   ? offsetof(struct landlock_rights, network)
	       : version < 6 ? offsetof(struct landlock_rights, scope)
			     : sizeof(*r);
}

/* The kernel's version, 0 if it has no landlock or it is not switched on. */
static int ask_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_ASK_VERSION);

	return version > 0 ? (int)version : 0;
}

static int add_rule(int rules, int file, uint64_t allowed)
{
	struct landlock_rule rule = {.allowed = allowed, .fd = file};

	return syscall(SYS_landlock_add_rule, rules, LANDLOCK_PATH, &rule, 0) < 0 ? -errno : 0;
}

int confine_paths(const int *files, size_t count, int *ret_version)
{
	int r = 0, version = ask_version();
	struct landlock_rights rights;
	_cleanup_fd_ int fd = -1;

	if (!version) {
		*ret_version = 0;
		return 0;
	}
	fd = (int)syscall(SYS_landlock_create_ruleset, &rights, rights_of(version, &rights), 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_rule(fd, files[i], LANDLOCK_READ_FILE);
	if (r < 0)
		return r;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	*ret_version = version;
	return 0;
}

/* A file has no folder's rights. */
static int allow_reading(int rules, const char *path)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	return add_rule(
		rules, fd, LANDLOCK_READ_FILE | (S_ISDIR(st.st_mode) ? LANDLOCK_READ_DIR : 0));
}

int confine_files(const struct confine_files *f, int *ret_version)
{
	int r = 0, version = ask_version();
	uint64_t below = LANDLOCK_WRITES;
	struct landlock_rights rights;
	_cleanup_fd_ int fd = -1;
	size_t size;

	if (!version) {
		*ret_version = 0;
		return 0;
	}
	size = rights_of(version, &rights);
	rights.files &= ~LANDLOCK_DEVICE;
	if (f->freedoms & CONFINE_SOCKETS)
		below |= LANDLOCK_SOCKET;
	if (f->readable)
		below |= LANDLOCK_READ_FILE | LANDLOCK_READ_DIR;
	else
		rights.files &= ~(LANDLOCK_READ_FILE | LANDLOCK_READ_DIR);
	rights.network &= ~((f->freedoms & CONFINE_LISTENS ? LANDLOCK_BIND : 0) |
			    (f->freedoms & CONFINE_CONNECTS ? LANDLOCK_CONNECT : 0));
	rights.scope &= ~(f->freedoms & CONFINE_SIGNALS ? LANDLOCK_SIGNAL : 0);
	fd = (int)syscall(SYS_landlock_create_ruleset, &rights, size, 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; r == 0 && i < f->folder_count; i++) {
		_cleanup_fd_ int folder = open(f->folders[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		r = folder < 0 ? -errno : add_rule(fd, folder, rights.files & below);
	}
	for (size_t i = 0; r == 0 && i < f->readable_count; i++)
		r = allow_reading(fd, f->readable[i]);
	if (r < 0)
		return r;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	*ret_version = version;
	return 0;
}

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
