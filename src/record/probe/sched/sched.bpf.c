// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* sched.bpf.c - stays of traced threads off the CPU: preempted or blocked, by whom, and how long
 * they were runnable without getting a CPU.
 *
 * A busy node switches some 450,000 times a second, nearly always between threads nobody traces:
 * those leave after two pointer tests. A stay is a hit when the thread comes back. */
#include "record/probe/ledger/ledger.bpf.h"
#include "record/probe/sched/place.bpf.h"
#include "record/probe/sched/waker.bpf.h"

static __always_inline __u32 task_state(struct task_struct *t)
{
	if (bpf_core_field_exists(t->__state))
		return t->__state;
	return (__u32)BPF_CORE_READ((struct task_struct___before_5_14 *)t, state);
}

static __always_inline void off_cpu_begin(struct thread_state *ts, bool preempt,
	struct task_struct *prev, struct task_struct *next, __u64 now)
{
	__u32 state = task_state(prev) & TASK_STATE_MASK;

	ledger_off(ts, now);
	ts->waker = WAKER_NOBODY;
	ts->waker_pid = ts->waker_tid = 0;
	ts->waker_comm[0] = 0;
	ts->stay_stack = 0;
	if (preempt || state == TASK_RUNNING) {
		ts->off_flags = WIRE_PREEMPTED;
		ts->wake_ns = now;
	} else {
		ts->off_flags = 0;
		ts->wake_ns = 0;
		wait_begin(ts, prev, state);
		place_leave(ts, prev, now);
		if (state & TASK_UNINTERRUPTIBLE) {
			ts->off_flags = WIRE_UNINTERRUPTIBLE;
			__sync_fetch_and_add(&blocked_targets, 1);
		}
	}
	ts->by_pid = next->tgid;
	ts->by_tid = next->pid;
	bpf_probe_read_kernel(ts->by_comm, sizeof(ts->by_comm), next->comm);
	*(volatile __u64 *)&ts->off_ns = now; /* from here on it can be woken */
}

/* Who had the CPU while the thread waited for it: the task it takes the CPU from now. A preempted
 * thread also knows who took the CPU at first, which tells more when it is now idle or with a
 * kernel thread (they run in short bursts). Process 0, the idle task, stands for nobody. */
static __always_inline void fill_culprit(
	struct wire_sched *r, struct thread_state *ts, struct task_struct *prev)
{
	if (!(ts->off_flags & WIRE_PREEMPTED) || (prev->tgid && !(prev->flags & PF_KTHREAD))) {
		r->by_pid = prev->tgid;
		r->by_tid = prev->pid;
		bpf_probe_read_kernel(r->by_comm, sizeof(r->by_comm), prev->comm);
		return;
	}
	r->by_pid = ts->by_pid;
	r->by_tid = ts->by_tid;
	__builtin_memcpy(r->by_comm, ts->by_comm, sizeof(r->by_comm));
}

static __always_inline void off_cpu_end(
	struct thread_state *ts, struct task_struct *prev, struct task_struct *next, __u64 now)
{
	struct wire_agg_key key = {
		.pid = next->tgid, .source = SOURCE_HOST, .op = HOST_SCHED_SWITCH};
	__u64 off_ns = ts->off_ns, dur_ns = now - off_ns;
	__u64 wait_ns = ts->wake_ns ? now - ts->wake_ns : 0;
	__u32 flags = ts->off_flags;
	struct wire_sched *r;
	struct wire_agg *a;

	ts->off_ns = 0;
	if (flags & WIRE_UNINTERRUPTIBLE)
		__sync_fetch_and_add(&blocked_targets, -1);
	if (!(flags & WIRE_PREEMPTED))
		ts->blocked_ns += dur_ns - wait_ns;
	if (!recording)
		return;
	hit_count(SOURCE_HOST);
	aggregate_add(&key, dur_ns, 0, &a);
	if (!record_all && a && wait_ns < wait_limit_ns &&
		(!(flags & WIRE_UNINTERRUPTIBLE) || dur_ns < wait_limit_ns) &&
		(!ts->idle_ns || ts->depth || dur_ns < gap_limit_ns)) {
		aggregated_count(SOURCE_HOST);
		return;
	}
	r = record_begin(&events, sizeof(*r), SOURCE_HOST);
	if (!r)
		return;
	r->h.op = HOST_SCHED_SWITCH;
	r->h.flags =
		flags | WIRE_TARGET | (ts->depth ? WIRE_IN_CALL : 0) | (a ? 0 : WIRE_UNCOUNTED);
	r->h.start_ns = off_ns;
	r->h.dur_ns = dur_ns;
	r->h.pid = next->tgid;
	r->h.tid = next->pid;
	r->h.cgroup_id = 0;
	bpf_probe_read_kernel(r->h.comm, sizeof(r->h.comm), next->comm);
	r->wait_ns = wait_ns;
	r->waker_pid = ts->waker_pid;
	r->pad = 0;
	fill_culprit(r, ts, prev);
	aggregate_sent(a);
	record_send(&events, &r->h);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct thread_state *ts;
	__u64 now;

	if (!prev->bpf_storage && !next->bpf_storage)
		return 0;
	now = bpf_ktime_get_ns();
	ts = thread_get(prev);
	if (ts)
		off_cpu_begin(ts, preempt, prev, next, now);
	ts = thread_get(next);
	if (ts && ts->off_ns) {
		place_return(ts, now - ts->off_ns);
		ledger_on(ts, next, now);
		off_cpu_end(ts, prev, next, now);
	} else if (ts) {
		ledger_begin(ts, now);
	}
	return 0;
}

static __always_inline struct thread_state *blocked_thread(struct task_struct *task)
{
	struct thread_state *ts = task->bpf_storage ? thread_get(task) : NULL;

	return ts && ts->off_ns && !ts->wake_ns ? ts : NULL;
}

static __always_inline int wake(struct task_struct *task, bool has_variables)
{
	struct thread_state *ts = blocked_thread(task);

	if (!ts)
		return 0;
	waker_note(ts, task, has_variables);
	ts->wake_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	return wake(task, true);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking_plain, struct task_struct *task)
{
	return wake(task, false);
}

/* For a thread that was about to be woken when it left the CPU. By whom is not known: this may run
 * on another CPU than the wake. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	struct thread_state *ts = blocked_thread(task);

	if (ts)
		ts->wake_ns = bpf_ktime_get_ns();
	return 0;
}
