/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* name.bpf.h - names of launched kernels.
 *
 * A program registers each of its kernels with the runtime when it is loaded: tens of thousands in
 * PyTorch, of which a job launches some hundreds. So only the two addresses are kept (the function
 * that launches name, and where the kernel's name lies in the program); the text is read and sent
 * when a launch of the function is first counted. A handle of the driver gets its name when it is
 * made, and is sent at once: programs make them for kernels that they launch. */
#pragma once

#include "record/probe/target.bpf.h"
#include "wire/record.h"

#define PARENTS 2 /* a child may launch what its parent registered before it was forked */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 << 20);
} names SEC(".maps");

/* Registered kernels: where the name is. Emptied of ended processes by the agent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 20);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct wire_function);
	__type(value, __u64);
} registered SEC(".maps");

/* Functions that were launched, and how many of their launches were counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct wire_function);
	__type(value, __u64);
} launched SEC(".maps");

/* A call under way that makes a handle: one of a thread at a time. */
struct handle_call {
	__u64 out;  /* where the handle will be */
	__u64 from; /* address of the name, or the handle it is another one of */
	__u64 is_alias;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct handle_call);
} handle_calls SEC(".maps");

/* How often a handle was looked at. Libraries ask for the same one at every launch; but each context
 * has another alias of it, and a handle that was given back may come again with another name. So the
 * first HANDLE_LOOKS are looked at, then one in HANDLE_GAP. */
#define HANDLE_LOOKS 16
#define HANDLE_GAP   64 /* a power of 2 */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct wire_function);
	__type(value, __u64);
} handles_seen SEC(".maps");

/* What one process, and one user but root, has of the ring and the tables: nobody's flood of names hides those of
 * others. A process has a quarter, a user half. The agent takes out the shares of ended processes. */
#define SHARE_WINDOW_NS 100000000ULL /* in which the agent empties the ring several times */
#define SHARE_RING                                                                                 \
	(512 << 10) /* bytes of a process in a window; of a user twice that, as with the others */
#define SHARE_LAUNCHED   8192
#define SHARE_REGISTERED (256 << 10)
#define SHARE_OF_USER    (1ULL << 32) /* keys are processes, or users with this bit */

struct name_share {
	__u64 since_ns, bytes; /* sent in the present window */
	__u64 launched, registered;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, struct name_share);
} name_shares SEC(".maps");

__u64 names_lost; /* no room in the ring, or in a table above, or in somebody's share of it */

static __always_inline void name_lost(void)
{
	__sync_fetch_and_add(&names_lost, 1);
}

static __always_inline struct name_share *share_of(__u64 key)
{
	struct name_share *s = bpf_map_lookup_elem(&name_shares, &key), none = {};

	if (s)
		return s;
	bpf_map_update_elem(&name_shares, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&name_shares, &key);
}

/* Races of threads make a share a little larger or smaller. */
static __always_inline bool share_takes(
	__u64 key, __u64 times, __u64 bytes, __u64 launched, __u64 registered)
{
	struct name_share *s = share_of(key);
	__u64 now = bpf_ktime_get_ns();

	if (!s)
		return false;
	if (now - s->since_ns > SHARE_WINDOW_NS) {
		s->since_ns = now;
		s->bytes = 0;
	}
	if (s->bytes + bytes > times * SHARE_RING ||
		s->launched + launched > times * SHARE_LAUNCHED ||
		s->registered + registered > times * SHARE_REGISTERED)
		return false;
	__sync_fetch_and_add(&s->bytes, bytes);
	__sync_fetch_and_add(&s->launched, launched);
	__sync_fetch_and_add(&s->registered, registered);
	return true;
}

/* name_share_take - whether the current process and its user may have so much more. */
static __noinline int name_share_take(__u64 bytes, __u64 launched, __u64 registered)
{
	__u32 uid = (__u32)bpf_get_current_uid_gid();

	return share_takes(bpf_get_current_pid_tgid() >> 32, 1, bytes, launched, registered) &&
	       (!uid || share_takes(SHARE_OF_USER | uid, 2, bytes, 0, 0));
}

static __always_inline void name_head(
	struct wire_name *n, __u32 size, __u32 source, enum wire_name_kind kind, __u64 key)
{
	__u64 id = bpf_get_current_pid_tgid();

	__builtin_memset(&n->h, 0, sizeof(n->h));
	n->h.size = size;
	n->h.version = WIRE_VERSION;
	n->h.source = source;
	n->h.start_ns = bpf_ktime_get_ns();
	n->h.pid = id >> 32;
	n->h.tid = (__u32)id;
	n->key = key;
	n->other = 0;
	n->kind = kind;
	n->is_cut = 0;
}

/* name_send_text - the text at @address of the process. False: it was lost. */
static __always_inline bool name_send_text(
	__u32 source, enum wire_name_kind kind, __u64 key, __u64 address)
{
	struct wire_name *n;
	long len;

	if (!name_share_take(sizeof(*n) + NAME_SHORT, 0, 0))
		return false;
	n = bpf_ringbuf_reserve(&names, sizeof(*n) + NAME_SHORT, 0);
	if (!n)
		return false;
	name_head(n, sizeof(*n) + NAME_SHORT, source, kind, key);
	len = bpf_probe_read_user_str(n->text, NAME_SHORT, (void *)address);
	if (len > 0 && len < NAME_SHORT) {
		bpf_ringbuf_submit(n, 0);
		return true;
	}
	bpf_ringbuf_discard(n, BPF_RB_NO_WAKEUP);
	if (len <= 0)
		return true; /* there is none */
	if (!name_share_take(NAME_LONG, 0, 0))
		return false;
	n = bpf_ringbuf_reserve(&names, sizeof(*n) + NAME_LONG, 0);
	if (!n)
		return false;
	name_head(n, sizeof(*n) + NAME_LONG, source, kind, key);
	len = bpf_probe_read_user_str(n->text, NAME_LONG, (void *)address);
	n->is_cut = len == NAME_LONG;
	if (len <= 0)
		n->text[0] = 0;
	bpf_ringbuf_submit(n, 0);
	return true;
}

static __always_inline bool name_send_alias(__u32 source, __u64 key, __u64 other)
{
	struct wire_name *n;

	if (!name_share_take(sizeof(*n), 0, 0))
		return false;
	n = bpf_ringbuf_reserve(&names, sizeof(*n), 0);
	if (!n)
		return false;
	name_head(n, sizeof(*n), source, NAME_ALIAS, key);
	n->other = other;
	bpf_ringbuf_submit(n, 0);
	return true;
}

/* Where the name of @function lies, which the process or one it was forked from registered; 0: it is
 * not known. */
static __always_inline __u64 name_address(__u64 function)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wire_function key = {.function = function, .pid = task->tgid};

	for (int i = 0; i <= PARENTS; i++) {
		__u64 *address = bpf_map_lookup_elem(&registered, &key);

		if (address)
			return *address;
		task = BPF_CORE_READ(task, real_parent);
		key.pid = BPF_CORE_READ(task, tgid);
	}
	return 0;
}

/* launched_note - a launch of @function stands for @count more of them. */
static __noinline int launched_note(__u64 function, __u64 count)
{
	struct wire_function key = {.function = function, .pid = bpf_get_current_pid_tgid() >> 32};
	__u64 *sum = bpf_map_lookup_elem(&launched, &key), address;

	if (sum) {
		if (count)
			__sync_fetch_and_add(sum, count);
		return 0;
	}
	if (!name_share_take(0, 1, 0) ||
		bpf_map_update_elem(&launched, &key, &count, BPF_NOEXIST) < 0) {
		name_lost();
		return 0;
	}
	address = name_address(function);
	if (address && !name_send_text(SOURCE_CUDA, NAME_OF_FUNCTION, function, address))
		name_lost();
	return 0;
}

/* launched_sample - at each launch; counts one in some. */
static __always_inline void launched_sample(struct thread_state *ts, __u64 function)
{
	if (ts->launch_gap) {
		ts->launch_gap--;
		return;
	}
	ts->launch_gap = bpf_get_prandom_u32() & (NAME_GAP - 1);
	launched_note(function, 1);
}

/* May the current process come under trace? */
static __always_inline bool name_is_wanted(struct task_struct *task)
{
	if (target_is(task->tgid))
		return true;
	if (filter_mode == FILTER_PIDS || is_own_program(task))
		return false;
	return filter_mode != FILTER_USER || (__u32)bpf_get_current_uid_gid() == filter_uid;
}

/* __cudaRegisterFunction(module, function that launches, kernel, its name, …) */
static __always_inline void name_register(struct pt_regs *ctx, struct task_struct *task)
{
	struct wire_function key = {.function = PT_REGS_PARM2(ctx), .pid = task->tgid};
	__u64 address = PT_REGS_PARM4(ctx);

	if (!name_share_take(0, 0, 1) ||
		bpf_map_update_elem(&registered, &key, &address, BPF_ANY) < 0)
		name_lost();
}

static __always_inline bool handle_is_due(__u64 handle)
{
	struct wire_function key = {.function = handle, .pid = bpf_get_current_pid_tgid() >> 32};
	__u64 *looks = bpf_map_lookup_elem(&handles_seen, &key), one = 1;

	if (!looks) {
		bpf_map_update_elem(&handles_seen, &key, &one, BPF_ANY);
		return true;
	}
	if (*looks >= HANDLE_LOOKS)
		return !(bpf_get_prandom_u32() & (HANDLE_GAP - 1));
	__sync_fetch_and_add(looks, 1);
	return true;
}

/* (out, module, name) or (out, other handle). False: its return says nothing that is wanted. */
static __always_inline bool name_handle_begin(struct pt_regs *ctx, bool is_alias)
{
	struct handle_call c = {.out = PT_REGS_PARM1(ctx), .is_alias = is_alias};
	__u64 id = bpf_get_current_pid_tgid();
	__u64 second = PT_REGS_PARM2(ctx), third = PT_REGS_PARM3(ctx);

	/* both are read, at offsets that the verifier can see */
	asm volatile("" : "+r"(second), "+r"(third));
	c.from = is_alias ? second : third;
	if (is_alias && !handle_is_due(c.from))
		return false;
	bpf_map_update_elem(&handle_calls, &id, &c, BPF_ANY);
	return true;
}

static __always_inline void name_handle_end(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), handle = 0;
	struct handle_call *c = bpf_map_lookup_elem(&handle_calls, &id);
	bool sent = true;

	if (!c)
		return;
	if (!(__s32)PT_REGS_RC(ctx) &&
		bpf_probe_read_user(&handle, sizeof(handle), (void *)c->out) == 0 && handle) {
		if (!c->is_alias)
			sent = !handle_is_due(handle) ||
			       name_send_text(SOURCE_DRIVER, NAME_OF_FUNCTION, handle, c->from);
		else if (handle != c->from)
			sent = name_send_alias(SOURCE_DRIVER, handle, c->from);
	}
	if (!sent)
		name_lost();
	bpf_map_delete_elem(&handle_calls, &id);
}
