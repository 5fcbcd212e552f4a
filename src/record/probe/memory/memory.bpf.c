// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* memory.bpf.c - memory of traced processes: pages they allocate (counted only, there are too
 * many), the times their threads spend freeing or moving pages themselves, and out-of-memory kills,
 * which are recorded for whoever is the victim.
 *
 * Page allocation fires for everybody, all the time: untraced threads leave after one pointer test.
 */
#include "record/probe/target.bpf.h"

const volatile __u64 page_bytes = 4096; /* of the running kernel */

/* Count something of the current thread, if it is traced, that is too frequent for records. */
static __always_inline void count_for_thread(__u16 op, __u64 bytes)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wire_agg_key key = {.source = SOURCE_HOST, .op = op};
	struct wire_agg *a;

	if (!task->bpf_storage || !recording || !thread_get(task))
		return;
	key.pid = task->tgid;
	hit_count(SOURCE_HOST);
	if (aggregate_add(&key, 0, bytes, &a)) {
		aggregated_count(SOURCE_HOST);
		return;
	}
	/* Forks can come faster than the kernel has memory for their aggregates, or than the agent, which
	 * may be short of CPU time, removes those of the ended: then it is counted without its process, with
	 * those that have ended. That entry is there from the beginning (make_common_entries()). */
	key.pid = 0;
	if (aggregate_add(&key, 0, bytes, &a))
		aggregated_count(SOURCE_HOST);
	else
		loss_count(SOURCE_HOST, LOSS_NO_STORAGE);
}

SEC("tp_btf/mm_page_alloc")
int BPF_PROG(page_alloc, void *page, unsigned int order)
{
	if (page)
		count_for_thread(HOST_PAGE_ALLOC, page_bytes << (order & 31));
	return 0;
}

/* A fault on a mapped file; what it waits for shows as a blocked stay and a block request. */
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(file_fault)
{
	count_for_thread(HOST_FILE_FAULT, 0);
	return 0;
}

/* A stay in the kernel's own memory work, from *@since to now. */
static __always_inline void stall_end(struct task_struct *task, __u64 *since, __u16 op, __u64 pages)
{
	struct wire_agg_key key = {.pid = task->tgid, .source = SOURCE_HOST, .op = op};
	__u64 start = *since, dur_ns = bpf_ktime_get_ns() - start;
	struct wire_call *r;
	struct wire_agg *a;

	*since = 0;
	if (!start || !recording)
		return;
	hit_count(SOURCE_HOST);
	aggregate_add(&key, dur_ns, 0, &a);
	r = record_begin(&events, sizeof(*r), SOURCE_HOST);
	if (!r)
		return;
	r->h.op = op;
	r->h.flags = WIRE_TARGET | (a ? 0 : WIRE_UNCOUNTED);
	r->h.start_ns = start;
	r->h.dur_ns = dur_ns;
	r->h.pid = task->tgid;
	r->h.tid = task->pid;
	r->h.cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(r->h.comm, sizeof(r->h.comm));
	r->arg0 = pages;
	r->arg1 = 0;
	r->stream = 0;
	r->stack = 0;
	r->ret = 0;
	r->device = 0;
	aggregate_sent(a);
	record_send(&events, &r->h);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(reclaim_begin)
{
	struct thread_state *ts = thread_get(bpf_get_current_task_btf());

	if (ts)
		ts->reclaim_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(reclaim_end, unsigned long pages)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *ts = thread_get(task);

	if (ts)
		stall_end(task, &ts->reclaim_ns, HOST_DIRECT_RECLAIM, pages);
	return 0;
}

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(compaction_begin)
{
	struct thread_state *ts = thread_get(bpf_get_current_task_btf());

	if (ts)
		ts->compact_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(compaction_end)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *ts = thread_get(task);

	if (ts)
		stall_end(task, &ts->compact_ns, HOST_COMPACTION, 0);
	return 0;
}

/* The victim is given as a task since 6.8 and as a number before; no task lies that low. */
SEC("raw_tp/mark_victim")
int oom_kill(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 victim = ctx->args[0];
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = (__u32)victim;

	if (!recording)
		return 0;
	if (victim >> 32)
		pid = (__u32)BPF_CORE_READ((struct task_struct *)victim, tgid);
	process_record_send(task, HOST_OOM_KILL, pid, 0);
	return 0;
}
