// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* sched.bpf.c - stays of traced threads off the CPU: preempted or blocked, by whom, and how long
 * they were runnable without getting a CPU.
 *
 * A busy node switches some 450,000 times a second, nearly always between threads nobody traces:
 * those leave after two pointer tests. A stay is a hit when the thread comes back. */
#include "record/probe/ledger/ledger.bpf.h"
#include "record/probe/ledger/wait.bpf.h"
#include "record/probe/stack/stack.bpf.h"

/* Who wakes a thread. sched_waking runs where the wake comes from: the current task has
 * woken it, unless an interrupt has come over that task, which then knows nothing of it.
 *
 * The kernel's own count says which it is. Kernels that do not tell where their variables are (without
 * CONFIG_KALLSYMS_ALL) are asked another way: a user thread that is in no system call wakes nobody,
 * nor does the idle task, and locks are let go by calls for locks. That takes some interrupts inside
 * a system call for the caller's deed. */

/* Of the kernel's count of what forbids to preempt: in a softirq, a hard interrupt, an NMI. */
#define INTERRUPT_MASK 0xff0100
#define TIMER_BASES    8 /* clocks of a CPU's high-resolution timers */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pcpu_hot { /* x86-64, 6.2 to 6.14 */
	int preempt_count;
};

struct thread_info___arm64 {
	__u64 preempt_count;
};

struct task_struct___arm64 {
	struct thread_info___arm64 thread_info;
};

struct hrtimer;

struct hrtimer_clock_base {
	struct hrtimer *running;
};

struct hrtimer_cpu_base {
	struct hrtimer_clock_base clock_base[TIMER_BASES];
};

struct hrtimer_sleeper { /* begins with its timer */
	struct task_struct *task;
};

#pragma clang attribute pop

extern const int __preempt_count __ksym __weak;
extern const struct pcpu_hot pcpu_hot __ksym __weak;
extern const struct hrtimer_cpu_base hrtimer_bases __ksym __weak;

static __always_inline bool is_in_interrupt(struct task_struct *current)
{
#if defined(__TARGET_ARCH_x86)
	if (&__preempt_count)
		return *(const int *)bpf_this_cpu_ptr(&__preempt_count) & INTERRUPT_MASK;
	if (&pcpu_hot)
		return ((const struct pcpu_hot *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count &
		       INTERRUPT_MASK;
	return !current->pid;
#else
	struct task_struct___arm64 *t = (void *)current;

	return BPF_CORE_READ(t, thread_info.preempt_count) & INTERRUPT_MASK;
#endif
}

/* Could @current, by the call that it is in, not have ended the stay? */
static __always_inline bool is_bystander(const struct thread_state *ts, struct task_struct *current)
{
	__u64 argument;
	long call;

	if (ts->stay_line == LEDGER_SLEEP)
		return true;
	if (current->flags & PF_KTHREAD)
		return !current->pid;
	call = wait_call(current, &argument);
	if (call < 0)
		return true;
	return ts->stay_line == LEDGER_LOCK && call != CALL_EXIT &&
	       wait_of_call[BOUNDED(call, CALLS_MAX - 1)] != 1 + LEDGER_LOCK;
}

/* Is the timer that this CPU is at one that @task sleeps on? */
static __always_inline bool is_own_timer(struct task_struct *task)
{
	const void *bases;

	if (!&hrtimer_bases)
		return false;
	bases = bpf_this_cpu_ptr(&hrtimer_bases);
	for (__u32 i = 0; i < TIMER_BASES; i++) {
		struct task_struct *sleeper = NULL;
		void *running = NULL;

		/* a variable index is not relocated: the kernel's element is larger than ours */
		bpf_probe_read_kernel(&running, sizeof(running),
			bases + bpf_core_field_offset(struct hrtimer_cpu_base, clock_base) +
				i * bpf_core_type_size(struct hrtimer_clock_base) +
				bpf_core_field_offset(struct hrtimer_clock_base, running));
		if (!running)
			continue;
		bpf_probe_read_kernel(&sleeper, sizeof(sleeper),
			running + bpf_core_field_offset(struct hrtimer_sleeper, task));
		if (sleeper == task)
			return true;
	}
	return false;
}

/* waker_note - @task is being woken, here. Nobody but a timer wakes sleep or a lock's wait from an
 * interrupt. @has_variables: the kernel tells where its variables are. */
static __always_inline void waker_note(
	struct thread_state *ts, struct task_struct *task, bool has_variables)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (has_variables ? is_in_interrupt(current) : is_bystander(ts, current)) {
		ts->waker = WAKER_INTERRUPT;
		if (ts->stay_line == LEDGER_SLEEP || ts->stay_line == LEDGER_LOCK ||
			(has_variables && is_own_timer(task)))
			ts->waker = WAKER_TIMER;
		return;
	}
	ts->waker = WAKER_TASK;
	ts->waker_pid = current->tgid;
	ts->waker_tid = current->pid;
	bpf_probe_read_kernel(ts->waker_comm, sizeof(ts->waker_comm), current->comm);
}

/* The user stack of a thread that blocks. It must be walked when the thread leaves,
 * while it is current, but how long it will stay shows later: so it is walked where one of the last stays
 * was long, as where a long read is followed by short ones for the rest. A place is the instruction and the stack pointer by which the thread went into the kernel;
 * one that is not known is walked, too, and so is the next one where many short stays add up. */

#define WALK_EVERY_NS 10000000 /* a thread's walks, on average; so many at once */
#define WALK_BURST    100
#define PLACE_BITS    5
#define PLACE_LONG    31 /* in a place's word: so many stays at most are walked after a long one */

static __always_inline __u32 place_of(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	__u64 ip = regs->rip, sp = regs->rsp;
#else
	struct user_pt_regs *user = (struct user_pt_regs *)regs;
	__u64 ip = user->pc, sp = user->sp;
#endif
	return (__u32)hash_mix(ip ^ sp << 20) & ~(__u32)PLACE_LONG;
}

static __always_inline __u32 *place_slot(struct thread_state *ts, __u32 place)
{
	__u32 i = place >> PLACE_BITS;

	return &ts->places[BOUNDED(i, PLACES - 1)];
}

/* place_leave - @task blocks, and is the current one: take its stack if the stay may be long. That of
 * the call which it is in is known already, if it is wanted. */
static __always_inline void place_leave(
	struct thread_state *ts, struct task_struct *task, __u64 now)
{
	__u32 known;

	ts->stay_place = 0;
	if (!stacks_wanted || !recording)
		return;
	if (ts->depth) {
		ts->stay_stack = ts->calls[0].stack;
		return;
	}
	ts->stay_place = place_of(task);
	known = *place_slot(ts, ts->stay_place);
	if (known == ts->stay_place && !ts->stays.walk_wanted)
		return;
	if (!bucket_take(&ts->walk_until, now, WALK_EVERY_NS, WALK_BURST))
		return;
	ts->stay_stack = stack_take_interrupted(task, ts, false);
	ts->stays.walk_wanted = 0;
}

/* place_return - the stay there took @ns. */
static __always_inline void place_return(struct thread_state *ts, __u64 ns)
{
	__u32 place = ts->stay_place, *slot, left = 0;

	if (!place)
		return;
	slot = place_slot(ts, place);
	if ((*slot & ~(__u32)PLACE_LONG) == place)
		left = *slot & PLACE_LONG;
	*slot = place | (ns >= stay_limit_ns ? PLACE_LONG : left ? left - 1 : 0);
	ts->stay_place = 0;
}

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
