// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* call.bpf.c - library calls: one entry and one return program for every probed function.
 *
 * The attach cookie says which function it is and where its arguments are (union wire_cookie).
 * A call is a hit at its entry. Pending calls of a thread form a small stack in task storage, so a
 * driver call inside a runtime call is known to be nested, and calls that were left by longjmp or
 * an exception are found (their stack pointer lies below the present one) and counted as losses. */
#include "record/probe/ledger/ledger.bpf.h"
#include "record/probe/name/name.bpf.h"
#include "record/probe/nccl/nccl.bpf.h"
#include "record/probe/stack/stack.bpf.h"
#include "wire/op_kind.h"

#define NESTED_TIMED 16 /* of the driver launches inside runtime calls, one in so many */

/* Forget calls that can no longer return: deeper on the stack than @sp, or (@entry of the same
 * function at the same depth) left and called again. A tail call shares its caller's sp, is another
 * function, and stays. */
static __always_inline void drop_left_calls(struct thread_state *ts, __u64 sp, __u64 entry_cookie)
{
	__u32 line = ledger_line_now(ts), was = ts->depth;

	for (int i = 0; i < CALL_DEPTH; i++) {
		struct pending_call *c;

		if (!ts->depth)
			break;
		c = call_at(ts, ts->depth - 1);
		if (c->sp > sp || (c->sp == sp && c->cookie != entry_cookie))
			return;
		loss_count(call_source(c), LOSS_UNWOUND);
		ts->depth--;
	}
	if (was && !ts->depth) /* when it was left is not known: its time ends here */
		ledger_book(ts, line, bpf_ktime_get_ns());
}

/* Does the call @k at depth @top repeat one below it? A driver call inside a runtime call does (of graphs, both are of
 * the same source), an NCCL call inside another, and a runtime call inside a wrapper of its name in another library. */
static __always_inline bool is_nested(struct thread_state *ts, union wire_cookie k, __u32 top)
{
	for (__u32 i = 0; i < CALL_DEPTH; i++) {
		union wire_cookie below;

		if (i >= top)
			return false;
		below.word = ts->calls[i].cookie;
		if (k.source == SOURCE_DRIVER || k.source == SOURCE_GRAPH
				? below.source == SOURCE_CUDA || below.source == SOURCE_GRAPH
				: below.source == k.source &&
					  (k.source == SOURCE_NCCL ||
						  (below.op == k.op && below.library != k.library)))
			return true;
	}
	return false;
}

static __always_inline __u32 deepest_word(union wire_cookie k)
{
	__u32 deepest = k.arg0 + !!(k.flags & COOKIE_AREA);

	if (k.arg1 > deepest)
		deepest = k.arg1;
	return k.stream > deepest ? k.stream : deepest;
}

static __always_inline void take_arguments(
	union wire_cookie k, const struct arguments *args, struct pending_call *c)
{
	c->arg0 = argument_word(args, k.arg0) << k.shift;
	c->arg1 = argument_word(args, k.arg1);
	c->stream = argument_word(args, k.stream);
	if (k.flags & COOKIE_KIND)
		c->arg1 = (__u32)c->arg1; /* an int: the rest of its word is anything */
	if (k.flags & COOKIE_AREA)
		c->arg0 *= argument_word(args, k.arg0 + 1);
	if (k.flags & COOKIE_CONFIG)
		bpf_probe_read_user(
			&c->stream, sizeof(c->stream), (void *)(c->stream + COOKIE_CONFIG_AT));
}

/* Calls that are sent in any case have their stack taken at entry, so that it is there for one that
 * never returns. The others' is taken when it turns out that they are sent: at the return the
 * caller's frames are what they were. */
static __always_inline bool is_sent_always(union wire_cookie k, bool nested)
{
	return !nested && (k.source == SOURCE_NCCL || (k.flags & COOKIE_ALWAYS));
}

/* A pause: from the return of a wait to the thread's next call of another kind. What ends a long
 * one is sent, so that its length is known. After a call that gives the GPU nothing the next pause
 * begins. Without the launches nothing can be said of pauses. */
static __always_inline void gap_end(struct thread_state *ts, union wire_cookie k, __u64 now)
{
	ts->after_gap = 0;
	if (op_kind_is_gpu_wait(k.source, k.op))
		return;
	if (launches_enabled && ts->idle_ns && now - ts->idle_ns >= gap_limit_ns)
		ts->after_gap = WIRE_AFTER_GAP;
	if (!launches_enabled || !op_kind_is_workless(k.source, k.op))
		ts->idle_ns = 0;
}

/* A driver launch made by a runtime call: its time lies within that call's, which is what counts.
 * One in NESTED_TIMED, and the first on each CPU, is followed to its return; the others are counted
 * here and need no return probe, which is half of a hit's cost. Whoever reads the aggregate lets
 * those that were timed speak for the rest (sketch_add_delta()). Directly inside, so that the return
 * that other probe methods still see finds the runtime's call on top and leaves it alone. */
static __always_inline bool launch_count(const struct thread_state *ts, union wire_cookie k)
{
	struct wire_agg_key key = {.source = SOURCE_DRIVER, .flags = WIRE_NESTED, .op = k.op};
	struct wire_tally *t;
	struct wire_agg *a;

	if (k.source != SOURCE_DRIVER || !(k.flags & COOKIE_GOVERNED) || k.flags & COOKIE_BYTES ||
		record_all || !ts->depth ||
		call_source(&ts->calls[BOUNDED(ts->depth - 1, CALL_DEPTH - 1)]) != SOURCE_CUDA)
		return false;
	key.pid = bpf_get_current_pid_tgid() >> 32;
	a = bpf_map_lookup_elem(&aggregates, &key);
	t = tally_of(SOURCE_DRIVER);
	if (!a || !t || !a->count || (a->count + 1) % NESTED_TIMED == 0)
		return false;
	__sync_fetch_and_add(&a->count, 1);
	__sync_fetch_and_add(&t->hits, 1);
	__sync_fetch_and_add(&t->aggregated, 1);
	return true;
}

/* Of what the governor may take away, launches have no bytes; arg0 is the function. Not for NCCL. */
static __always_inline bool is_launch(union wire_cookie k)
{
	return (k.flags & (COOKIE_GOVERNED | COOKIE_BYTES)) == COOKIE_GOVERNED;
}

static __noinline int call_begin(struct pt_regs *ctx)
{
	union wire_cookie k = {.word = bpf_get_attach_cookie(ctx)};
	struct task_struct *task;
	struct thread_state *ts;
	struct pending_call *c;
	struct arguments *args;
	struct wire_use *use;
	bool nested;

	if (!enabled || (k.source != SOURCE_NCCL && k.flags & COOKIE_GOVERNED && !launches_enabled))
		return 0;
	task = bpf_get_current_task_btf();
	ts = thread_get(task);
	if (!ts) {
		if (!target_admit(task, k.source))
			return 0;
		ts = thread_make(task);
	}
	if (k.source == SOURCE_CUDA && (k.flags & COOKIE_DEVICE)) {
		if (ts)
			ts->device = (__s32)PT_REGS_PARM1(ctx);
		return 1; /* no return probe */
	}
	if (!ts) {
		hit_lose(k.source, LOSS_NO_STORAGE);
		return 0;
	}
	drop_left_calls(ts, PT_REGS_SP(ctx), k.word);
	use = use_of(task->tgid);
	if (use && k.source != SOURCE_NCCL && k.flags & COOKIE_GOVERNED) {
		__sync_fetch_and_add(&use->launches, 1);
	} else if (use && !ts->depth && op_kind_is_gpu_wait(k.source, k.op)) {
		use->at_wait = use->launches;
		__sync_fetch_and_add(&use->waits, 1);
	}
	if (launch_count(ts, k)) {
		if (use)
			__sync_fetch_and_add(&use->nested, 1);
		return 1; /* no return probe */
	}
	hit_count(k.source);
	if (ts->depth >= CALL_DEPTH) {
		loss_count(k.source, LOSS_TOO_DEEP);
		return 0;
	}
	c = call_at(ts, ts->depth);
	c->cookie = k.word;
	c->sp = PT_REGS_SP(ctx);
	c->function = PT_REGS_IP(ctx);
	c->stack = 0;
	args = &ts->arguments;
	nested = is_nested(ts, k, ts->depth);
	if (k.source == SOURCE_NCCL) {
		arguments_load(ctx, k.nccl_stream, args); /* the last that is asked for */
		if (!nested)
			nccl_begin(ctx, k.word, args, ts);
	} else {
		arguments_load(ctx, deepest_word(k), args);
		take_arguments(k, args, c);
		if (is_launch(k) && !nested)
			launched_sample(ts, c->arg0);
	}
	c->real_return = args->return_address;
	if (is_sent_always(k, nested))
		c->stack = stack_take(task, ts, c, ts->depth,
			PT_REGS_SP(ctx) + RETURN_ADDRESS_BYTES, PT_REGS_FP(ctx));
	c->start_ns = bpf_ktime_get_ns();
	if (!ts->depth) {
		gap_end(ts, k, c->start_ns);
		ledger_book(ts, ledger_line_now(ts), c->start_ns);
	}
	ts->depth++;
	return 0;
}

/* Why this call is sent as a record: 0 (it only counts), or 1 plus the record's flags. A nested
 * call repeats what its runtime call says, so it is sent only when it is slow or failed. */
static __always_inline __u32 send_reason(
	union wire_cookie k, __u64 count, bool nested, __u64 dur_ns, __s32 ret, __u32 gap)
{
	__u64 limit =
		limit_ns[BOUNDED(k.source * WIRE_OP_MAX + k.op, WIRE_SOURCE_MAX * WIRE_OP_MAX - 1)];
	__u32 slow = limit && dur_ns > limit ? WIRE_SLOW : 0;

	if (slow || ret || gap || !count || ((k.flags & COOKIE_ALWAYS) && !nested))
		return 1 + slow + gap;
	if (record_all)
		return count % sampling_rate ? 0 : 1;
	if (!limit && count <= warmup_calls)
		return 1;
	return count % sample_every ? 0 : 1 + WIRE_SAMPLE;
}

/* NCCL calls are counted like the others and sent with what only they have. A function of its own, for the stack:
 * see docs/kernels.md. */
static __noinline void nccl_finish(
	struct thread_state *ts, const struct pending_call *c, bool nested, __u64 dur_ns, __s32 ret)
{
	union wire_cookie k = {.word = c->cookie};
	struct wire_agg_key key = {.pid = bpf_get_current_pid_tgid() >> 32,
		.source = SOURCE_NCCL,
		.flags = nested ? WIRE_NESTED : 0,
		.op = k.op};
	struct wire_agg *a;
	__u64 bytes = 0;

	if (nested) {
		if (aggregate_add(&key, dur_ns, 0, &a)) {
			aggregated_count(SOURCE_NCCL);
			return;
		}
	} else {
		nccl_end(k.word, ts, ret);
		if (k.kind == WIRE_NCCL_COLLECTIVE || k.kind == WIRE_NCCL_POINT)
			bytes = ts->nccl.count * nccl_type_bytes(ts->nccl.datatype);
		aggregate_add(&key, dur_ns, bytes, &a);
	}
	if (nccl_send(ts, c, dur_ns, ret,
		    WIRE_TARGET | WIRE_BYTES | (ts->depth ? 0 : ts->after_gap) | key.flags |
			    (a ? 0 : WIRE_UNCOUNTED)))
		aggregate_sent(a);
}

/* The kind in an aggregate's key: see WIRE_AGG_KIND. */
static __always_inline __u8 aggregate_kind(union wire_cookie k, const struct pending_call *c)
{
	__u64 kind = c->arg1;

	if (!(k.flags & COOKIE_KIND))
		return 0;
	return (kind < WIRE_KIND_OTHER - 1 ? kind + 1 : WIRE_KIND_OTHER) << WIRE_AGG_KIND;
}

/* Returns whether it was to be sent, which takes several times as long as counting it. */
static __always_inline bool call_finish(struct pt_regs *ctx, struct thread_state *ts,
	struct pending_call *c, bool nested, __u64 now)
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

	if (k.source == SOURCE_NCCL) {
		nccl_finish(ts, c, nested, dur_ns, ret);
		return false;
	}
	key.flags = (nested ? WIRE_NESTED : 0) | aggregate_kind(k, c);
	bytes = (k.flags & COOKIE_BYTES) && !ret ? WIRE_BYTES : 0;
	count = aggregate_add(&key, dur_ns, bytes ? c->arg0 : 0, &a);
	why = send_reason(k, count, nested, dur_ns, ret, ts->depth ? 0 : ts->after_gap);
	if (!why) {
		aggregated_count(k.source);
		return false;
	}
	if (!c->stack)
		c->stack = stack_take(bpf_get_current_task_btf(), ts, c, ts->depth, PT_REGS_SP(ctx),
			PT_REGS_FP(ctx));
	r = record_begin(&events, sizeof(*r), k.source);
	if (!r)
		return true;
	r->h.op = k.op;
	if (record_all && why == 1 && !(k.flags & COOKIE_ALWAYS) && !ret && count)
		r->h.weight = sampling_rate;
	r->h.flags = (why - 1) | (nested ? WIRE_NESTED : 0) | WIRE_TARGET | bytes |
		     (count ? 0 : WIRE_UNCOUNTED);
	r->h.start_ns = c->start_ns;
	r->h.dur_ns = dur_ns;
	r->h.pid = id >> 32;
	r->h.tid = (__u32)id;
	r->h.cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(r->h.comm, sizeof(r->h.comm));
	r->arg0 = c->arg0;
	r->arg1 = c->arg1;
	r->stream = c->stream;
	r->stack = c->stack;
	r->ret = ret;
	r->device = ts->device;
	if (k.flags & COOKIE_ARG1_OUT) {
		__u64 out = 0;

		if (!ret)
			bpf_probe_read_user(&out, sizeof(out), (void *)c->arg1);
		r->arg1 = out;
	}
	aggregate_sent(a);
	record_send(&events, &r->h);
	if (is_launch(k))
		launched_note(c->arg0, 0);
	return true;
}

static __always_inline void send_time_add(struct task_struct *task, __u64 since)
{
	struct wire_use *use = use_of(task->tgid);

	if (use)
		__sync_fetch_and_add(&use->send_ns, bpf_ktime_get_ns() - since);
}

static __noinline int call_end(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	union wire_cookie k = {.word = bpf_get_attach_cookie(ctx)};
	struct task_struct *task;
	struct thread_state *ts;
	struct pending_call *c;
	bool nested;
	__u32 top;

	if (!enabled)
		return 0;
	task = bpf_get_current_task_btf();
	ts = thread_get(task);
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
	nested = is_nested(ts, k, top);
	ledger_call_end(ts, c, top, nested, (__s32)PT_REGS_RC(ctx), now);
	ts->depth--;
	if (call_finish(ctx, ts, c, nested, now) && k.source != SOURCE_NCCL &&
		k.flags & COOKIE_GOVERNED)
		send_time_add(task, now);
	if (!ts->depth && (ts->idle_ns || op_kind_is_gpu_wait(k.source, k.op)))
		ts->idle_ns = now;
	if (!ts->depth)
		ledger_call_mark(ts, task, c);
	return 0;
}

NEVER_CALLED(entry_calls);
NEVER_CALLED(return_calls);
NEVER_CALLED(session_calls);

SEC("kprobe")
int call_entry(struct pt_regs *ctx)
{
	NO_PRIVATE_STACK(ctx, entry_calls);
	return call_begin(ctx);
}

SEC("kprobe")
int call_return(struct pt_regs *ctx)
{
	NO_PRIVATE_STACK(ctx, return_calls);
	return call_end(ctx);
}

/* Both in one program, where the kernel has session probes (6.13): half the links, and no return
 * without its entry. */
SEC("kprobe")
int call_session(struct pt_regs *ctx)
{
	NO_PRIVATE_STACK(ctx, session_calls);
	return session_is_return(ctx) ? call_end(ctx) : call_begin(ctx);
}
