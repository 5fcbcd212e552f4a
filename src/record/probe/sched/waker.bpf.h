/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* waker.bpf.h - who wakes a thread. sched_waking runs where the wake comes from: the current task has
 * woken it, unless an interrupt has come over that task, which then knows nothing of it.
 *
 * The kernel's own count says which it is. Kernels that do not tell where their variables are (without
 * CONFIG_KALLSYMS_ALL) are asked another way: a user thread that is in no system call wakes nobody,
 * nor does the idle task, and locks are let go by calls for locks. That takes some interrupts inside
 * a system call for the caller's deed. */
#pragma once

#include "record/probe/ledger/wait.bpf.h"

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
