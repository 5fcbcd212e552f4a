// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* mark.bpf.c - places in PyTorch, JAX and Python that say what the loop is doing (hook.h): a mark ends a
 * row of the thread's ledger, a collection puts its time on another line. Names of kernels and ranges
 * of NVTX come by the same way. All are seen of threads that are traced already, but for names of
 * kernels, domains and strings, which come before the first call; nobody becomes a target here. */
#include "record/probe/ledger/ledger.bpf.h"
#include "record/probe/mark/hook.h"
#include "record/probe/nvtx/nvtx.bpf.h"
#include "record/probe/stack/stack.bpf.h"

#define OPTIMIZER "Optimizer.step"
#define LOADER    "enumerate(DataLoader)"

/* How often a program here ran for a process: what that costs is a part of the overhead. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} hook_runs SEC(".maps");

static __always_inline void hook_ran(struct task_struct *task)
{
	__u32 pid = task->tgid;
	__u64 *runs = bpf_map_lookup_elem(&hook_runs, &pid), one = 1;

	if (runs)
		__sync_fetch_and_add(runs, 1);
	else
		bpf_map_update_elem(&hook_runs, &pid, &one, BPF_NOEXIST);
}

/* The name is the first argument; on x86-64 the place of the returned object goes before it. */
static __always_inline __u64 name_argument(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return PT_REGS_PARM2(ctx);
#else
	return PT_REGS_PARM1(ctx);
#endif
}

static __always_inline bool begins_with(const char *text, const char *with, __u32 len)
{
	for (__u32 i = 0; i < len; i++)
		if (text[i] != with[i])
			return false;
	return true;
}

/* Which mark the name stands for; -1: none. It is a std::string of either ABI: PyTorch's wheels up to 2.6 have the
 * old one, which is a pointer and no size. The text's address is its first word, and 0 its end, in both. */
static __always_inline int mark_named(struct pt_regs *ctx)
{
	char text[sizeof(LOADER)] = {0};
	__u64 data = 0;

	if (bpf_probe_read_user(&data, sizeof(data), (void *)name_argument(ctx)) < 0 ||
		bpf_probe_read_user_str(text, sizeof(text), (void *)data) < 0)
		return -1;
	if (begins_with(text, OPTIMIZER, sizeof(OPTIMIZER) - 1))
		return MARK_OPTIMIZER;
	return begins_with(text, LOADER, sizeof(LOADER) - 1) ? MARK_LOADER : -1;
}

static __always_inline __u64 mark_stack(
	struct pt_regs *ctx, struct task_struct *task, struct thread_state *ts)
{
	struct pending_call c = {.function = PT_REGS_IP(ctx), .real_return = return_address(ctx)};

	return stack_take(
		task, ts, &c, ts->depth, PT_REGS_SP(ctx) + RETURN_ADDRESS_BYTES, PT_REGS_FP(ctx));
}

static __always_inline void name_hit(struct pt_regs *ctx, struct task_struct *task, __u32 hook)
{
	if (!name_is_wanted(task))
		return;
	if (hook == HOOK_REGISTER)
		name_register(ctx, task);
	else if (hook == HOOK_HANDLE_END)
		name_handle_end(ctx);
	else
		name_handle_begin(ctx, hook == HOOK_ALIAS);
}

NEVER_CALLED(mark_calls);
NEVER_CALLED(handle_tail_calls);

SEC("kprobe")
int mark_hit(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 hook = cookie & 0xff;
	struct thread_state *ts;
	int mark = MARK_BACKWARD;

	NO_PRIVATE_STACK(ctx, mark_calls);
	if (!recording)
		return 0;
	hook_ran(task);
	if (hook >= HOOK_REGISTER && hook <= HOOK_HANDLE_END) {
		name_hit(ctx, task, hook);
		return 0;
	}
	if (hook == HOOK_NVTX_NAME || hook == HOOK_NVTX_NAMED) {
		if (name_is_wanted(task))
			nvtx_hit(ctx, cookie);
		return 0;
	}
	ts = thread_get(task);
	if (!ts)
		return 0;
	if (hook >= HOOK_NVTX)
		return nvtx_hit(ctx, cookie);
	if (hook == HOOK_COLLECT_BEGIN || hook == HOOK_COLLECT_END) {
		if (hook == HOOK_COLLECT_BEGIN)
			ledger_collect_begin(ts);
		else
			ledger_collect_end(ts);
		return 0;
	}
	if (hook == HOOK_NAMED)
		mark = mark_named(ctx);
	else if (hook == HOOK_EXECUTE)
		mark = ledger_loop_has_room(&ts->ledger) ? MARK_EXECUTE : -1;
	if (mark >= 0)
		ledger_mark(ts, task, mark, mark_stack(ctx, task, ts));
	return 0;
}

/* handle_session - a call that makes a handle, with its return where that is wanted. */
SEC("kprobe")
int handle_session(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 hook = bpf_get_attach_cookie(ctx) & 0xff;

	NO_PRIVATE_STACK(ctx, handle_tail_calls);
	hook_ran(task);
	if (session_is_return(ctx)) {
		name_handle_end(ctx);
		return 0;
	}
	return !recording || !name_is_wanted(task) || !name_handle_begin(ctx, hook == HOOK_ALIAS);
}
