/* SPDX-License-Identifier: Apache-2.0 */
/* confine_calls.c - seccomp: which system calls a process may still make.
 *
 * Invariants:
 *  1. A call that is not listed fails with EPERM, so that a library that tries to do something else
 *     goes on without it. Only a foreign architecture's calls end the process.
 *  2. No memory becomes executable, and signals go to this process alone. */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "the calls of this architecture are not known"
#endif

static const uint16_t common_calls[] = {
	/* what it has open */
	__NR_read, __NR_pread64, __NR_readv, __NR_lseek, __NR_close, __NR_fstat,
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
	__NR_readlinkat,
	__NR_faccessat,
	__NR_faccessat2,
	__NR_geteuid,
	__NR_newfstatat,
	__NR_statx,
#ifdef __NR_access
	__NR_access,
	__NR_readlink,
	__NR_stat,
	__NR_lstat,
#endif
};

struct filter {
	struct sock_filter code[256];
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

static void emit_free(struct filter *f, const uint16_t *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		emit(f, BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		emit_return(f, SECCOMP_RET_ALLOW);
	}
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

static void emit_fcntl(struct filter *f, const struct confine_calls *c)
{
	emit(f, BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, (uint8_t)(2 * c->fcntl_count + 2));
	emit_load(f, offsetof(struct seccomp_data, args) + sizeof(uint64_t));
	for (size_t i = 0; i < c->fcntl_count; i++) {
		emit(f, BPF_JMP | BPF_JEQ | BPF_K, c->fcntl_commands[i], 0, 1);
		emit_return(f, SECCOMP_RET_ALLOW);
	}
	emit_return(f, REFUSED);
}

static void emit_paths(struct filter *f, bool opens)
{
	static const uint32_t writes = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;

	if (!opens) { /* of a descriptor alone */
		emit_checked(f, __NR_newfstatat, 3, BPF_JSET, AT_EMPTY_PATH, true);
		emit_checked(f, __NR_statx, 2, BPF_JSET, AT_EMPTY_PATH, true);
		return;
	}
	emit_free(f, path_calls, ARRAY_SIZE(path_calls));
	emit_checked(f, __NR_openat, 2, BPF_JSET, writes, false);
#ifdef __NR_open
	emit_checked(f, __NR_open, 1, BPF_JSET, writes, false);
#endif
}

int confine_calls(const struct confine_calls *c)
{
	struct filter f = {.count = 0};
	struct sock_fprog program;

	emit_load(&f, offsetof(struct seccomp_data, arch));
	emit(&f, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
	emit_return(&f, SECCOMP_RET_KILL_PROCESS);
	emit_load(&f, offsetof(struct seccomp_data, nr));
	emit_free(&f, common_calls, ARRAY_SIZE(common_calls));
	emit_free(&f, c->calls, c->call_count);
	emit_paths(&f, c->opens);
	emit_checked(&f, __NR_mmap, 2, BPF_JSET, PROT_EXEC, false);
	emit_checked(&f, __NR_mprotect, 2, BPF_JSET, PROT_EXEC, false);
	emit_checked(&f, __NR_tgkill, 0, BPF_JEQ, (uint32_t)getpid(), true); /* abort() */
	emit_fcntl(&f, c);
	emit_return(&f, REFUSED);
	if (f.count > ARRAY_SIZE(f.code))
		return -E2BIG;
	program = (struct sock_fprog){.len = f.count, .filter = f.code};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
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
