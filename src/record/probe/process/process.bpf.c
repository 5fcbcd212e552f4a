// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* process.bpf.c - traced processes through fork, exec and exit; threads told from processes; and
 * the two walks over all threads: admit (give threads of targets their state) and sweep (count
 * calls still under way when tracing stops, and send what their ledgers hold). */
#include "record/probe/ledger/ledger.bpf.h"
#include "record/probe/stack/stack.bpf.h"

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 pid = child->tgid;

	if (!recording || !target_is(parent->tgid))
		return 0;
	if (child->pid == child->tgid) {
		if (target_enter(pid) < 0) {
			hit_lose(SOURCE_HOST, LOSS_TARGET_FULL);
			return 0;
		}
		stack_process_fork(parent->tgid, pid);
		process_record_send(parent, HOST_PROCESS_FORK, pid, 0);
	}
	thread_make(child); /* on failure the thread's first call tries again and counts */
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task)
{
	if (!target_is(task->tgid))
		return 0;
	stack_process_end(task->tgid);
	if (recording)
		process_record_send(task, HOST_PROCESS_EXEC, 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	struct thread_state *ts;
	__u32 pid = task->tgid;

	if (!task->bpf_storage && !target_is(pid))
		return 0;
	ts = thread_get(task);
	if (ts) {
		ledger_end(ts, task, MARK_EXIT);
		for (__u32 i = 0; i < CALL_DEPTH && i < ts->depth; i++)
			loss_count(call_source(call_at(ts, i)), LOSS_THREAD_EXIT);
		ts->depth = 0;
	}
	if (task->signal->live.counter > 0 || !target_is(pid))
		return 0;
	if (recording)
		process_record_send(task, HOST_PROCESS_EXIT, 0, task->exit_code);
	stack_process_end(pid);
	target_leave(pid);
	return 0;
}

SEC("iter/task")
int threads_admit(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task && (__u32)task->tgid == agent_pid)
		agent_program = program_of(task);
	if (task && target_is(task->tgid))
		thread_make(task);
	return 0;
}

/* Calls under way whose return will not be seen. Launches that are forgotten leave a gap in the
 * stack of pending calls: those above it move down. */
SEC("iter/task")
int calls_sweep(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_state *ts;
	__u32 kept = 0;

	if (!task || !task->bpf_storage)
		return 0;
	ts = thread_get(task);
	if (!ts)
		return 0;
	if (!recording)
		ledger_end(ts, task, MARK_STOP);
	for (__u32 i = 0; i < CALL_DEPTH && i < ts->depth; i++) {
		struct pending_call *c = call_at(ts, i);
		union wire_cookie k = {.word = c->cookie};

		if (sweep_launches && (k.source == SOURCE_NCCL || !(k.flags & COOKIE_GOVERNED))) {
			if (kept != i)
				*call_at(ts, kept) = *c;
			kept++;
			continue;
		}
		loss_count(k.source, sweep_reason < LOSS_COUNT ? sweep_reason : LOSS_AT_STOP);
	}
	ts->depth = kept;
	return 0;
}
