/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - privileges, then paths (landlock), then system calls (seccomp).
 *
 * Each is enough against most of what a hostile file could do with a fault in a reader; together
 * they leave it this process's own memory, the files it was handed and the socket.
 *
 * Invariants:
 *  1. A call that is not listed fails with EPERM, so that a library that tries to open something
 *     goes on without it. Only a foreign architecture's calls end the process.
 *  2. No memory becomes executable, and signals go to this process alone. */
#include "agent/symbol/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/symbol/child.h"
#include "base/confine.h"
#include "base/macros.h"

#define ADDRESS_BYTES                                                                              \
	(8ULL << 30)             /* the largest libraries have 2 GB, and libdw maps them again     \
				  */
#define FILE_BYTES (64ULL << 20) /* the largest unwind table: 8 Mi rows of 6 bytes, and rules */
#define OPEN_FILES 1024

/* ---- paths ---- */

/* As the kernel has it; headers of distributions are older. */
struct landlock_rights {
	uint64_t files, network, scope;
};

#define LANDLOCK_ASK_VERSION 1u

/* All that versions 1 to 6 can forbid; 7 brought no right. No rule is added, so all is forbidden.
 */
static size_t landlock_rights(int version, struct landlock_rights *r)
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

static int forbid_paths(int *ret_version)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_ASK_VERSION);
	struct landlock_rights rights;
	int fd, r = 0;

	if (version <= 0) { /* not built in, or not switched on */
		*ret_version = 0;
		return 0;
	}
	fd = (int)syscall(
		SYS_landlock_create_ruleset, &rights, landlock_rights((int)version, &rights), 0);
	if (fd < 0)
		return -errno;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	close(fd);
	*ret_version = (int)version;
	return r;
}

/* ---- system calls ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "the calls of this architecture are not known"
#endif

static const uint16_t free_calls[] = {
	/* files it was handed, and the table it hands back */
	__NR_read, __NR_pread64, __NR_readv, __NR_lseek, __NR_close, __NR_fstat, __NR_memfd_create,
	__NR_ftruncate, __NR_write, __NR_pwrite64,
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

static const uint16_t fcntl_commands[] = {
	F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS};

struct filter {
	struct sock_filter code[192];
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

static void emit_fcntl(struct filter *f)
{
	uint8_t rows = ARRAY_SIZE(fcntl_commands);

	emit(f, BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, (uint8_t)(2 * rows + 2));
	emit_load(f, offsetof(struct seccomp_data, args) + sizeof(uint64_t));
	for (uint8_t i = 0; i < rows; i++) {
		emit(f, BPF_JMP | BPF_JEQ | BPF_K, fcntl_commands[i], 0, 1);
		emit_return(f, SECCOMP_RET_ALLOW);
	}
	emit_return(f, REFUSED);
}

static int forbid_calls(void)
{
	struct filter f = {.count = 0};
	struct sock_fprog program;

	emit_load(&f, offsetof(struct seccomp_data, arch));
	emit(&f, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
	emit_return(&f, SECCOMP_RET_KILL_PROCESS);
	emit_load(&f, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_SIZE(free_calls); i++) {
		emit(&f, BPF_JMP | BPF_JEQ | BPF_K, free_calls[i], 0, 1);
		emit_return(&f, SECCOMP_RET_ALLOW);
	}
	emit_checked(&f, __NR_mmap, 2, BPF_JSET, PROT_EXEC, false);
	emit_checked(&f, __NR_mprotect, 2, BPF_JSET, PROT_EXEC, false);
	emit_checked(&f, __NR_newfstatat, 3, BPF_JSET, AT_EMPTY_PATH, true);
	emit_checked(&f, __NR_statx, 2, BPF_JSET, AT_EMPTY_PATH, true);
	emit_checked(&f, __NR_tgkill, 0, BPF_JEQ, (uint32_t)getpid(), true); /* abort() */
	emit_fcntl(&f);
	emit_return(&f, REFUSED);
	if (f.count > ARRAY_SIZE(f.code))
		return -E2BIG;
	program = (struct sock_fprog){.len = f.count, .filter = f.code};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return -errno;
	return 0;
}

#endif

/* ---- all of it ---- */

static int give_up_privileges(int socket)
{
	static const struct confine_limits limits = {
		.address_bytes = ADDRESS_BYTES,
		.file_bytes = FILE_BYTES,
		.open_files = OPEN_FILES,
	};
	int r;

	confine_limits(&limits);
	(void)prctl(PR_SET_NAME, SYMBOL_CHILD_NAME, 0, 0, 0);
	confine_bounding_set();
	r = confine_user(CONFINE_NOBODY);
	if (r == 0)
		r = confine_capabilities();
	if (r == 0)
		r = confine_life(socket);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = -errno;
	return r;
}

int sandbox_enter(int socket, struct sandbox *ret)
{
	struct sandbox s = {0};
	int r = give_up_privileges(socket);

	if (r == 0)
		r = forbid_paths(&s.landlock);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (r == 0)
		r = forbid_calls();
	s.seccomp = r == 0;
#endif
	if (r == 0)
		*ret = s;
	return r;
}
