/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* nvtx.bpf.h - ranges that a program names itself. A range is one event, made when it ends: it is a
 * hit then. What is not kept (too deep, too many in a second) is a hit and a loss when it begins.
 *
 * NVTX has a stack of ranges for each thread and domain. Here a thread has one, and a pop ends the
 * innermost range of its domain. Names are sent once, events refer to them by hash. */
#pragma once

#include "record/probe/ledger/ledger.bpf.h"
#include "record/probe/mark/hook.h"
#include "record/probe/name/name.bpf.h"

#define NVTX_DEPTH    16     /* a power of two */
#define NVTX_EVERY_NS 500000 /* of a thread: 2000 ranges a second, and */
#define NVTX_BURST    4000   /* that many at once */
#define NVTX_WIDE     64     /* characters of a wide name */
#define NVTX_WORDS    (NAME_RANGE / 8)

/* A call that another NVTX function hands on comes at once, from little deeper in the stack; or a bit
 * later, where the thread lost its CPU between the two. */
#define NVTX_HANDED_NS    10000000
#define NVTX_HANDED_BYTES 1024

/* nvtxEventAttributes_t: the kind of message and the message. */
#define NVTX_MESSAGE_KIND_AT 32
#define NVTX_MESSAGE_AT      40

struct nvtx_open {
	__u64 start_ns; /* 0: a hole */
	__u64 name, domain;
};

struct nvtx_call { /* the last one of the thread */
	__u64 sp, function, name, domain, at_ns;
	__u32 hook;
};

struct nvtx_state {
	struct nvtx_call last;
	__u32 depth;              /* of open[] */
	__u32 skipped;            /* ranges inside that are not kept */
	__u64 until;              /* see bucket_take() */
	struct nvtx_open pending; /* a start under way; or of a handle, its name */
	struct nvtx_open open[NVTX_DEPTH];
	union {
		char text[NAME_RANGE];
		__u64 words[NVTX_WORDS];
	};
	__u32 wide[NVTX_WIDE];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nvtx_state);
} nvtx_threads SEC(".maps");

struct nvtx_key { /* of a handle or a range from start to end */
	__u64 handle;
	__u32 pid;
	__u32 tid; /* ranges without a number of their own: one of a thread; else 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct nvtx_key);
	__type(value, struct nvtx_open);
} nvtx_spans SEC(".maps");

/* Registered strings and domains: the hash of the name. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct nvtx_key);
	__type(value, __u64);
} nvtx_handles SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u32);
} texts_sent SEC(".maps");

static __always_inline struct nvtx_key nvtx_key_of(__u64 handle, bool by_thread)
{
	__u64 id = bpf_get_current_pid_tgid();

	return (struct nvtx_key){
		.handle = handle, .pid = id >> 32, .tid = by_thread ? (__u32)id : 0};
}

/* The text in st->text is hashed, and sent if it is new. */
static __always_inline __u64 nvtx_text_hash(struct nvtx_state *st)
{
	__u64 hash = 0x9e3779b97f4a7c15ULL;
	struct wire_name *n;
	__u32 one = 1;

	for (int i = 0; i < NVTX_WORDS; i++)
		hash = hash_mix(hash ^ st->words[i]);
	hash |= 1; /* never 0 */
	if (bpf_map_lookup_elem(&texts_sent, &hash))
		return hash;
	n = name_share_take(sizeof(*n) + NAME_SHORT, 0, 0)
		    ? bpf_ringbuf_reserve(&names, sizeof(*n) + NAME_SHORT, 0)
		    : NULL;
	if (!n) {
		name_lost();
		return hash;
	}
	name_head(n, sizeof(*n) + NAME_SHORT, SOURCE_NVTX, NAME_TEXT, hash);
	__builtin_memcpy(n->text, st->text, NAME_RANGE);
	n->text[NAME_RANGE - 1] = 0;
	bpf_ringbuf_submit(n, 0);
	bpf_map_update_elem(&texts_sent, &hash, &one, BPF_ANY);
	return hash;
}

/* Wide characters become their ASCII, or '?'. */
static __always_inline void nvtx_read_wide(struct nvtx_state *st, __u64 address)
{
	bool ended = false;

	__builtin_memset(st->wide, 0, sizeof(st->wide));
	/* a short text may lie at the end of readable memory */
	if (bpf_probe_read_user(st->wide, sizeof(st->wide), (void *)address) < 0)
		for (int i = 0; i < NVTX_WIDE; i++)
			if (bpf_probe_read_user(&st->wide[i], 4, (void *)(address + 4 * i)) < 0 ||
				!st->wide[i])
				break;
	for (int i = 0; i < NVTX_WIDE; i++) {
		__u32 c = st->wide[i];

		ended = ended || !c;
		if (!ended)
			st->text[i] = c < 0x80 ? (char)c : '?';
	}
}

/* The name at @address, written as @form says; 0: there is none. */
static __always_inline __u64 nvtx_name(struct nvtx_state *st, __u32 form, __u64 address)
{
	__u32 kind = 0;

	if (form == NVTX_FORM_ATTRIBUTES) {
		__u64 attributes = address;

		address = 0;
		bpf_probe_read_user(
			&kind, sizeof(kind), (void *)(attributes + NVTX_MESSAGE_KIND_AT));
		bpf_probe_read_user(
			&address, sizeof(address), (void *)(attributes + NVTX_MESSAGE_AT));
		form = kind;
	}
	if (!address)
		return 0;
	if (form == NVTX_FORM_REGISTERED) {
		struct nvtx_key key = nvtx_key_of(address, false);
		__u64 *hash = bpf_map_lookup_elem(&nvtx_handles, &key);

		return hash ? *hash : 0;
	}
	__builtin_memset(st->text, 0, sizeof(st->text));
	if (form == NVTX_FORM_WIDE)
		nvtx_read_wide(st, address);
	else if (form != NVTX_FORM_TEXT ||
		 bpf_probe_read_user_str(st->text, sizeof(st->text), (void *)address) < 0)
		return 0;
	return nvtx_text_hash(st);
}

/* The domain's name stands for it; of one without a name its handle does. */
static __always_inline __u64 nvtx_domain(__u64 handle)
{
	struct nvtx_key key = nvtx_key_of(handle, false);
	__u64 *hash = handle ? bpf_map_lookup_elem(&nvtx_handles, &key) : NULL;

	return hash ? *hash : handle;
}

static __always_inline void nvtx_send(
	struct task_struct *task, __u16 op, const struct nvtx_open *o, __u64 now, __u64 level)
{
	struct wire_call *r;

	hit_count(SOURCE_NVTX);
	r = record_begin(&events, sizeof(*r), SOURCE_NVTX);
	if (!r)
		return;
	r->h.op = op;
	r->h.flags = WIRE_TARGET;
	r->h.start_ns = o->start_ns;
	r->h.dur_ns = now - o->start_ns;
	r->h.pid = task->tgid;
	r->h.tid = task->pid;
	r->h.cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(r->h.comm, sizeof(r->h.comm));
	r->arg0 = level;
	r->arg1 = o->name;
	r->stream = o->domain;
	r->stack = 0;
	r->ret = 0;
	r->device = 0;
	record_send(&events, &r->h);
}

static __always_inline bool nvtx_admit(struct nvtx_state *st, __u64 now)
{
	if (bucket_take(&st->until, now, NVTX_EVERY_NS, NVTX_BURST))
		return true;
	hit_lose(SOURCE_NVTX, LOSS_RATE_LIMITED);
	return false;
}

static __always_inline struct nvtx_open *nvtx_at(struct nvtx_state *st, __u32 i)
{
	return &st->open[BOUNDED(i, NVTX_DEPTH - 1)];
}

static __always_inline void nvtx_push(struct nvtx_state *st, const struct nvtx_open *o)
{
	if (st->skipped) { /* inside one that is not kept */
		st->skipped++;
		hit_count(SOURCE_NVTX);
		loss_count(
			SOURCE_NVTX, st->depth >= NVTX_DEPTH ? LOSS_TOO_DEEP : LOSS_RATE_LIMITED);
		return;
	}
	if (st->depth >= NVTX_DEPTH) {
		st->skipped = 1;
		hit_lose(SOURCE_NVTX, LOSS_TOO_DEEP);
		return;
	}
	if (!nvtx_admit(st, o->start_ns)) {
		st->skipped = 1;
		return;
	}
	*nvtx_at(st, st->depth) = *o;
	st->depth++;
}

static __always_inline void nvtx_pop(
	struct task_struct *task, struct nvtx_state *st, __u64 domain, __u64 now)
{
	if (st->skipped) {
		st->skipped--;
		return;
	}
	for (__u32 i = 0; i < NVTX_DEPTH; i++) {
		struct nvtx_open *o;

		if (i >= st->depth)
			break;
		o = nvtx_at(st, st->depth - 1 - i);
		if (!o->start_ns || o->domain != domain)
			continue;
		nvtx_send(task, NVTX_RANGE, o, now, st->depth - 1 - i);
		o->start_ns = 0;
		break;
	}
	for (__u32 i = 0; i < NVTX_DEPTH; i++) { /* holes on top */
		if (!st->depth || nvtx_at(st, st->depth - 1)->start_ns)
			break;
		st->depth--;
	}
}

static __always_inline void nvtx_span_end(struct task_struct *task, __u64 id, __u64 now)
{
	struct nvtx_key key = nvtx_key_of(id, !id);
	struct nvtx_open *o = bpf_map_lookup_elem(&nvtx_spans, &key), copy;

	if (!o)
		return;
	copy = *o;
	bpf_map_delete_elem(&nvtx_spans, &key);
	nvtx_send(task, NVTX_SPAN, &copy, now, 0);
}

static __always_inline __u64 nvtx_argument(struct pt_regs *ctx, __u32 n)
{
	__u64 first = PT_REGS_PARM1(ctx), second = PT_REGS_PARM2(ctx);

	/* both are read, at offsets that the verifier can see */
	asm volatile("" : "+r"(first), "+r"(second));
	return n == 2 ? second : first;
}

/* What a function that returns a handle gave: of a range, a string or a domain. */
static __always_inline void nvtx_returned(struct pt_regs *ctx, struct nvtx_state *st, __u32 hook)
{
	__u64 handle = PT_REGS_RC(ctx);
	struct nvtx_key key = nvtx_key_of(handle, hook == HOOK_NVTX_STARTED && !handle);

	if (hook == HOOK_NVTX_STARTED && st->pending.start_ns)
		bpf_map_update_elem(&nvtx_spans, &key, &st->pending, BPF_ANY);
	else if (hook == HOOK_NVTX_NAMED && handle && st->pending.name)
		bpf_map_update_elem(&nvtx_handles, &key, &st->pending.name, BPF_ANY);
	__builtin_memset(&st->pending, 0, sizeof(st->pending));
}

/* PyTorch has NVTX's functions of its own, and with libingero-nvtx.so loaded they call that one's:
 * both are probed, and the second says nothing new. */
static __always_inline bool nvtx_is_handed_on(
	struct pt_regs *ctx, struct nvtx_state *st, __u32 hook, const struct nvtx_open *o)
{
	struct nvtx_call was = st->last, is = {.sp = PT_REGS_SP(ctx),
						 .function = PT_REGS_IP(ctx),
						 .name = o->name,
						 .domain = o->domain,
						 .at_ns = o->start_ns,
						 .hook = hook};

	st->last = is;
	if (was.hook != hook || was.name != is.name || was.domain != is.domain ||
		was.function == is.function || is.at_ns - was.at_ns > NVTX_HANDED_NS ||
		is.sp > was.sp || was.sp - is.sp > NVTX_HANDED_BYTES)
		return false;
	st->last.hook = 0; /* a third call is one of its own */
	return true;
}

static __noinline int nvtx_hit(struct pt_regs *ctx, __u64 cookie)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 hook = cookie & 0xff, form = cookie >> 8 & 0xff;
	struct nvtx_state *st =
		bpf_task_storage_get(&nvtx_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct nvtx_open o = {.start_ns = bpf_ktime_get_ns()};

	if (!st) {
		hit_lose(SOURCE_NVTX, LOSS_NO_STORAGE);
		return 0;
	}
	if (hook == HOOK_NVTX_STARTED || hook == HOOK_NVTX_NAMED) {
		nvtx_returned(ctx, st, hook);
		return 0;
	}
	if (cookie >> 24 & 0xff)
		o.domain = nvtx_domain(PT_REGS_PARM1(ctx));
	if (hook == HOOK_NVTX_POP) {
		if (nvtx_is_handed_on(ctx, st, hook, &o))
			return 0;
		nvtx_pop(task, st, o.domain, o.start_ns);
		return 0;
	}
	if (hook == HOOK_NVTX_END) {
		nvtx_span_end(task, nvtx_argument(ctx, cookie >> 16 & 0xff), o.start_ns);
		return 0;
	}
	o.name = nvtx_name(st, form, nvtx_argument(ctx, cookie >> 16 & 0xff));
	if ((hook == HOOK_NVTX_PUSH || hook == HOOK_NVTX_MARK) &&
		nvtx_is_handed_on(ctx, st, hook, &o))
		return 0;
	if (hook == HOOK_NVTX_PUSH)
		nvtx_push(st, &o);
	else if (hook == HOOK_NVTX_MARK && nvtx_admit(st, o.start_ns))
		nvtx_send(task, NVTX_MARK, &o, o.start_ns, 0);
	else if (hook == HOOK_NVTX_NAME || (hook == HOOK_NVTX_START && nvtx_admit(st, o.start_ns)))
		st->pending = o;
	return 0;
}
