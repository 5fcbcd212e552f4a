// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* call.bpf.c - library calls: one entry and one return program for every probed function.
 *
 * The attach cookie says which function it is and where its arguments are (union wire_cookie).
 * A call is a hit at its entry. Pending calls of a thread form a small stack in task storage, so a
 * driver call inside a runtime call is known to be nested, and calls that were left by longjmp or
 * an exception are found (their stack pointer lies below the present one) and counted as losses. */
#include "agent/probe/target.bpf.h"

/* On x86-64 the call instruction has pushed the return address, which the return has popped. */
#if defined(__TARGET_ARCH_x86)
#define RETURN_ADDRESS_BYTES 8
#else
#define RETURN_ADDRESS_BYTES 0
#endif

/* The first ten argument words, counted from 1; words[0] is 0 and stands for "no argument".
 * Loaded one by one, because the verifier wants constant offsets into the registers. */
struct arguments {
	__u64 words[16]; /* a power of two, so that an index can be masked */
};

static __always_inline void arguments_load(
	struct pt_regs *ctx, union wire_cookie k, struct arguments *a)
{
	__builtin_memset(a, 0, sizeof(*a));
#if defined(__TARGET_ARCH_x86)
	a->words[1] = ctx->rdi;
	a->words[2] = ctx->rsi;
	a->words[3] = ctx->rdx;
	a->words[4] = ctx->rcx;
	a->words[5] = ctx->r8;
	a->words[6] = ctx->r9;
	if (k.arg0 > 5 || k.arg1 > 6 || k.stream > 6) /* arg0 may need the word after it */
		bpf_probe_read_user(&a->words[7], 32, (void *)(ctx->rsp + RETURN_ADDRESS_BYTES));
#else
	struct user_pt_regs *regs = (struct user_pt_regs *)ctx;

	a->words[1] = regs->regs[0];
	a->words[2] = regs->regs[1];
	a->words[3] = regs->regs[2];
	a->words[4] = regs->regs[3];
	a->words[5] = regs->regs[4];
	a->words[6] = regs->regs[5];
	a->words[7] = regs->regs[6];
	a->words[8] = regs->regs[7];
	if (k.stream > 8)
		bpf_probe_read_user(&a->words[9], 16, (void *)regs->sp);
#endif
}

static __always_inline __u64 argument_word(const struct arguments *a, __u32 n)
{
	asm volatile("" : "+r"(n));
	return a->words[n & 15];
}

/* Forget calls that can no longer return: deeper on the stack than @sp, or (@entry of the same
 * function at the same depth) left and called again. A tail call shares its caller's sp, is another
 * function, and stays. */
static __always_inline void drop_left_calls(struct thread_state *ts, __u64 sp, __u64 entry_cookie)
{
	for (int i = 0; i < CALL_DEPTH; i++) {
		struct pending_call *c;

		if (!ts->depth)
			return;
		c = call_at(ts, ts->depth - 1);
		if (c->sp > sp || (c->sp == sp && c->cookie != entry_cookie))
			return;
		loss_count(call_source(c), LOSS_UNWOUND);
		ts->depth--;
	}
}

static __always_inline int call_begin(struct pt_regs *ctx)
{
	union wire_cookie k = {.word = bpf_get_attach_cookie(ctx)};
	struct task_struct *task;
	struct thread_state *ts;
	struct pending_call *c;
	struct arguments args;

	if (!enabled)
		return 0;
	task = bpf_get_current_task_btf();
	ts = thread_get(task);
	if (!ts) {
		if (!target_admit(task, k.source))
			return 0;
		ts = thread_make(task);
	}
	hit_count(k.source);
	if (!ts) {
		loss_count(k.source, LOSS_NO_STORAGE);
		return 0;
	}
	drop_left_calls(ts, PT_REGS_SP(ctx), k.word);
	if (ts->depth >= CALL_DEPTH) {
		loss_count(k.source, LOSS_TOO_DEEP);
		return 0;
	}
	c = call_at(ts, ts->depth);
	arguments_load(ctx, k, &args);
	c->cookie = k.word;
	c->sp = PT_REGS_SP(ctx);
	c->arg0 = argument_word(&args, k.arg0);
	c->arg1 = argument_word(&args, k.arg1);
	c->stream = argument_word(&args, k.stream);
	if (k.flags & COOKIE_AREA)
		c->arg0 *= argument_word(&args, k.arg0 + 1);
	if (k.flags & COOKIE_CONFIG)
		bpf_probe_read_user(
			&c->stream, sizeof(c->stream), (void *)(c->stream + COOKIE_CONFIG_AT));
	ts->depth++;
	c->start_ns = bpf_ktime_get_ns();
	return 0;
}

/* Is there a runtime call below the one at @top? */
static __always_inline bool is_nested(struct thread_state *ts, __u32 top)
{
	for (__u32 i = 0; i < CALL_DEPTH; i++) {
		if (i >= top)
			return false;
		if (((union wire_cookie){.word = ts->calls[i].cookie}).flags & COOKIE_RUNTIME)
			return true;
	}
	return false;
}

/* Why this call is sent as a record: 0 (it only counts), or 1 plus the record's flags. A nested
 * call repeats what its runtime call says, so it is sent only when it is slow or failed. */
static __always_inline __u32 send_reason(
	union wire_cookie k, __u64 count, bool nested, __u64 dur_ns, __s32 ret)
{
	__u64 limit = limit_ns[(k.source & (WIRE_SOURCE_MAX - 1)) * WIRE_OP_MAX +
			       (k.op & (WIRE_OP_MAX - 1))];
	__u32 slow = limit && dur_ns > limit ? WIRE_SLOW : 0;

	if (slow || record_all || ret || !count || ((k.flags & COOKIE_ALWAYS) && !nested))
		return 1 + slow;
	if (!limit && count <= warmup_calls)
		return 1;
	if (!(count & sample_mask))
		return 1 + WIRE_SAMPLE;
	return 0;
}

static __always_inline void call_finish(
	struct pt_regs *ctx, struct pending_call *c, bool nested, __u64 now)
{
	union wire_cookie k = {.word = c->cookie};
	__u64 id = bpf_get_current_pid_tgid();
	struct wire_agg_key key = {.pid = id >> 32, .source = k.source, .op = k.op};
	__u64 dur_ns = now - c->start_ns;
	__s32 ret = (__s32)PT_REGS_RC(ctx);
	struct wire_call *r;
	struct wire_agg *a;
	__u64 count;
	__u32 why, bytes;

	key.flags = nested ? WIRE_NESTED : 0;
	bytes = (k.flags & COOKIE_BYTES) && !ret ? WIRE_BYTES : 0;
	count = aggregate_add(&key, dur_ns, bytes ? c->arg0 : 0, &a);
	why = send_reason(k, count, nested, dur_ns, ret);
	if (!why) {
		aggregated_count(k.source);
		return;
	}
	r = record_begin(&events, sizeof(*r), k.source);
	if (!r)
		return;
	r->h.op = k.op;
	r->h.flags = (why - 1) | key.flags | WIRE_TARGET | bytes | (count ? 0 : WIRE_UNCOUNTED);
	r->h.start_ns = c->start_ns;
	r->h.dur_ns = dur_ns;
	r->h.pid = id >> 32;
	r->h.tid = (__u32)id;
	r->h.cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(r->h.comm, sizeof(r->h.comm));
	r->arg0 = c->arg0;
	r->arg1 = c->arg1;
	r->stream = c->stream;
	r->ret = ret;
	r->device = 0;
	if (k.flags & COOKIE_ARG1_OUT) {
		__u64 out = 0;

		if (!ret)
			bpf_probe_read_user(&out, sizeof(out), (void *)c->arg1);
		r->arg1 = out;
	}
	aggregate_sent(a);
	record_send(&events, &r->h);
}

static __always_inline int call_end(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	union wire_cookie k = {.word = bpf_get_attach_cookie(ctx)};
	struct thread_state *ts;
	struct pending_call *c;
	__u32 top;

	if (!enabled)
		return 0;
	ts = thread_get(bpf_get_current_task_btf());
	if (!ts)
		return 0;
	/* An entry below this frame cannot return any more; sp - 1 keeps the frame itself. */
	drop_left_calls(ts, PT_REGS_SP(ctx) - RETURN_ADDRESS_BYTES - 1, 0);
	if (!ts->depth)
		return 0; /* attached in the middle of the call */
	top = ts->depth - 1;
	c = call_at(ts, top);
	if (c->cookie != k.word)
		return 0;
	ts->depth--;
	call_finish(ctx, c, is_nested(ts, top), now);
	return 0;
}

SEC("kprobe")
int call_entry(struct pt_regs *ctx)
{
	return call_begin(ctx);
}

SEC("kprobe")
int call_return(struct pt_regs *ctx)
{
	return call_end(ctx);
}

/* Both in one program, where the kernel has session probes (6.13): half the links, and no return
 * without its entry. */
extern bool bpf_session_is_return(void) __ksym;

SEC("kprobe")
int call_session(struct pt_regs *ctx)
{
	return bpf_session_is_return() ? call_end(ctx) : call_begin(ctx);
}
