/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* kernel.bpf.h - the few kernel structures the probes look into.
 *
 * Only the fields used are written down; CO-RE finds their real offsets in the running kernel's
 * BTF when the program is loaded (preserve_access_index). */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

/* The registers a uprobe sees, written down here so that either architecture's object can be built
 * on the other: the layouts are kernel ABI and do not change. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	unsigned long orig_rax, rip, cs, eflags, rsp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
#endif

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "record/probe/bound.bpf.h"

typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads of the process that have not begun to exit */
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level; /* of the innermost namespace */
	struct upid numbers[1];
};

struct bpf_local_storage;

struct inode {
	unsigned short i_mode;
};

struct file {
	struct inode *f_inode;
};

struct mm_struct {
	struct file *exe_file;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	int pid;  /* thread */
	int tgid; /* process */
	unsigned int flags;
	unsigned int __state;
	int exit_code;
	unsigned long jobctl;
	char comm[16];
	struct signal_struct *signal;
	__u64 start_boottime;
	__u64 self_exec_id; /* another with each program it executes */
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	unsigned in_iowait : 1;
	unsigned in_memstall : 1;
	struct files_struct *files;
	struct mm_struct *mm; /* NULL: a kernel thread, or one that has given its memory back */
	struct bpf_local_storage *bpf_storage; /* NULL: no BPF map knows this thread */
};

struct task_struct___before_5_14 {
	long state;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	__u64 __sector;
};

struct request___before_5_17 {
	struct gendisk *rq_disk;
};

struct bpf_iter__task {
	struct task_struct *task;
};

#pragma clang attribute pop

/* Kernel constants that BTF does not carry. */
#define TASK_RUNNING         0
#define TASK_UNINTERRUPTIBLE 2
#define TASK_STOPPED         4
#define TASK_TRACED          8
#define TASK_STATE_MASK      0xff
#define JOBCTL_TRAP_FREEZE   (1UL << 23)
#define PF_KTHREAD           0x00200000
#define REQ_OP_MASK          0xff
#define REQ_OP_READ          0
#define REQ_OP_WRITE         1
#define REQ_OP_FLUSH         2
#define REQ_OP_DISCARD       3
#define REQ_OP_SECURE_ERASE  5
#define REQ_OP_ZONE_APPEND   7
#define REQ_OP_WRITE_ZEROES  9

/* session_is_return - in programs of session probes (6.13), which run at entry and return; after 1 at entry not
 * at return. At the entry the thread stands at the function, at the return behind the call. The kernel's own
 * bpf_session_is_return() changed its arguments in 7.0, and a program can be linked with one of both only. */
static __always_inline bool session_is_return(struct pt_regs *ctx)
{
	return bpf_get_func_ip(ctx) != PT_REGS_IP(ctx);
}

/* A program of uprobes runs for a user thread and can be preempted; another thread may then run the same program on the
 * same CPU. From 6.13 on x86-64, and 6.17 on arm64, the kernel gives programs of this type one stack for each CPU ("private
 * stack"), which both would use: pointers of the one are overwritten by the other, and the kernel crashes (seen on
 * 6.16, emulated). A program that holds a tail call has none, and lies on the thread's own stack. So each of them
 * holds one that is never made. NO_PRIVATE_STACK() in the program itself, not in a function
 * of it, whose callers would then be limited to 256 bytes; each with a map of its own, because kernels compare the
 * users of one. */
const volatile bool makes_tail_calls = false; /* never */

#define NEVER_CALLED(name)                                                                         \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);                                             \
		__uint(max_entries, 1);                                                            \
		__uint(key_size, sizeof(__u32));                                                   \
		__uint(value_size, sizeof(__u32));                                                 \
	} name SEC(".maps")
#define NO_PRIVATE_STACK(ctx, name)                                                                \
	do {                                                                                       \
		if (makes_tail_calls)                                                              \
			bpf_tail_call((ctx), &(name), 0);                                          \
	} while (0)
