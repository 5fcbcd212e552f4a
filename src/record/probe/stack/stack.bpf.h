/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* stack.bpf.h - where a call came from: its native and Python frames, sent once per distinct stack.
 *
 * The hash is made from what the code is (file contents and offsets, names of Python functions) and
 * not from where it is loaded, so the ranks of a job share their stacks. A walk belongs to a thread
 * and lies in its storage: per-CPU memory would be overwritten by another thread's walk, because
 * uprobe programs can be preempted. */
#pragma once

#include "record/probe/call/arguments.bpf.h"
#include "record/probe/stack/python.bpf.h"

const volatile bool stacks_wanted = true;
const volatile bool python_wanted = true;

struct stack_process {
	__u32 set; /* of mappings; 0: none */
	__u32 generation;
	struct stack_python python;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct stack_process);
} stack_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, __u64);
} stacks_sent SEC(".maps");

/* The stack that was sent for all that are like it. A loop is interrupted anywhere, and of its many
 * stacks one says what it is in. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u64);
} stacks_alike SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_tally);
} stack_tallies SEC(".maps");

static __always_inline struct stack_tally *stack_tally_of(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&stack_tallies, &zero);
}

/* The thread's id as its own process knows it, which is what Python wrote down. */
static __always_inline __u32 tid_in_namespace(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	__u64 level = BOUNDED(BPF_CORE_READ(pid, level), 31);
	int nr = 0;

	/* a variable index is not relocated: the kernel's element is larger than ours */
	bpf_probe_read_kernel(&nr, sizeof(nr),
		(void *)pid + bpf_core_field_offset(pid->numbers) +
			level * bpf_core_type_size(struct upid) +
			bpf_core_field_offset(struct upid, nr));
	return (__u32)nr;
}

/* stack_send - sent before? Else it is now, or it is a counted loss and the next one tries again.
 */
__attribute__((noinline)) int stack_send(struct stack_walk *w)
{
	struct stack_tally *t = stack_tally_of();
	__u64 now = bpf_ktime_get_ns(), hash, words;

	if (!w || !t)
		return 0;
	hash = w->hash;
	words = AT_MOST(w->record.native_count + 3 * w->record.python_count, STACK_WORDS - 1);
	if (bpf_map_lookup_elem(&stacks_sent, &hash)) {
		__sync_fetch_and_add(&t->repeated, 1);
		return 0;
	}
	w->record.h.size = sizeof(w->record) + 8 * words;
	w->record.h.kind = STACK_RECORD_STACK;
	w->record.h.pid = w->pid;
	w->record.h.tid = w->tid;
	w->record.h.time_ns = now;
	w->record.hash = hash;
	w->record.set = w->set;
	if (bpf_ringbuf_output(
		    &stacks, &w->record, sizeof(w->record) + 8 * words, BPF_RB_NO_WAKEUP) < 0) {
		__sync_fetch_and_add(&t->lost[STACK_LOSS_RING_FULL], 1);
		return 0;
	}
	__sync_fetch_and_add(&t->sent, 1);
	bpf_map_update_elem(&stacks_sent, &hash, &now, BPF_ANY);
	return 0;
}

/* The calls under way further out than depth @depth: their return addresses were replaced. */
static __always_inline void walk_begin(
	struct stack_walk *w, struct task_struct *task, const struct thread_state *ts, __u32 depth)
{
	__u32 pid = task->tgid;
	struct stack_process *p = bpf_map_lookup_elem(&stack_processes, &pid);

	__builtin_memset(&w->record, 0, sizeof(w->record));
	w->record.guessed_from = STACK_GUESSED;
	w->record.python_stop = STACK_PYTHON_NONE;
	w->hash = STACK_NATIVE_MAX;
	w->library = w->far = w->lines = 0;
	w->is_sample = 0;
	w->map_start = w->map_end = 0;
	w->guessed = 0;
	w->pid = pid;
	w->tid = task->pid;
	w->life = task->group_leader->start_boottime + task->self_exec_id;
	w->set = p ? p->set : 0;
	w->generation = p ? p->generation : 0;
	w->python.runtime = 0;
	if (p && python_wanted && p->python.runtime)
		w->python = p->python;
	w->returns = depth;
#pragma unroll
	for (int i = 0; i < CALL_DEPTH; i++)
		w->real_return[i] = ts->calls[i].real_return;
}

/* One that is like the walk's and was sent; else the walk's own, for those to come. */
__attribute__((noinline)) int stack_settle(struct stack_walk *w)
{
	__u64 hash, like, *sent;

	if (!w)
		return 0;
	hash = w->hash;
	like = hash_mix((w->record.python_count ? w->lines ^ w->library : w->far) ^ w->pid);
	if (bpf_map_lookup_elem(&stacks_sent, &hash))
		return 0;
	sent = bpf_map_lookup_elem(&stacks_alike, &like);
	if (!sent) {
		bpf_map_update_elem(&stacks_alike, &like, &hash, BPF_ANY);
		return 0;
	}
	like = *sent;
	if (bpf_map_lookup_elem(&stacks_sent, &like))
		w->hash = like;
	return 0;
}

/* Both halves of the walk, and its hash. */
static __always_inline __u64 walk_finish(
	struct stack_walk *w, struct task_struct *task, struct stack_tally *t, __u64 begun)
{
	unwind_walk(w);
	if (w->python.runtime) {
		w->tid_space = tid_in_namespace(task);
		python_walk(w);
	}
	w->hash = hash_mix(w->hash ^ ((__u64)w->record.stop << 8 | w->record.guessed_from)) | 1;
	if (w->is_sample)
		stack_settle(w);
	stack_send(w);
	if (w->record.stop == STACK_STOP_OUTERMOST)
		__sync_fetch_and_add(&t->complete, 1);
	__sync_fetch_and_add(&t->taken_ns, bpf_ktime_get_ns() - begun);
	return w->hash;
}

/* stack_take - the stack of call @c (at depth @depth), which returns to @ip with these registers.
 * Returns its hash; 0: there is none. */
static __always_inline __u64 stack_take(struct task_struct *task, const struct thread_state *ts,
	const struct pending_call *c, __u32 depth, __u64 sp, __u64 fp)
{
	struct stack_tally *t = stack_tally_of();
	struct stack_walk *w;
	__u64 begun;

	if (!stacks_wanted || !recording || !t)
		return 0;
	begun = bpf_ktime_get_ns();
	__sync_fetch_and_add(&t->taken, 1);
	w = bpf_task_storage_get(&walks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!w) {
		__sync_fetch_and_add(&t->lost[STACK_LOSS_NO_STORAGE], 1);
		return 0;
	}
	walk_begin(w, task, ts, depth);
	w->function = c->function;
	w->ip = c->real_return;
	w->sp = sp;
	w->fp = fp;
	return walk_finish(w, task, t, begun);
}

/* Where the current thread left user mode, or was interrupted in it: the registers lie at the top
 * of its kernel stack in both cases. */
static __always_inline void walk_begin_interrupted(struct stack_walk *w, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	unsigned long *ip = &regs->rip, *sp = &regs->rsp, *fp = &regs->rbp;
#else
	struct user_pt_regs *user = (struct user_pt_regs *)regs;
	__u64 *ip = &user->pc, *sp = &user->sp, *fp = &user->regs[29];

	bpf_probe_read_kernel(&w->lr, sizeof(w->lr), &user->regs[30]);
#endif
	bpf_probe_read_kernel(&w->ip, sizeof(w->ip), ip);
	bpf_probe_read_kernel(&w->sp, sizeof(w->sp), sp);
	bpf_probe_read_kernel(&w->fp, sizeof(w->fp), fp);
	w->function = 0;
}

/* Walks that begin with interrupts off, where no other can come between: a thread's own may be half
 * done. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_walk);
} cpu_walks SEC(".maps");

/* stack_take_interrupted - the user stack of the current thread, wherever it is: for programs that
 * run with interrupts off. Returns its hash; 0: there is none. */
static __always_inline __u64 stack_take_interrupted(
	struct task_struct *task, struct thread_state *ts, bool is_sample)
{
	struct stack_tally *t = stack_tally_of();
	struct stack_walk *w;
	__u32 zero = 0;
	__u64 begun, hash;

	if (!stacks_wanted || !recording || !t)
		return 0;
	w = bpf_map_lookup_elem(&cpu_walks, &zero);
	if (!w)
		return 0;
	begun = bpf_ktime_get_ns();
	__sync_fetch_and_add(&t->taken, 1);
	walk_begin(w, task, ts, ts->depth);
	walk_begin_interrupted(w, task);
	w->is_sample = is_sample;
	w->thread = ts->python_thread;
	w->searched_ns = 0;
	hash = walk_finish(w, task, t, begun);
	ts->python_thread = w->thread;
	return hash;
}

/* A child begins as a copy of its parent, code and interpreter included. */
static __always_inline void stack_process_fork(__u32 parent, __u32 child)
{
	struct stack_process *p = bpf_map_lookup_elem(&stack_processes, &parent);

	if (p)
		bpf_map_update_elem(&stack_processes, &child, p, BPF_ANY);
}

static __always_inline void stack_process_end(__u32 pid)
{
	bpf_map_delete_elem(&stack_processes, &pid);
}
