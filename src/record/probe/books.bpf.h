/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* books.bpf.h - settings, counters, aggregates and the ring, shared by all probes.
 *
 * Invariant, per source: hits = sent + aggregated + sum(lost), where each term is counted at the
 * place where it happens. Every path that ends an event goes through record_send(),
 * aggregated_count() or loss_count(), exactly once.
 *
 * Counters are per CPU and yet atomic: a program that runs for a user thread (a uprobe) can be
 * preempted by another run of itself on the same CPU, and a plain increment would then be lost. */
#pragma once

#include "record/probe/kernel.bpf.h"
#include "wire/record.h"

/* Settings. Constants are fixed at load time; the rest may be changed by the agent while running.
 */
const volatile __u32 filter_mode; /* enum probe_filter */
const volatile __u32 filter_uid;
const volatile __u32 agent_pid, agent_uid;
const volatile __u32 user_targets_max; /* processes that one user but root may have traced */
const volatile bool record_all;
const volatile __u32 sample_every = 256;    /* one ordinary call in so many is sent as an example */
const volatile __u32 sampling_rate = 1;     /* with record_all: ordinary calls, one in so many */
const volatile __u32 warmup_calls = 512;    /* until an op has a limit, this many are sent */
const volatile __u64 wake_bytes = 1 << 20;  /* a backlog that wakes the reader at once */
const volatile __u64 wait_limit_ns = 50000; /* stays off the CPU below this only count */
const volatile __u64 gap_limit_ns = 1000000; /* pauses between calls from this on are kept */
const volatile __u64 block_limit_ns = 10000000;

bool enabled;        /* false: probes leave at once */
__u64 agent_program; /* inode of the agent's own file, which it holds: who runs it is no target */
__u64 limit_ns[WIRE_SOURCE_MAX * WIRE_OP_MAX]; /* slower calls are sent; 0: not known yet */
bool recording;        /* false: nothing but calls is looked at (the agent measuring itself) */
bool launches_enabled; /* false: calls of launches are not begun */
__u32 launch_switches; /* how often that was changed */
__u64 stopped_ns;      /* when recording ended; 0: it has not */
__u32 sweep_reason;    /* enum wire_loss of the next sweep */
bool sweep_launches;   /* it is for launches only */
__u32 blocked_targets; /* traced threads now in uninterruptible sleep */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

/* Process life cycle has a ring of its own: a flood of calls must not hide an exit. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} life SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WIRE_SOURCE_MAX);
	__type(key, __u32);
	__type(value, struct wire_tally);
} tallies SEC(".maps");

/* Resized at load time: a value takes 2.4 KiB per CPU, but only once it is used. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct wire_agg_key);
	__type(value, struct wire_agg);
} aggregates SEC(".maps");

/* Read by the agent as memory. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_USES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct wire_use);
} uses SEC(".maps");

static __always_inline struct wire_use *use_of(__u32 pid)
{
	pid &= WIRE_USES - 1;
	return bpf_map_lookup_elem(&uses, &pid);
}

/* A zeroed value to insert: the verifier's stack is smaller than a struct wire_agg. */
static const struct wire_agg empty_aggregate;

static __always_inline struct wire_tally *tally_of(__u32 source)
{
	source &= WIRE_SOURCE_MAX - 1;
	return bpf_map_lookup_elem(&tallies, &source);
}

static __always_inline void hit_count(__u32 source)
{
	struct wire_tally *t = tally_of(source);

	if (t)
		__sync_fetch_and_add(&t->hits, 1);
}

static __always_inline void loss_count(__u32 source, enum wire_loss reason)
{
	struct wire_tally *t = tally_of(source);

	if (t)
		__sync_fetch_and_add(&t->lost[reason], 1);
}

/* hit_lose - a hit that is lost at once. */
static __always_inline void hit_lose(__u32 source, enum wire_loss reason)
{
	hit_count(source);
	loss_count(source, reason);
}

static __always_inline void aggregated_count(__u32 source)
{
	struct wire_tally *t = tally_of(source);

	if (t)
		__sync_fetch_and_add(&t->aggregated, 1);
}

/* record_reserve - the only place that reserves ring space. NULL: there is no room, and the caller
 * says what becomes of the record. */
static __always_inline void *record_reserve(void *ring, __u32 size, __u32 source)
{
	struct wire_header *h = bpf_ringbuf_reserve(ring, size, 0);

	if (!h)
		return NULL;
	h->size = size;
	h->version = WIRE_VERSION;
	h->source = source;
	h->weight = 1;
	h->cpu = bpf_get_smp_processor_id();
	return h;
}

/* record_begin - likewise, where no room is a counted loss. */
static __always_inline void *record_begin(void *ring, __u32 size, __u32 source)
{
	struct wire_header *h = record_reserve(ring, size, source);

	if (!h)
		loss_count(source, LOSS_RING_FULL);
	return h;
}

/* record_send - hand the record over. The reader polls; only a large backlog wakes it, because a
 * wake-up for each record more than doubles its cost. */
static __always_inline void record_send(void *ring, struct wire_header *h)
{
	struct wire_tally *t = tally_of(h->source);
	__u64 flags = BPF_RB_NO_WAKEUP;

	if (t)
		__sync_fetch_and_add(&t->sent, 1);
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	bpf_ringbuf_submit(h, flags);
}

/* hash_mix - splitmix64's finisher. */
static __always_inline __u64 hash_mix(__u64 v)
{
	v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
	v = (v ^ (v >> 27)) * 0x94d049bb133111ebULL;
	return v ^ (v >> 31);
}

/* record_send_now - the reader is woken: for what is rare and cannot wait. */
static __always_inline void record_send_now(struct wire_header *h)
{
	struct wire_tally *t = tally_of(h->source);

	if (t)
		__sync_fetch_and_add(&t->sent, 1);
	bpf_ringbuf_submit(h, BPF_RB_FORCE_WAKEUP);
}

/* The largest of what was there and @v; likewise the smallest, where 0 means that nothing was.
 * Gives up after a few lost races, which would need as many preemptions within these instructions.
 */
static __always_inline void keep_max(__u64 *slot, __u64 v)
{
	for (int i = 0; i < 4; i++) {
		__u64 old = *(volatile __u64 *)slot;

		if (old >= v || __sync_val_compare_and_swap(slot, old, v) == old)
			return;
	}
}

static __always_inline void keep_min(__u64 *slot, __u64 v)
{
	for (int i = 0; i < 4; i++) {
		__u64 old = *(volatile __u64 *)slot;

		if ((old && old <= v) || __sync_val_compare_and_swap(slot, old, v) == old)
			return;
	}
}

/* aggregate_of - the aggregate of @key, made if need be. NULL if the table is full, or if the
 * kernel has no memory at hand: its per-CPU allocator refills in the background, and a burst of new
 * keys (the first calls of a process) outruns it. */
static __always_inline struct wire_agg *aggregate_of(const struct wire_agg_key *key)
{
	struct wire_agg *a = bpf_map_lookup_elem(&aggregates, key);

	if (a)
		return a;
	bpf_map_update_elem(&aggregates, key, &empty_aggregate, BPF_NOEXIST);
	a = bpf_map_lookup_elem(&aggregates, key);
	if (a)
		bpf_get_current_comm(a->comm, sizeof(a->comm));
	return a;
}

/* aggregate_add - count one event of @dur_ns. Returns how many there are now on this CPU, or 0 if
 * it could not be counted here: then it must be sent, flagged WIRE_UNCOUNTED, and the agent counts
 * it. */
static __always_inline __u64 aggregate_add(
	const struct wire_agg_key *key, __u64 dur_ns, __u64 bytes, struct wire_agg **ret)
{
	struct wire_agg *a = aggregate_of(key);
	__u32 b = bucket_of(dur_ns);

	*ret = a;
	if (!a)
		return 0;
	keep_min(&a->min_ns, dur_ns);
	keep_max(&a->max_ns, dur_ns);
	__sync_fetch_and_add(&a->sum_ns, dur_ns);
	if (bytes)
		__sync_fetch_and_add(&a->sum_arg0, bytes);
	if (b < BUCKET_COUNT)
		__sync_fetch_and_add(&a->hist[b], 1);
	return __sync_fetch_and_add(&a->count, 1) + 1;
}

static __always_inline void aggregate_sent(struct wire_agg *a)
{
	if (a)
		__sync_fetch_and_add(&a->sent, 1);
}
