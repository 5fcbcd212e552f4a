/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* nccl.bpf.h - what an NCCL call means: which communicator, rank, sequence number, how many bytes.
 *
 * Communicators are known from their constructors; one that was made before the agent looked, or by
 * splitting another, tells its rank and size itself (its own accessors say where it keeps them).
 * NCCL demands the same order of collectives on all ranks of a communicator, so counting them in
 * that order names each one everywhere: (hash, seq).
 *
 * The hash of a communicator is the library's own, which it holds as soon as all ranks are there. Where that cannot
 * be read (before 2.18), it is a fold of the 128-byte id; that of a child is made from its parent's hash, the number of
 * children before it and the colour, which all its ranks share. One whose beginning was not seen has none then.
 *
 * One whose beginning was not seen is numbered by the library's own counter of collectives, which is that of its launched
 * ones: it is read at calls before which none is pending. It is believed while it advances as the calls do. It does not
 * for collectives that are made of Send and Recv, are empty, or are captured into a graph and launched with it: from then
 * on, and where there is no counter, the communicator's calls have the numbers of this rank alone, which are negative.
 *
 * What is read is the process's own: a forged communicator has the identity and numbers that its process wants, as its
 * calls are what it wants. No address is followed but the one that the call was given. */
#pragma once

#include "record/probe/call/arguments.bpf.h"
#include "record/probe/target.bpf.h"

#define NCCL_IN_PROGRESS 7  /* ncclInProgress: a non-blocking call that goes on */
#define NCCL_ID_WORDS    16 /* a unique id is 128 bytes */
#define NCCL_DEVICES_MAX 16 /* communicators of one ncclCommInitAll() that are followed */
#define NCCL_HASH_SEED   0x9e3779b97f4a7c15ULL
#define NCCL_MISSES_MAX  3 /* a group that was open when the agent came makes one */

struct nccl_comm_key {
	__u64 comm;
	__u32 pid;
	__u32 pad;
};

struct nccl_identity { /* as the communicator holds it: commHash, rank, nRanks */
	__u64 hash;
	__s32 rank, nranks;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct nccl_comm_key);
	__type(value, struct nccl_comm);
} nccl_comms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_LIBRARY_MAX);
	__type(key, __u32);
	__type(value, struct wire_nccl_layout);
} nccl_layouts SEC(".maps");

static __always_inline __u64 nccl_id_hash(__u64 address)
{
	__u64 hash = NCCL_HASH_SEED, word;

	for (int i = 0; i < NCCL_ID_WORDS; i++) {
		word = 0;
		bpf_probe_read_user(&word, sizeof(word), (void *)(address + 8 * i));
		hash = hash_mix(hash ^ word);
	}
	return hash;
}

static __always_inline __u64 nccl_type_bytes(__s32 type)
{
	switch (type) {
	case 2: /* int32 */
	case 3: /* uint32 */
	case 7: /* float32 */ return 4;
	case 4: /* int64 */
	case 5: /* uint64 */
	case 8: /* float64 */ return 8;
	case 6: /* float16 */
	case 9: /* bfloat16 */ return 2;
	}
	return 1; /* int8, uint8, float8e4m3, float8e5m2 */
}

static __always_inline struct nccl_comm_key nccl_key(__u64 comm)
{
	return (struct nccl_comm_key){.comm = comm, .pid = bpf_get_current_pid_tgid() >> 32};
}

static __always_inline const struct wire_nccl_layout *nccl_layout(union wire_cookie k)
{
	__u32 library = k.library;

	return bpf_map_lookup_elem(&nccl_layouts, &library);
}

/* Rank and size as the communicator itself holds them. */
static __always_inline bool nccl_ask(union wire_cookie k, __u64 comm, struct nccl_comm *ret)
{
	const struct wire_nccl_layout *l = nccl_layout(k);

	if (!l || !l->valid)
		return false;
	if (bpf_probe_read_user(&ret->rank, 4, (void *)(comm + l->rank_at)) < 0 ||
		bpf_probe_read_user(&ret->nranks, 4, (void *)(comm + l->size_at)) < 0)
		return false;
	if (l->device_at)
		bpf_probe_read_user(&ret->device, 4, (void *)(comm + l->device_at));
	return ret->nranks > 0 && ret->rank >= 0 && ret->rank < ret->nranks;
}

/* What names it, if it holds that already: one that is made in a group, or without blocking, does not yet when its
 * constructor returns. */
static __always_inline bool nccl_identify(
	const struct wire_nccl_layout *l, __u64 comm, struct nccl_identity *ret)
{
	__u64 magic = 0;

	if (!l || !l->hash_at ||
		bpf_probe_read_user(ret, sizeof(*ret), (void *)(comm + l->hash_at)) < 0)
		return false;
	if (l->has_magic && (bpf_probe_read_user(&magic, sizeof(magic), (void *)comm) < 0 ||
				    magic != WIRE_NCCL_MAGIC))
		return false;
	return ret->hash && ret->nranks > 0 && ret->rank >= 0 && ret->rank < ret->nranks;
}

static __always_inline void nccl_name(union wire_cookie k, __u64 comm, struct nccl_comm *c)
{
	struct nccl_identity id = {};

	if (c->is_named || !nccl_identify(nccl_layout(k), comm, &id))
		return;
	c->hash = id.hash;
	c->is_named = 1;
}

/* What is seen of it for the first time, or is at the place of one whose end was not seen. */
static __always_inline void nccl_meet(
	union wire_cookie k, __u64 comm, struct thread_state *ts, struct nccl_comm *ret)
{
	const struct wire_nccl_layout *l = nccl_layout(k);

	ret->hash = ret->seq = ret->own = ret->children = 0;
	ret->rank = ret->nranks = -1;
	ret->device = ts->device;
	ret->is_named = ret->misses = 0;
	ret->is_late = 1;
	ret->is_numbered = l && l->count_at;
	ret->group = ts->nccl_groups - 1;
	nccl_ask(k, comm, ret);
	nccl_name(k, comm, ret);
}

/* The communicator of a call; entered if this is the first that is seen of it. */
static __noinline struct nccl_comm *nccl_find(__u64 cookie, __u64 comm, struct thread_state *ts)
{
	union wire_cookie k = {.word = cookie};
	struct nccl_comm_key key = nccl_key(comm);
	struct nccl_comm *c = bpf_map_lookup_elem(&nccl_comms, &key);
	struct nccl_identity id = {};

	if (c && c->is_named && nccl_identify(nccl_layout(k), comm, &id) && id.hash != c->hash)
		nccl_meet(k, comm, ts, c);
	if (c) {
		nccl_name(k, comm, c);
		return c;
	}
	nccl_meet(k, comm, ts, &ts->comm);
	bpf_map_update_elem(&nccl_comms, &key, &ts->comm, BPF_NOEXIST);
	return bpf_map_lookup_elem(&nccl_comms, &key);
}

/* Collectives that the library makes of Send and Recv, or does not make at all, are none to its counter. */
static __always_inline bool nccl_is_counted(union wire_cookie k, __u64 count)
{
	return count && k.op != NCCL_ALL_TO_ALL && k.op != NCCL_GATHER && k.op != NCCL_SCATTER;
}

/* Sets seq by the library's counter, unless calls of this group are pending, which it does not have yet. */
static __always_inline void nccl_recount(
	const struct wire_nccl_layout *l, __u64 comm, struct nccl_comm *c, struct thread_state *ts)
{
	__u64 launched = 0;

	if (ts->nccl_depth && c->group == ts->nccl_groups)
		return;
	if (!l || !l->count_at ||
		bpf_probe_read_user(&launched, sizeof(launched), (void *)(comm + l->count_at)) <
			0 ||
		launched >> 62 || (launched != c->seq && c->own && c->misses++ >= NCCL_MISSES_MAX))
		c->is_numbered = 0;
	c->seq = launched;
}

/* Tells the communicators without a hash of one process apart. */
static __always_inline __s64 nccl_tag(__u64 comm, const struct nccl_comm *c)
{
	return c->hash ? 0 : (__s64)(hash_mix(comm) >> 48) << WIRE_NCCL_TAG;
}

/* The number of a collective that is called now. */
static __always_inline __s64 nccl_number(
	union wire_cookie k, __u64 comm, __u64 count, struct nccl_comm *c, struct thread_state *ts)
{
	__s64 own;

	if (c->is_numbered && !nccl_is_counted(k, count))
		c->is_numbered = 0;
	if (c->is_numbered)
		nccl_recount(nccl_layout(k), comm, c, ts);
	c->group = ts->nccl_groups;
	own = (__s64)__sync_fetch_and_add(&c->own, 1) + 1;
	if (c->is_late && !c->is_numbered)
		return -(own | nccl_tag(comm, c));
	return (__s64)__sync_fetch_and_add(&c->seq, 1) + 1;
}

/* The id of ncclCommInitRank() is passed by value: on x86-64 copied onto the stack, leaving the
 * registers to the others; on arm64 by the address of a copy, in its place among them. */
static __always_inline void nccl_begin_init(
	struct pt_regs *ctx, const struct arguments *a, struct pending_nccl *n)
{
	n->out = a->words[1];
	n->nranks = (__s32)a->words[2];
#if defined(__TARGET_ARCH_x86)
	n->rank = (__s32)a->words[3];
	n->hash = nccl_id_hash(ctx->rsp + RETURN_ADDRESS_BYTES);
#else
	n->rank = (__s32)a->words[4];
	n->hash = nccl_id_hash(a->words[3]);
#endif
}

static __always_inline void nccl_begin_child(
	union wire_cookie k, const struct arguments *a, struct thread_state *ts)
{
	struct nccl_comm *parent = nccl_find(k.word, a->words[1], ts);
	__s32 colour = k.op == NCCL_COMM_SPLIT ? (__s32)a->words[2] : 0;
	__u64 before;

	ts->nccl.out = a->words[4];
	ts->nccl.hash = 0;
	if (!parent)
		return;
	before = __sync_fetch_and_add(&parent->children, 1);
	if (parent->hash)
		ts->nccl.hash = hash_mix(hash_mix(parent->hash ^ before) ^ (__u32)colour);
}

/* nccl_begin - take the arguments at entry. A collective gets its sequence number here: calls on
 * one communicator are issued one after the other. A function of its own, for the stack: see docs/kernels.md. */
static __noinline void nccl_begin(
	struct pt_regs *ctx, __u64 cookie, const struct arguments *a, struct thread_state *ts)
{
	union wire_cookie k = {.word = cookie};
	struct pending_nccl *n = &ts->nccl;
	struct nccl_comm *c;

	__builtin_memset(n, 0, sizeof(*n));
	n->datatype = n->reduce_op = n->root = n->peer = n->rank = n->nranks = -1;
	switch (k.kind) {
	case WIRE_NCCL_INIT: nccl_begin_init(ctx, a, n); return;
	case WIRE_NCCL_INIT_ALL:
		n->out = a->words[1];
		n->nranks = (__s32)a->words[2];
		n->count = a->words[3]; /* the device list */
		n->hash = hash_mix(bpf_get_current_pid_tgid() ^ bpf_ktime_get_ns());
		return;
	case WIRE_NCCL_SCALABLE:
		n->out = a->words[1];
		n->nranks = (__s32)a->words[2];
		n->rank = (__s32)a->words[3];
		n->hash = nccl_id_hash(a->words[5]);
		return;
	case WIRE_NCCL_CHILD: nccl_begin_child(k, a, ts); return;
	case WIRE_NCCL_GROW:
		n->out = a->words[5];
		n->nranks = (__s32)a->words[2];
		n->rank = (__s32)a->words[4]; /* of a rank that joins; -1: of one that was there */
		return;
	case WIRE_NCCL_GROUP:
		if (k.op == NCCL_GROUP_START && ts->nccl_depth++ == 0)
			ts->nccl_groups++;
		return;
	}
	n->comm = argument_word(a, k.comm);
	if (k.kind == WIRE_NCCL_COLLECTIVE || k.kind == WIRE_NCCL_POINT)
		n->count = argument_word(a, k.count);
	c = nccl_find(k.word, n->comm, ts);
	if (c) {
		n->hash = c->hash;
		n->rank = c->rank;
		n->nranks = c->nranks;
		if (k.kind == WIRE_NCCL_COLLECTIVE)
			n->seq = nccl_number(k, n->comm, n->count, c, ts);
		else if (k.kind == WIRE_NCCL_POINT && c->is_late)
			n->seq = -(1 | nccl_tag(n->comm, c));
	}
	if (k.kind != WIRE_NCCL_COLLECTIVE && k.kind != WIRE_NCCL_POINT)
		return;
	if (k.datatype)
		n->datatype = (__s32)argument_word(a, k.datatype);
	n->stream = argument_word(a, k.nccl_stream);
	if (k.reduce_op)
		n->reduce_op = (__s32)argument_word(a, k.reduce_op);
	if (k.root && k.kind == WIRE_NCCL_POINT)
		n->peer = (__s32)argument_word(a, k.root);
	else if (k.root)
		n->root = (__s32)argument_word(a, k.root);
}

static __always_inline void nccl_enter(struct thread_state *ts, __u64 comm, struct nccl_comm *c)
{
	struct nccl_comm_key key = nccl_key(comm);

	if (comm && bpf_map_update_elem(&nccl_comms, &key, c, BPF_ANY) < 0) {
		hit_lose(SOURCE_NCCL, LOSS_COMM_FULL);
	}
}

/* @c is the first one's, and is changed. */
static __always_inline void nccl_enter_all(struct thread_state *ts, struct nccl_comm *c)
{
	struct pending_nccl *n = &ts->nccl;

	for (int i = 0; i < NCCL_DEVICES_MAX; i++) {
		if (i >= n->nranks)
			return;
		c->rank = c->device = i;
		n->comm = 0;
		bpf_probe_read_user(&n->comm, sizeof(n->comm), (void *)(n->out + 8 * i));
		if (n->count)
			bpf_probe_read_user(&c->device, 4, (void *)(n->count + 4 * i));
		nccl_enter(ts, n->comm, c);
	}
}

/* nccl_end - what a successful call changed: communicators come and go. */
static __noinline void nccl_end(__u64 cookie, struct thread_state *ts, __s32 ret)
{
	union wire_cookie k = {.word = cookie};
	struct pending_nccl *n = &ts->nccl;
	struct nccl_comm *c = &ts->comm;

	if (k.op == NCCL_GROUP_END && ts->nccl_depth && --ts->nccl_depth == 0)
		ts->nccl_groups++;
	if (k.kind == WIRE_NCCL_END) {
		struct nccl_comm_key key = nccl_key(n->comm);

		bpf_map_delete_elem(&nccl_comms, &key);
		return;
	}
	if (ret && ret != NCCL_IN_PROGRESS)
		return;
	__builtin_memset(c, 0, sizeof(*c));
	c->hash = n->hash;
	c->rank = n->rank;
	c->nranks = n->nranks;
	if (k.kind == WIRE_NCCL_INIT_ALL) {
		nccl_enter_all(ts, c);
		n->comm = 0; /* the call is none of them alone */
		return;
	}
	if (k.kind != WIRE_NCCL_INIT && k.kind != WIRE_NCCL_SCALABLE && k.kind != WIRE_NCCL_CHILD &&
		k.kind != WIRE_NCCL_GROW)
		return;
	bpf_probe_read_user(&n->comm, sizeof(n->comm), (void *)n->out);
	c->device = ts->device;
	if ((k.kind == WIRE_NCCL_CHILD || k.kind == WIRE_NCCL_GROW) && n->comm) {
		nccl_ask(k, n->comm, c);
		n->rank = c->rank;
		n->nranks = c->nranks;
	}
	nccl_name(k, n->comm, c);
	n->hash = c->hash;
	nccl_enter(ts, n->comm, c);
}

/* nccl_send - every NCCL call is a record: they are few, and each one matters. False: there was no room. */
static __always_inline bool nccl_send(
	struct thread_state *ts, const struct pending_call *c, __u64 dur_ns, __s32 ret, __u32 flags)
{
	union wire_cookie k = {.word = c->cookie};
	__u64 id = bpf_get_current_pid_tgid();
	struct pending_nccl *n = &ts->nccl;
	struct wire_nccl *r = record_begin(&events, sizeof(*r), SOURCE_NCCL);

	if (!r)
		return false;
	r->h.op = k.op;
	r->h.flags = flags;
	r->h.start_ns = c->start_ns;
	r->h.dur_ns = dur_ns;
	r->h.pid = id >> 32;
	r->h.tid = (__u32)id;
	r->h.cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(r->h.comm, sizeof(r->h.comm));
	r->stack = c->stack;
	r->comm = n->comm;
	r->comm_hash = n->hash;
	r->seq = n->seq;
	r->stream = n->stream;
	r->count = k.kind == WIRE_NCCL_INIT_ALL ? 0 : n->count;
	r->bytes = r->count * nccl_type_bytes(n->datatype);
	r->rank = n->rank;
	r->nranks = n->nranks;
	r->datatype = n->datatype;
	r->reduce_op = n->reduce_op;
	r->root = n->root;
	r->peer = n->peer;
	r->ret = ret;
	r->device = ts->device;
	record_send(&events, &r->h);
	return true;
}
