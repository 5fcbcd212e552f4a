/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* target.bpf.h - which processes are traced, and what is remembered of each of their threads.
 *
 * `targets` holds traced processes. Every thread of a traced process has a thread_state in task
 * storage: made when the process is admitted (by an iterator), when a thread is cloned, or at its
 * first call; freed by the kernel with the thread. So "has a thread_state" means "is traced", and
 * the scheduler probe can leave after one pointer test for everybody else. */
#pragma once

#include "record/probe/filter.h"
#include "record/probe/books.bpf.h"
#include "record/probe/call/arguments.bpf.h"
#include "wire/ledger.h"

/* The ledger of one thread: what it spent its time on since its last row.
 *
 * Invariant: the sum of ns[] is booked_ns - row_ns. */

#define LEDGER_SLOTS 32 /* a power of two above LEDGER_LINES, so that an index can be masked */

_Static_assert(LEDGER_LINES <= LEDGER_SLOTS, "lines");

#define STAY_SUMS 4 /* a power of two: threads, and lines, that ended stays of a thread lately */

struct stay_sum { /* see stay_sum.bpf.h */
	__u64 ns, stack;
	__u32 count, line;
	__u32 by_pid, by_tid; /* by_tid 0: never used */
	char by_comm[WIRE_COMM_LEN];
};

struct stay_sums {
	__u64 since_ns;    /* 0: nothing is in them */
	__u32 walk_wanted; /* one of them has no stack */
	__u32 pad;
	struct stay_sum sums[STAY_SUMS];
};

struct ledger {
	__u64 booked_ns;     /* every moment before this one is on a line; 0: not begun */
	__u64 row_ns;        /* where the present row began */
	__u64 aside_ns;      /* see ledger_enter() */
	__u64 limited_until; /* buckets of marks: see bucket_take() */
	__u64 loop_until;
	__u64 ns[LEDGER_SLOTS];
	__u64 copy_bytes;
	__u32 launches, waits, copies, allocs, stays;
	__u32 launch_switches; /* when the row began */
	__u32 is_busy;         /* a program of this thread is at it */
	__u32 is_over;         /* the thread has sent its last row */
	__u32 is_collecting;   /* Python's garbage collector is at work */
	__u32 began_off;       /* launches were not probed when the row began */
};

#define PLACES     8 /* a power of two: where the thread blocked lately */
#define CALL_DEPTH 8 /* a power of two; runtime -> driver -> callback -> runtime is 4 */

struct pending_call {
	__u64 cookie;
	__u64 start_ns;
	__u64 sp; /* at entry: tells calls that were left without returning */
	__u64 arg0, arg1, stream;
	__u64 function;    /* its own address */
	__u64 real_return; /* where it returns to; the kernel puts its trampoline there */
	__u64 stack;       /* hash of its stack; 0: not taken */
};

/* The arguments of the NCCL call under way; such calls do not nest but for one calling another that
 * repeats it. */
struct pending_nccl {
	__u64 comm, out, count, stream, hash;
	__s64 seq;
	__s32 datatype, reduce_op, root, peer;
	__s32 rank, nranks;
};

struct nccl_comm { /* of NCCL: see nccl/nccl.bpf.h */
	__u64 hash;
	__u64 seq;      /* collectives so far */
	__u64 own;      /* of these, seen */
	__u64 children; /* communicators made from it so far */
	__s32 rank, nranks;
	__s32 device;
	__u32 is_named;    /* hash is what it will stay */
	__u32 is_late;     /* its beginning was not seen */
	__u32 is_numbered; /* seq is by the library's counter */
	__u32 misses;      /* calls at which that was another than expected */
	__u32 group;       /* nccl_groups at its last call */
};

struct thread_state {
	__u32 depth;     /* calls under way */
	__u32 off_flags; /* WIRE_PREEMPTED, WIRE_UNINTERRUPTIBLE of the present stay off the CPU */
	__u64 off_ns;    /* when it left the CPU; 0: never seen leaving */
	__u64 wake_ns;   /* since when it is runnable; 0: still blocked */
	__u32 by_pid, by_tid;       /* who took the CPU when the thread left it */
	__u32 waker_pid, waker_tid; /* who woke it from the present or last stay */
	__u32 waker;                /* enum wire_waker */
	char waker_comm[WIRE_COMM_LEN];
	char by_comm[WIRE_COMM_LEN];
	__u32 stay_line;  /* of the ledger: what the thread is blocked for, outside of calls */
	__u32 stay_file;  /* the descriptor that decides it; WAIT_NO_FILE: it is known */
	__u64 stay_stack; /* where it blocked; 0: not taken */
	__u64 walk_until; /* bucket of walks at such places: see bucket_take() */
	__u32 stay_place; /* where it blocked: see sched.bpf.c */
	__u32 places[PLACES];
	__s32 device;      /* of cudaSetDevice; 0 until it is called, as in CUDA */
	__u32 fd;          /* of the system call under way that may be a socket's */
	__u32 syscall;     /* its number */
	__u32 nccl_depth;  /* groups of NCCL that are open */
	__u64 syscall_ns;  /* when it was entered; 0: none */
	__u64 blocked_ns;  /* time blocked since the thread is known */
	__u64 blocked_was; /* blocked_ns at that entry */
	__u64 polled_ns; /* the last stay in poll() that somebody else ended; 0: it was received */
	__u64 idle_ns;   /* when the GPU was last known to be idle; 0: it has work since */
	__u32 after_gap; /* WIRE_AFTER_GAP: the outermost call under way came after a pause */
	__u32 nccl_groups; /* beginnings and ends of outermost groups so far */
	__u64 reclaim_ns;  /* since when the thread frees memory itself */
	__u64 compact_ns;
	__u64 python_thread;  /* its PyThreadState, as found by its last walk; 0: not known */
	__u32 samples_passed; /* on-CPU samples since the last that was sent */
	__u32 launch_gap;     /* launches until one is counted by its function: wire/record.h */
	struct ledger ledger;
	struct stay_sums stays;
	struct pending_nccl nccl;
	struct nccl_comm comm; /* that is being entered: not on the stack, which is small */
	struct arguments
		arguments; /* of the call that is being begun: not on the stack, which is small */
	struct pending_call calls[CALL_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

struct { /* by pid: the user whose share it is of */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

/* How many of them each user has, who is found by the last bits of the number: one user but root has half of the places, so
 * that nobody's flood of processes hides those of others. The agent counts here, too, what it enters and removes. */
__u32 user_targets[TARGET_USERS];

/* call_at - the pending call at depth @i. */
static __always_inline struct pending_call *call_at(struct thread_state *ts, __u32 i)
{
	return &ts->calls[BOUNDED(i, CALL_DEPTH - 1)];
}

static __always_inline __u32 call_source(const struct pending_call *c)
{
	return ((union wire_cookie){.word = c->cookie}).source;
}

static __always_inline bool target_is(__u32 pid)
{
	return bpf_map_lookup_elem(&targets, &pid) != NULL;
}

/* target_enter - process @pid of the current user is traced from now on: 1; 0: it is already; -1: there is no room. */
static __always_inline int target_enter(__u32 pid)
{
	__u32 uid = (__u32)bpf_get_current_uid_gid();
	__u32 *used = &user_targets[BOUNDED(uid, TARGET_USERS - 1)];

	if (uid && *used >= user_targets_max)
		return target_is(pid) ? 0 : -1;
	if (bpf_map_update_elem(&targets, &pid, &uid, BPF_NOEXIST) < 0)
		return target_is(pid) ? 0 : -1;
	__sync_fetch_and_add(used, 1);
	return 1;
}

static __always_inline void target_leave(__u32 pid)
{
	__u32 *found = bpf_map_lookup_elem(&targets, &pid), uid;

	if (!found)
		return;
	uid = *found;
	if (bpf_map_delete_elem(&targets, &pid) == 0)
		__sync_fetch_and_add(&user_targets[BOUNDED(uid, TARGET_USERS - 1)], -1);
}

/* process_record_send - an exec, exit, fork or admission, on the ring that calls cannot fill. */
static __always_inline void process_record_send(
	struct task_struct *task, __u16 op, __u32 peer_pid, __s32 exit_code)
{
	struct wire_process *p;

	hit_count(SOURCE_HOST);
	p = record_begin(&life, sizeof(*p), SOURCE_HOST);
	if (!p)
		return;
	p->h.op = op;
	p->h.flags = WIRE_TARGET;
	p->h.start_ns = bpf_ktime_get_ns();
	p->h.dur_ns = 0;
	p->h.pid = task->tgid;
	p->h.tid = task->pid;
	p->h.cgroup_id = bpf_get_current_cgroup_id();
	bpf_probe_read_kernel(p->h.comm, sizeof(p->h.comm), task->comm);
	p->peer_pid = peer_pid;
	p->peer_tid = 0;
	p->exit_code = exit_code;
	p->uid = (__u32)bpf_get_current_uid_gid();
	p->born_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	/* A program that has just begun may be gone in a moment, and what is known of it with it.
	 */
	if (op == HOST_PROCESS_EXEC || op == HOST_TARGET_FOUND)
		record_send_now(&p->h);
	else
		record_send(&life, &p->h);
}

/* The inode of the file that @task runs; 0 for a kernel thread. */
static __always_inline __u64 program_of(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct file *file = mm ? BPF_CORE_READ(mm, exe_file) : NULL;

	return file ? (__u64)BPF_CORE_READ(file, f_inode) : 0;
}

#define UID_NOBODY 65534 /* as base/confine.h has it: helper processes without rights */

/* Is it one of ours: the agent, its helper processes, another ingero of the same user? With other users' ingeros whatever
 * they preload is theirs. */
static __always_inline bool is_own_program(struct task_struct *task)
{
	__u32 uid;

	if ((__u32)task->tgid == agent_pid)
		return true;
	if (!agent_program || program_of(task) != agent_program)
		return false;
	uid = (__u32)bpf_get_current_uid_gid();
	return uid == agent_uid || uid == UID_NOBODY;
}

/* target_admit - is the current process traced? One that is not yet, but that the filter wants, is
 * entered. @source is the source that takes the loss when the table is full. */
static __always_inline bool target_admit(struct task_struct *task, __u32 source)
{
	__u32 pid = task->tgid;
	int entered;

	if (target_is(pid))
		return true;
	if (filter_mode == FILTER_PIDS || is_own_program(task))
		return false;
	if (filter_mode == FILTER_USER && (__u32)bpf_get_current_uid_gid() != filter_uid)
		return false;
	entered = target_enter(pid);
	if (entered < 0) {
		hit_lose(source, LOSS_TARGET_FULL);
		return false;
	}
	if (entered)
		process_record_send(task, HOST_TARGET_FOUND, 0, 0);
	return true;
}

static __always_inline struct thread_state *thread_get(struct task_struct *task)
{
	return bpf_task_storage_get(&threads, task, NULL, 0);
}

static __always_inline struct thread_state *thread_make(struct task_struct *task)
{
	return bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}
