// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* block.bpf.c - block requests from submission to completion, keyed by the request itself.
 *
 * Requests of all processes are followed, because a disk is slow through somebody else's requests.
 * A request is a hit when it completes. Sent as records: those of traced processes, slow ones,
 * failed ones, and all that complete while a traced thread is blocked; the rest is counted. */
#include "record/probe/target.bpf.h"

struct request_start {
	__u64 start_ns;
	__u64 sector;
	__u64 cgroup_id;
	__u32 pid, tid;
	__u32 bytes; /* of the whole request */
	__u32 done;  /* completed so far: a request may complete in parts */
	__u32 dev;
	__u16 op;
	__u16 flags;
	char comm[WIRE_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct request_start);
} requests SEC(".maps");

/* The op of a request; 0 for kinds that move no data and tell nothing (driver commands, zones). */
static __always_inline __u16 request_op(struct request *rq)
{
	switch (rq->cmd_flags & REQ_OP_MASK) {
	case REQ_OP_READ: return IO_READ;
	case REQ_OP_WRITE:
	case REQ_OP_WRITE_ZEROES:
	case REQ_OP_ZONE_APPEND: return IO_WRITE;
	case REQ_OP_FLUSH: return IO_FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE: return IO_DISCARD;
	}
	return 0;
}

static __always_inline __u32 request_dev(struct request *rq)
{
	struct request___before_5_17 *old = (void *)rq;
	struct gendisk *disk;

	if (bpf_core_field_exists(old->rq_disk))
		disk = BPF_CORE_READ(old, rq_disk);
	else
		disk = BPF_CORE_READ(rq, q, disk);
	return ((__u32)BPF_CORE_READ(disk, major) << 20) | (__u32)BPF_CORE_READ(disk, first_minor);
}

/* The first sight of a request, in the context of whoever submitted it. */
static __always_inline void request_begin(struct request *rq)
{
	struct request_start s = {.op = request_op(rq)};
	struct task_struct *task;
	__u64 key = (__u64)rq;

	if (!recording || !s.op || bpf_map_lookup_elem(&requests, &key))
		return;
	task = bpf_get_current_task_btf();
	s.start_ns = bpf_ktime_get_ns();
	s.sector = rq->__sector;
	s.bytes = rq->__data_len;
	s.dev = request_dev(rq);
	s.pid = task->tgid;
	s.tid = task->pid;
	s.cgroup_id = bpf_get_current_cgroup_id();
	s.flags = thread_get(task) ? WIRE_TARGET : 0;
	bpf_get_current_comm(s.comm, sizeof(s.comm));
	if (bpf_map_update_elem(&requests, &key, &s, BPF_ANY) < 0) {
		hit_lose(SOURCE_IO, LOSS_INFLIGHT_FULL);
	}
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(block_rq_insert, struct request *rq)
{
	request_begin(rq);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_rq_issue, struct request *rq)
{
	request_begin(rq);
	return 0;
}

static __always_inline void request_end(struct request_start *s, int error, __u64 now)
{
	struct wire_agg_key key = {.pid = s->pid, .source = SOURCE_IO, .op = s->op};
	__u64 dur_ns = now - s->start_ns;
	struct wire_block *r;
	struct wire_agg *a;

	hit_count(SOURCE_IO);
	aggregate_add(&key, dur_ns, s->bytes >> 9, &a);
	if (!record_all && a && !error && !(s->flags & WIRE_TARGET) && !blocked_targets &&
		dur_ns < block_limit_ns) {
		aggregated_count(SOURCE_IO);
		return;
	}
	r = record_begin(&events, sizeof(*r), SOURCE_IO);
	if (!r)
		return;
	r->h.op = s->op;
	r->h.flags = s->flags | WIRE_BYTES | (a ? 0 : WIRE_UNCOUNTED);
	r->h.start_ns = s->start_ns;
	r->h.dur_ns = dur_ns;
	r->h.pid = s->pid;
	r->h.tid = s->tid;
	r->h.cgroup_id = s->cgroup_id;
	__builtin_memcpy(r->h.comm, s->comm, sizeof(r->h.comm));
	r->sector = s->sector;
	r->bytes = s->bytes;
	r->dev = s->dev;
	r->error = error;
	r->pad = 0;
	aggregate_sent(a);
	record_send(&events, &r->h);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *rq, int error, unsigned int bytes)
{
	__u64 key = (__u64)rq;
	struct request_start *s = bpf_map_lookup_elem(&requests, &key);

	if (!s)
		return 0;
	s->done += bytes;
	if (!error && s->done < s->bytes)
		return 0;
	if (recording)
		request_end(s, (__u8)error, bpf_ktime_get_ns());
	bpf_map_delete_elem(&requests, &key);
	return 0;
}
