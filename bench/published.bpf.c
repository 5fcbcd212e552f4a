// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* published.bpf.c - the published way to record a call, for bench_probe to compare ours with.
 *
 * A program for each layer and direction. The entry's time and arguments go into a hash map under
 * the thread's id; the return takes them out, walks the user stack (64 frames) and submits a record
 * of 600 bytes with the ring's own policy: a wake-up whenever the reader has caught up. No more is
 * done than that method needs: process filter, one look-up of settings, no other bookkeeping. */
#include "record/probe/kernel.bpf.h"

#define FRAMES 64

struct pending {
	__u64 start_ns, arg0, arg1;
};

struct settings {
	__u8 capture_stack;
	__u32 sampling_rate;
	__u32 pad;
};

struct record {
	__u64 start_ns, dur_ns;
	__u32 pid, tid;
	__u8 source, op, pad[2];
	__s32 ret;
	__u64 arg0, arg1, cgroup_id;
	char comm[16];
	__u32 gpu, flags;
	__u16 depth;
	__u8 pad2[6];
	__u64 ips[FRAMES];
};

_Static_assert(sizeof(struct record) == 600, "the published record");

#define PENDING_MAP(name)                                                                          \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, 10240);                                                        \
		__type(key, __u32);                                                                \
		__type(value, struct pending);                                                     \
	} name SEC(".maps")

#define RING_MAP(name)                                                                             \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_RINGBUF);                                                \
		__uint(max_entries, 8 << 20);                                                      \
	} name SEC(".maps")

PENDING_MAP(runtime_calls);
PENDING_MAP(driver_calls);
RING_MAP(runtime_events);
RING_MAP(driver_events);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u8);
} pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} config SEC(".maps");

__u64 lost; /* records without room */

static __always_inline int call_begin(struct pt_regs *ctx, void *calls)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 pid = id >> 32, tid = (__u32)id;
	struct pending p = {0};

	if (!bpf_map_lookup_elem(&pids, &pid))
		return 0;
	p.arg0 = PT_REGS_PARM1(ctx);
	p.arg1 = PT_REGS_PARM2(ctx);
	p.start_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(calls, &tid, &p, BPF_ANY);
	return 0;
}

static __always_inline int call_end(struct pt_regs *ctx, void *calls, void *ring, __u8 source)
{
	__u64 now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)id, zero = 0;
	struct pending *p = bpf_map_lookup_elem(calls, &tid);
	struct settings *s = bpf_map_lookup_elem(&config, &zero);
	struct record *r;
	long bytes = 0;

	if (!p)
		return 0;
	r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&lost, 1);
		bpf_map_delete_elem(calls, &tid);
		return 0;
	}
	r->start_ns = p->start_ns;
	r->dur_ns = now - p->start_ns;
	r->pid = id >> 32;
	r->tid = tid;
	r->source = source;
	r->op = 1;
	r->ret = (__s32)PT_REGS_RC(ctx);
	r->arg0 = p->arg0;
	r->arg1 = p->arg1;
	r->gpu = r->flags = 0;
	r->cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	if (s && s->capture_stack)
		bytes = bpf_get_stack(ctx, r->ips, sizeof(r->ips), BPF_F_USER_STACK);
	r->depth = bytes > 0 ? bytes / sizeof(r->ips[0]) : 0;
	bpf_map_delete_elem(calls, &tid);
	bpf_ringbuf_submit(r, 0);
	return 0;
}

SEC("kprobe")
int runtime_entry(struct pt_regs *ctx)
{
	return call_begin(ctx, &runtime_calls);
}

SEC("kprobe")
int runtime_return(struct pt_regs *ctx)
{
	return call_end(ctx, &runtime_calls, &runtime_events, 1);
}

SEC("kprobe")
int driver_entry(struct pt_regs *ctx)
{
	return call_begin(ctx, &driver_calls);
}

SEC("kprobe")
int driver_return(struct pt_regs *ctx)
{
	return call_end(ctx, &driver_calls, &driver_events, 4);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
