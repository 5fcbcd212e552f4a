/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* wait.bpf.h - what a thread that leaves the CPU blocked waits for, told by the system call that it
 * is in: a look at its saved registers, no kernel stack. For reads and writes the kind of the file
 * decides, which is looked up when the stay is over.
 *
 * A page fault is no system call. One that waits for a disk is the disk's, as for mapped data. */
#pragma once

#include "record/probe/ledger/syscall.bpf.h"
#include "record/probe/target.bpf.h"

#define WAIT_NO_FILE (~0U)
#define WAIT_BY_FILE LEDGER_LINES /* in the table below: by the file of the first argument */
#define FILE_KIND    0170000
#define FILE_FIFO    0010000
#define FILE_DEVICE  0020000
#define FILE_SOCKET  0140000
#define FILE_REGULAR 0100000
#define FILE_FOLDER  0040000
#define FILE_BLOCK   0060000

/* 1 + the line of each system call; 0: it is not known what one waits for in it. */
#define L(NAME) 1 + LEDGER_##NAME
#define BY_FILE 1 + WAIT_BY_FILE
static const __u8 wait_of_call[CALLS_MAX] = {
	[CALL_FUTEX] = L(LOCK),
	[CALL_FUTEX_WAIT] = L(LOCK),
	[CALL_FUTEX_WAITV] = L(LOCK),
	[CALL_SEMOP] = L(LOCK),
	[CALL_SEMTIMEDOP] = L(LOCK),
	[CALL_FLOCK] = L(LOCK),
	[CALL_FCNTL] = L(LOCK), /* of a range of a file */
	[CALL_PPOLL] = L(POLL),
	[CALL_PSELECT6] = L(POLL),
	[CALL_EPOLL_PWAIT] = L(POLL),
	[CALL_EPOLL_PWAIT2] = L(POLL),
	[CALL_NANOSLEEP] = L(SLEEP),
	[CALL_CLOCK_NANOSLEEP] = L(SLEEP),
	[CALL_FSYNC] = L(DISK),
	[CALL_FDATASYNC] = L(DISK),
	[CALL_SYNC] = L(DISK),
	[CALL_SYNCFS] = L(DISK),
	[CALL_SYNC_FILE_RANGE] = L(DISK),
	[CALL_MSYNC] = L(DISK),
	[CALL_OPENAT] = L(DISK),
	[CALL_OPENAT2] = L(DISK),
	[CALL_CLOSE] = L(DISK),
	[CALL_FSTAT] = L(DISK),
	[CALL_NEWFSTATAT] = L(DISK),
	[CALL_STATX] = L(DISK),
	[CALL_GETDENTS64] = L(DISK),
	[CALL_MKDIRAT] = L(DISK),
	[CALL_UNLINKAT] = L(DISK),
	[CALL_RENAMEAT] = L(DISK),
	[CALL_RENAMEAT2] = L(DISK),
	[CALL_TRUNCATE] = L(DISK),
	[CALL_FTRUNCATE] = L(DISK),
	[CALL_FALLOCATE] = L(DISK),
	[CALL_COPY_FILE_RANGE] = L(DISK),
	[CALL_WAIT4] = L(CHILD),
	[CALL_WAITID] = L(CHILD),
	[CALL_IOCTL] = L(DEVICE),
	[CALL_MMAP] = L(MEMORY),
	[CALL_MPROTECT] = L(MEMORY),
	[CALL_MUNMAP] = L(MEMORY),
	[CALL_MREMAP] = L(MEMORY),
	[CALL_MADVISE] = L(MEMORY),
	[CALL_BRK] = L(MEMORY),
	[CALL_CONNECT] = L(SOCKET),
	[CALL_ACCEPT] = L(SOCKET),
	[CALL_ACCEPT4] = L(SOCKET),
	[CALL_SENDTO] = L(SOCKET),
	[CALL_RECVFROM] = L(SOCKET),
	[CALL_SENDMSG] = L(SOCKET),
	[CALL_RECVMSG] = L(SOCKET),
	[CALL_SENDMMSG] = L(SOCKET),
	[CALL_RECVMMSG] = L(SOCKET),
	[CALL_READ] = BY_FILE,
	[CALL_WRITE] = BY_FILE,
	[CALL_READV] = BY_FILE,
	[CALL_WRITEV] = BY_FILE,
	[CALL_PREAD] = BY_FILE,
	[CALL_PWRITE] = BY_FILE,
	[CALL_PREADV] = BY_FILE,
	[CALL_PWRITEV] = BY_FILE,
	[CALL_PREADV2] = BY_FILE,
	[CALL_PWRITEV2] = BY_FILE,
	[CALL_SENDFILE] = BY_FILE,
	[CALL_SPLICE] = BY_FILE,
#if defined(__TARGET_ARCH_x86)
	[CALL_OPEN] = L(DISK),
	[CALL_STAT] = L(DISK),
	[CALL_LSTAT] = L(DISK),
	[CALL_GETDENTS] = L(DISK),
	[CALL_RENAME] = L(DISK),
	[CALL_MKDIR] = L(DISK),
	[CALL_UNLINK] = L(DISK),
	[CALL_POLL] = L(POLL),
	[CALL_SELECT] = L(POLL),
	[CALL_EPOLL_WAIT] = L(POLL),
#endif
};
#undef BY_FILE
#undef L

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs___kernel { /* arm64: what follows the registers that user space knows */
	__u64 orig_x0;
	int syscallno;
};

#pragma clang attribute pop

/* The system call that @task is in and its first argument. -1: none (a page fault). */
static __always_inline long wait_call(struct task_struct *task, __u64 *ret_argument)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	*ret_argument = regs->rdi;
	return (long)regs->orig_rax;
#else
	struct pt_regs___kernel *more = (void *)regs;

	*ret_argument = BPF_CORE_READ(more, orig_x0);
	return BPF_CORE_READ(more, syscallno);
#endif
}

/* Does @task, which leaves the CPU in @state, stand still by the will of another: a signal, a debugger, a
 * container that is frozen? */
static __always_inline bool wait_is_stop(struct task_struct *task, __u32 state)
{
	return state & (TASK_STOPPED | TASK_TRACED) || task->jobctl & JOBCTL_TRAP_FREEZE;
}

/* Does @task wait for memory, wherever it is, by the kernel's own word: reclaim, swap, the delay above memory.high at the
 * end of any system call? */
static __always_inline bool wait_is_memory(struct thread_state *ts, struct task_struct *task)
{
	if (ts->reclaim_ns || ts->compact_ns)
		return true;
	return bpf_core_field_exists(task->in_memstall) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, in_memstall);
}

/* wait_begin - @task leaves the CPU blocked, in @state: note what for. It is the current one. */
static __always_inline void wait_begin(
	struct thread_state *ts, struct task_struct *task, __u32 state)
{
	__u64 argument = 0;
	long call;
	__u32 kind;

	ts->stay_file = WAIT_NO_FILE;
	if (wait_is_stop(task, state)) {
		ts->stay_line = LEDGER_STOPPED;
		return;
	}
	if (wait_is_memory(ts, task)) {
		ts->stay_line = LEDGER_MEMORY;
		return;
	}
	call = wait_call(task, &argument);
	if (call < 0) {
		ts->stay_line = BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait) ? LEDGER_DISK
									       : LEDGER_MEMORY;
		return;
	}
	kind = call < CALLS_MAX ? wait_of_call[BOUNDED(call, CALLS_MAX - 1)] : 0;
	if (kind && kind != 1 + WAIT_BY_FILE) {
		ts->stay_line = kind - 1;
		return;
	}
	ts->stay_line = LEDGER_BLOCKED;
	if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
		ts->stay_line = LEDGER_DISK;
	else if (kind)
		ts->stay_file = (__u32)argument;
}

/* The line of waiting for descriptor @fd of @task. */
static __always_inline __u32 wait_file_line(struct task_struct *task, __u32 fd)
{
	struct file **files = BPF_CORE_READ(task, files, fdt, fd);
	struct file *file = NULL;

	if (fd >= BPF_CORE_READ(task, files, fdt, max_fds))
		return LEDGER_BLOCKED;
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	switch (BPF_CORE_READ(file, f_inode, i_mode) & FILE_KIND) {
	case FILE_FIFO: return LEDGER_PIPE;
	case FILE_SOCKET: return LEDGER_SOCKET;
	case FILE_DEVICE: return LEDGER_DEVICE;
	case FILE_REGULAR:
	case FILE_FOLDER:
	case FILE_BLOCK: return LEDGER_DISK;
	}
	return LEDGER_BLOCKED;
}

/* wait_line - what the stay that @task comes back from was for. */
static __always_inline __u32 wait_line(struct thread_state *ts, struct task_struct *task)
{
	if (ts->stay_file != WAIT_NO_FILE) {
		ts->stay_line = wait_file_line(task, ts->stay_file);
		ts->stay_file = WAIT_NO_FILE;
	}
	return ts->stay_line;
}
