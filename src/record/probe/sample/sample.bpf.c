// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* sample.bpf.c - what traced threads do while they are on a CPU: at every tick of a CPU's clock the
 * user stack of the thread that runs there, if it is traced.
 *
 * A tick in the kernel counts too: the stack is that of the code which went there. For all CPUs
 * together there is a ceiling; a tick above it is added to the weight of the thread's next sample,
 * so that the sum of the weights is right however few are sent. */
#include "record/probe/ledger/ledger.bpf.h"
#include "record/probe/stack/stack.bpf.h"

#define SAMPLE_SLOT_NS  100000000 /* the ceiling holds for each of these */
#define SAMPLE_SLOT_MAX 200       /* 2,000 records a second */

const volatile __u64 sample_period_ns;

__u64 sample_slot;      /* the present one */
__u32 sample_slot_sent; /* in it */

/* Two CPUs that begin a slot at the same time may let a few more through. */
static __always_inline bool sample_has_room(__u64 now)
{
	__u64 slot = now / SAMPLE_SLOT_NS;

	if (sample_slot != slot) {
		sample_slot = slot;
		sample_slot_sent = 0;
	}
	if (sample_slot_sent >= SAMPLE_SLOT_MAX)
		return false;
	__sync_fetch_and_add(&sample_slot_sent, 1);
	return true;
}

static __always_inline void sample_send(
	struct task_struct *task, struct thread_state *ts, __u64 now)
{
	__u64 stack = stack_take_interrupted(task, ts, true);
	struct wire_call *r = record_begin(&events, sizeof(*r), SOURCE_HOST);

	if (!r) {
		ts->samples_passed++; /* the record is lost, its time is not */
		return;
	}
	r->h.op = HOST_CPU_SAMPLE;
	r->h.flags = WIRE_TARGET | (ts->depth ? WIRE_IN_CALL : 0);
	r->h.weight = 1 + ts->samples_passed;
	r->h.start_ns = now;
	r->h.dur_ns = sample_period_ns * r->h.weight;
	r->h.pid = task->tgid;
	r->h.tid = task->pid;
	r->h.cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(r->h.comm, sizeof(r->h.comm));
	r->arg0 = ledger_line_now(ts);
	r->arg1 = 0;
	r->stream = 0;
	r->stack = stack;
	r->ret = 0;
	r->device = ts->device;
	ts->samples_passed = 0;
	record_send(&events, &r->h);
}

SEC("perf_event")
int cpu_sample(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *ts;
	__u64 now;

	if (!recording || !task->bpf_storage)
		return 0;
	ts = thread_get(task);
	if (!ts)
		return 0;
	now = bpf_ktime_get_ns();
	hit_count(SOURCE_HOST);
	if (sample_has_room(now)) {
		sample_send(task, ts, now);
	} else {
		ts->samples_passed++;
		aggregated_count(SOURCE_HOST);
	}
	return 0;
}
