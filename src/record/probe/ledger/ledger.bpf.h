/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* ledger.bpf.h - books a thread's time to the lines of wire/ledger.h and sends rows at its marks.
 *
 * At every change of what the thread does (a call begins or ends, it leaves the CPU or comes back)
 * the time since the last change goes to the line that held, so that the lines add up to the
 * nanosecond and rows follow each other without a gap. A row that cannot be sent, because its mark
 * comes too soon or the ring is full, is no loss: its sums stay and go out with the next one. It is
 * a hit only once it is sent; what is lost is counted where there is no next one.
 *
 * All of a thread's bookings are by its own programs or by the scheduler's, on the thread's CPU.
 * The programs of its calls can be preempted anywhere; see ledger_enter(). */
#pragma once

#include "record/probe/ledger/stay_sum.bpf.h"
#include "record/probe/ledger/wait.bpf.h"
#include "record/probe/target.bpf.h"
#include "wire/op_kind.h"

const volatile __u64 stay_limit_ns = 1000000; /* stays off the CPU from this on end a row */
const volatile __u64 tick_ns = 100000000;     /* a row of this length ends at the next event */

#define READ_NS 100000 /* a copy that returns sooner had nothing to wait for */

/* A mark every so many ns on average, and so many at once: of a thread's ordinary marks, of its
 * training loop's, of all threads together. */
#define LIMITED_EVERY_NS 4000000
#define LIMITED_BURST    100
#define LOOP_EVERY_NS    500000
#define LOOP_BURST       200
#define ALL_EVERY_NS     50000
#define ALL_BURST        2000

__u64 ledger_rows_until; /* the bucket of all threads */

/* What a stay was, for the row that it ends. */
struct ledger_stay {
	__u64 ns, wait_ns;
	__u32 line;
};

/* bucket_take - a place for one more, or false. *@until is the time up to which places are taken;
 * it runs behind the clock by @burst places at most. */
static __always_inline bool bucket_take(__u64 *until, __u64 now, __u64 every_ns, __u64 burst)
{
	__u64 old = *(volatile __u64 *)until, from = old;

	if (from + every_ns * burst < now)
		from = now - every_ns * burst;
	if (from + every_ns > now)
		return false;
	return __sync_val_compare_and_swap(until, old, from + every_ns) == old;
}

/* ledger_enter - false: this is the scheduler, and has come between a program of the same thread
 * that is at its ledger. Then it books nothing but the stay that follows, as time set aside. (Or
 * tracing is ending.) */
static __always_inline bool ledger_enter(struct ledger *l)
{
	return __sync_val_compare_and_swap(&l->is_busy, 0, 1) == 0;
}

static __always_inline void ledger_leave(struct ledger *l)
{
	*(volatile __u32 *)&l->is_busy = 0;
}

static __always_inline __u32 ledger_call_line(const struct pending_call *c)
{
	union wire_cookie k = {.word = c->cookie};

	return op_kind_line(k.source, k.op);
}

/* ledger_line_now - the line that holds while the thread is on a CPU: that of its outermost call. */
static __always_inline __u32 ledger_line_now(const struct thread_state *ts)
{
	if (ts->depth)
		return ledger_call_line(&ts->calls[0]);
	return ts->ledger.is_collecting ? LEDGER_COLLECT : LEDGER_RUN;
}

static __always_inline __u64 *ledger_slot(struct ledger *l, __u32 line)
{
	return &l->ns[BOUNDED(line, LEDGER_SLOTS - 1)];
}

static __always_inline void ledger_row_begin(struct ledger *l)
{
	l->row_ns = l->booked_ns;
	l->launch_switches = launch_switches;
	l->began_off = !launches_enabled;
}

/* Nothing is booked after the end of recording, however long its last rows take. */
static __always_inline __u64 ledger_clock(__u64 now)
{
	return stopped_ns && now > stopped_ns ? stopped_ns : now;
}

/* The time up to @now that is not booked yet, which from now on it is; 0 where a later moment is
 * booked already, because the program was preempted after it had read the clock. */
static __always_inline __u64 ledger_take_time(struct ledger *l, __u64 now)
{
	__u64 from = l->booked_ns;

	if (from && now <= from)
		return 0;
	l->booked_ns = now;
	if (from)
		return now - from;
	ledger_row_begin(l);
	return 0;
}

/* Between ledger_enter() and ledger_leave(). */
static __always_inline void ledger_book_line(struct ledger *l, __u32 line, __u64 now)
{
	__u64 ns = ledger_take_time(l, ledger_clock(now)), aside = 0;

	if (l->aside_ns) {
		aside = __sync_lock_test_and_set(&l->aside_ns, 0);
		if (aside > ns) {
			__sync_fetch_and_add(&l->aside_ns, aside - ns);
			aside = ns;
		}
		*ledger_slot(l, line == LEDGER_GPU_WAIT ? LEDGER_CPU_WAIT_GPU : LEDGER_CPU_WAIT) +=
			aside;
	}
	*ledger_slot(l, line) += ns - aside;
}

/* A ledger begins while there is recording, and ends with a row: see ledger_end(). */
static __always_inline bool ledger_is_kept(const struct ledger *l)
{
	return (l->booked_ns || recording) && !l->is_over;
}

/* ledger_book - the thread, which is the current one, was on @line until @now. */
static __always_inline void ledger_book(struct thread_state *ts, __u32 line, __u64 now)
{
	struct ledger *l = &ts->ledger;

	if (!ledger_is_kept(l) || !ledger_enter(l))
		return;
	ledger_book_line(l, line, now);
	ledger_leave(l);
}

static __always_inline void ledger_fill(struct wire_ledger *r, struct ledger *l)
{
#pragma unroll
	for (int i = 0; i < LEDGER_LINES; i++) {
		r->ns[i] = l->ns[i];
		l->ns[i] = 0;
	}
	r->copy_bytes = l->copy_bytes;
	r->launches = l->launches;
	r->waits = l->waits;
	r->copies = l->copies;
	r->allocs = l->allocs;
	r->stays = l->stays;
	r->launches_off =
		l->began_off || !launches_enabled || l->launch_switches != launch_switches;
	l->copy_bytes = 0;
	l->launches = l->waits = l->copies = l->allocs = l->stays = 0;
}

static __always_inline void ledger_fill_stay(
	struct wire_ledger *r, const struct thread_state *ts, const struct ledger_stay *stay)
{
	r->stay_line = stay ? stay->line : 0;
	r->stay_ns = stay ? stay->ns : 0;
	r->stay_wait_ns = stay ? stay->wait_ns : 0;
	r->waker = stay ? ts->waker : WAKER_NOBODY;
	r->waker_pid = stay ? ts->waker_pid : 0;
	r->waker_tid = stay ? ts->waker_tid : 0;
	if (stay)
		__builtin_memcpy(r->waker_comm, ts->waker_comm, sizeof(r->waker_comm));
	else
		__builtin_memset(r->waker_comm, 0, sizeof(r->waker_comm));
}

/* Send the row up to the moment booked last and begin the next one. Between ledger_enter() and
 * ledger_leave(). @is_last: there is no next one, so that no room is a loss. */
static __always_inline void ledger_row_send(struct thread_state *ts, struct task_struct *task,
	__u32 mark, __u64 stack, const struct ledger_stay *stay, bool is_last)
{
	struct ledger *l = &ts->ledger;
	struct wire_ledger *r;

	if (!l->booked_ns)
		return;
	r = record_reserve(&events, sizeof(*r), SOURCE_HOST);
	if (!r) {
		if (is_last)
			hit_lose(SOURCE_HOST, LOSS_RING_FULL);
		return;
	}
	hit_count(SOURCE_HOST);
	r->h.op = HOST_LEDGER;
	r->h.flags = WIRE_TARGET;
	r->h.start_ns = l->row_ns;
	r->h.dur_ns = l->booked_ns - l->row_ns;
	r->h.pid = task->tgid;
	r->h.tid = task->pid;
	r->h.cgroup_id = 0;
	bpf_probe_read_kernel(r->h.comm, sizeof(r->h.comm), task->comm);
	r->mark = mark;
	r->stack = stack;
	ledger_fill(r, l);
	ledger_fill_stay(r, ts, stay);
	ledger_row_begin(l);
	record_send(&events, &r->h);
}

/* Whether a mark of the training loop may find room: of those that come too fast not even the stack is wanted. */
static __always_inline bool ledger_loop_has_room(const struct ledger *l)
{
	return l->loop_until + LOOP_EVERY_NS <= bpf_ktime_get_ns();
}

/* May a row be sent at @mark? Those of the training loop pass the limit for all threads: they are
 * what everything else is measured by. */
static __always_inline bool ledger_has_room(struct ledger *l, __u32 mark)
{
	__u64 now = l->booked_ns;

	if (mark == MARK_OPTIMIZER || mark == MARK_BACKWARD || mark == MARK_LOADER ||
		mark == MARK_EXECUTE)
		return bucket_take(&l->loop_until, now, LOOP_EVERY_NS, LOOP_BURST);
	if (mark == MARK_TICK)
		return bucket_take(&ledger_rows_until, now, ALL_EVERY_NS, ALL_BURST);
	return bucket_take(&l->limited_until, now, LIMITED_EVERY_NS, LIMITED_BURST) &&
	       bucket_take(&ledger_rows_until, now, ALL_EVERY_NS, ALL_BURST);
}

static __always_inline bool ledger_is_tick(const struct ledger *l)
{
	return l->booked_ns - l->row_ns >= tick_ns;
}

/* ledger_mark - the current thread is at @mark: a row ends here, if it may. @stack: of the mark. */
static __always_inline void ledger_mark(
	struct thread_state *ts, struct task_struct *task, __u32 mark, __u64 stack)
{
	struct ledger *l = &ts->ledger;
	__u64 now = bpf_ktime_get_ns();

	if (!ledger_is_kept(l) || !ledger_enter(l))
		return;
	ledger_book_line(l, ledger_line_now(ts), now);
	if (ledger_has_room(l, mark))
		ledger_row_send(ts, task, mark, stack, NULL, false);
	ledger_leave(l);
}

/* ledger_collect_begin, _end - the current thread begins or ends a run of Python's garbage
 * collector. */
static __always_inline void ledger_collect(struct thread_state *ts, bool begin)
{
	ledger_book(ts, ledger_line_now(ts), bpf_ktime_get_ns());
	ts->ledger.is_collecting = begin;
}

static __always_inline void ledger_collect_begin(struct thread_state *ts)
{
	ledger_collect(ts, true);
}

static __always_inline void ledger_collect_end(struct thread_state *ts)
{
	ledger_collect(ts, false);
}

/* ---- calls ---- */

/* ledger_call_end - the outermost call @c, if it is one (@depth 0), ended at @now; before it is
 * taken off the stack of pending calls. Counts it unless it is @nested. */
static __always_inline void ledger_call_end(struct thread_state *ts, const struct pending_call *c,
	__u32 depth, bool nested, __s32 ret, __u64 now)
{
	union wire_cookie k = {.word = c->cookie};
	struct ledger *l = &ts->ledger;

	if (!ledger_is_kept(l) || !ledger_enter(l))
		return;
	if (!depth)
		ledger_book_line(l, ledger_call_line(c), now);
	if (!nested) {
		switch (op_kind_line(k.source, k.op)) {
		case LEDGER_LAUNCH: l->launches++; break;
		case LEDGER_GPU_WAIT: l->waits++; break;
		case LEDGER_COPY:
			l->copies++;
			if ((k.flags & COOKIE_BYTES) && !ret)
				l->copy_bytes += c->arg0;
			break;
		case LEDGER_ALLOC: l->allocs++; break;
		default: break;
		}
	}
	ledger_leave(l);
}

/* ledger_call_mark - after an outermost call: the row it ends. A function of its own, for the stack: see
 * docs/kernels.md. */
static __noinline void ledger_call_mark(
	struct thread_state *ts, struct task_struct *task, const struct pending_call *c)
{
	union wire_cookie k = {.word = c->cookie};
	struct ledger *l = &ts->ledger;
	__u32 mark = MARK_TICK;

	if (op_kind_is_gpu_wait(k.source, k.op))
		mark = MARK_WAIT;
	else if (op_kind_is_graph_launch(k.source, k.op))
		mark = MARK_GRAPH;
	else if (k.source == SOURCE_NCCL && k.kind == WIRE_NCCL_COLLECTIVE)
		mark = MARK_COLLECTIVE;
	else if (op_kind_is_read(k.source, k.op, c->arg1) && l->booked_ns >= c->start_ns + READ_NS)
		mark = MARK_READ;
	else if (!ledger_is_tick(l))
		return;
	if (!ledger_is_kept(l) || !ledger_enter(l))
		return;
	if (ledger_has_room(l, mark))
		ledger_row_send(ts, task, mark, c->stack, NULL, false);
	ledger_leave(l);
}

/* ---- stays off the CPU ---- */

/* The part of the stay up to @now that is not booked yet: blocked until it was woken, then runnable.
 * Blocked inside a call is the call's time, unless it was stopped there or waited for a disk. */
static __always_inline void ledger_book_stay(
	struct thread_state *ts, struct task_struct *task, __u64 now, struct ledger_stay *ret)
{
	struct ledger *l = &ts->ledger;
	__u32 line = ledger_line_now(ts);
	__u32 runnable = line == LEDGER_GPU_WAIT ? LEDGER_CPU_WAIT_GPU : LEDGER_CPU_WAIT;
	__u64 wake_ns = ts->wake_ns, wait_ns = 0, ns;

	now = ledger_clock(now);
	ns = ledger_take_time(l, now);
	if (wake_ns && wake_ns < now)
		wait_ns = now - wake_ns;
	if (wait_ns > ns)
		wait_ns = ns;
	if (ts->off_flags & WIRE_PREEMPTED)
		line = runnable;
	else if (!ts->depth || ts->stay_line == LEDGER_STOPPED || ts->stay_line == LEDGER_DISK)
		line = wait_line(ts, task);
	*ledger_slot(l, runnable) += wait_ns;
	*ledger_slot(l, line) += ns - wait_ns;
	l->stays++;
	*ret = (struct ledger_stay){.ns = ns, .wait_ns = wait_ns, .line = line};
}

/* ledger_off - the thread leaves the CPU. */
static __always_inline void ledger_off(struct thread_state *ts, __u64 now)
{
	ledger_book(ts, ledger_line_now(ts), now);
}

/* ledger_begin - the thread gets a CPU for the first time since it is followed. */
static __always_inline void ledger_begin(struct thread_state *ts, __u64 now)
{
	if (!ts->ledger.booked_ns)
		ledger_book(ts, LEDGER_RUN, now);
}

/* How long it was in poll() until there was something of another process's: what is received next. */
static __always_inline void ledger_note_poll(
	struct thread_state *ts, struct task_struct *task, const struct ledger_stay *stay)
{
	bool is_own = ts->waker == WAKER_TIMER ||
		      (ts->waker == WAKER_TASK && ts->waker_pid == (__u32)task->tgid);

	if (stay->line == LEDGER_POLL)
		ts->polled_ns = is_own ? 0 : stay->ns - stay->wait_ns;
}

/* ledger_on - @task comes back to the CPU; ts->off_ns is when it left. */
static __always_inline void ledger_on(struct thread_state *ts, struct task_struct *task, __u64 now)
{
	struct ledger *l = &ts->ledger;
	struct ledger_stay stay;

	if (!ledger_is_kept(l))
		return;
	if (!ledger_enter(l)) {
		if (now > ts->off_ns)
			__sync_fetch_and_add(&l->aside_ns, now - ts->off_ns);
		return;
	}
	ledger_book_stay(ts, task, now, &stay);
	ledger_note_poll(ts, task, &stay);
	if (stay.ns >= stay_limit_ns && ledger_has_room(l, MARK_STAY)) {
		ledger_row_send(ts, task, MARK_STAY, ts->stay_stack, &stay, false);
	} else {
		stay_sum_add(ts, stay.line, stay.ns - stay.wait_ns, now);
		if (ledger_is_tick(l) && ledger_has_room(l, MARK_TICK))
			ledger_row_send(ts, task, MARK_TICK, 0, NULL, false);
	}
	if (stay_sums_are_due(ts, now))
		stay_sums_end(ts, task, now, false);
	ledger_leave(l);
}

/* ---- the end ---- */

/* ledger_end - the last row of @task, which ends (MARK_EXIT) or is no longer followed (MARK_STOP;
 * then it is another one's program, when none of its own run any more). */
static __always_inline void ledger_end(
	struct thread_state *ts, struct task_struct *task, __u32 mark)
{
	struct ledger *l = &ts->ledger;
	__u64 now = bpf_ktime_get_ns();
	struct ledger_stay stay;

	if (l->is_over || !l->booked_ns || !ledger_enter(l))
		return;
	if (mark == MARK_STOP && ts->off_ns)
		ledger_book_stay(ts, task, now, &stay);
	else
		ledger_book_line(l, ledger_line_now(ts), now);
	if (ts->stays.since_ns)
		stay_sums_end(ts, task, l->booked_ns, true);
	if (l->booked_ns > l->row_ns)
		ledger_row_send(ts, task, mark, 0, NULL, true);
	l->is_over = 1;
	ledger_leave(l);
}
