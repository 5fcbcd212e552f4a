// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* socket.bpf.c - sends and receives of traced processes on TCP and UDP sockets, and segments that
 * TCP had to send again.
 *
 * The kernel reports every send and receive in one place, whatever system call it came by
 * (sock_send_length, sock_recv_length; 6.3). The system calls are watched only for the time of
 * entry and the descriptor. Time in which the thread was blocked is waiting, the rest transferring. Who waits in poll()
 * receives at once: that wait is the next receive's, and it is recorded for whom it waited for.
 * Kernels without that place report the four calls that are for sockets alone, by their exit.
 *
 * A retransmit happens in an interrupt, in the name of whoever runs: the socket's owner is the
 * traced process that last sent or received on it. */
#include "record/probe/ledger/syscall.bpf.h"
#include "record/probe/target.bpf.h"

#define AF_INET     2
#define AF_INET6    10
#define UNKNOWN_FD  (~0U)
#define EAGAIN_CODE 11

const volatile __u64 net_limit_ns = 1000000; /* shorter ones only count, unless they failed */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	__u8 s6_addr[16]; /* not the kernel's union, but at its start */
} __attribute__((packed));

struct sock_common {
	__u32 skc_daddr;
	__u32 skc_rcv_saddr;
	__u16 skc_dport; /* network order */
	__u16 skc_num;   /* host order */
	__u16 skc_family;
	__u8 skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
};

#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64); /* struct sock * */
	__type(value, __u32);
} socket_owners SEC(".maps");

/* The system calls that read and write sockets. */
static __always_inline bool moves_data(long number)
{
	switch (number) {
	case CALL_READ:
	case CALL_WRITE:
	case CALL_READV:
	case CALL_WRITEV:
	case CALL_SENDTO:
	case CALL_RECVFROM:
	case CALL_SENDMSG:
	case CALL_RECVMSG:
	case CALL_RECVMMSG:
	case CALL_SENDMMSG: return true;
	}
	return false;
}

/* Runs for every system call of every process: untraced ones leave after one pointer test. Raw
 * tracepoints, because those of single calls need the tracing file system and 0.1 s each to remove.
 */
SEC("raw_tp/sys_enter")
int syscall_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *ts;
	__u64 fd = UNKNOWN_FD;

	if (!task->bpf_storage || !recording || !moves_data(ctx->args[1]))
		return 0;
	ts = thread_get(task);
	if (!ts)
		return 0;
#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_kernel(&fd, sizeof(fd), &((struct pt_regs *)ctx->args[0])->rdi);
#else
	bpf_probe_read_kernel(&fd, sizeof(fd), &((struct user_pt_regs *)ctx->args[0])->regs[0]);
#endif
	ts->syscall = (__u32)ctx->args[1];
	ts->syscall_ns = bpf_ktime_get_ns();
	ts->blocked_was = ts->blocked_ns;
	ts->fd = (__u32)fd;
	return 0;
}

/* The other end of @sk; port 0: it has none. */
static __always_inline void peer_read(struct sock *sk, struct wire_net *r)
{
	r->family = sk->__sk_common.skc_family;
	r->port = __builtin_bswap16(sk->__sk_common.skc_dport);
	if (r->family == AF_INET6)
		bpf_probe_read_kernel(r->addr, 16, &sk->__sk_common.skc_v6_daddr);
	else
		bpf_probe_read_kernel(r->addr, 4, &sk->__sk_common.skc_daddr);
}

static __always_inline void transfer_end(__u16 op, __s64 bytes, struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wire_agg_key key = {.source = SOURCE_NET, .op = op};
	__u64 now = bpf_ktime_get_ns(), start, wait_ns = 0, polled_ns = 0;
	struct thread_state *ts;
	struct wire_net *r;
	struct wire_agg *a;

	if (!task->bpf_storage || !recording)
		return;
	ts = thread_get(task);
	if (!ts)
		return;
	key.pid = task->tgid;
	start = ts->syscall_ns ? ts->syscall_ns : now;
	if (ts->syscall_ns)
		wait_ns = ts->blocked_ns - ts->blocked_was;
	if (op == NET_RECV && bytes >= 0) { /* what poll() said there is */
		polled_ns = ts->polled_ns;
		ts->polled_ns = 0;
	}
	ts->syscall_ns = now; /* sendmmsg: the next message starts here */
	ts->blocked_was = ts->blocked_ns;
	hit_count(SOURCE_NET);
	aggregate_add(&key, now - start, bytes > 0 ? bytes : 0, &a);
	if (a && !record_all && now - start < net_limit_ns && polled_ns < net_limit_ns &&
		(bytes >= 0 || bytes == -EAGAIN_CODE)) {
		aggregated_count(SOURCE_NET);
		return;
	}
	r = record_begin(&events, sizeof(*r), SOURCE_NET);
	if (!r)
		return;
	r->h.op = op;
	r->h.flags = WIRE_TARGET | (a ? 0 : WIRE_UNCOUNTED);
	r->h.start_ns = start;
	r->h.dur_ns = now - start;
	r->h.pid = task->tgid;
	r->h.tid = task->pid;
	r->h.cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(r->h.comm, sizeof(r->h.comm));
	r->wait_ns = wait_ns + polled_ns;
	r->bytes = bytes;
	r->fd = start == now ? UNKNOWN_FD : ts->fd;
	r->family = r->port = 0;
	__builtin_memset(r->addr, 0, sizeof(r->addr));
	if (sk)
		peer_read(sk, r);
	aggregate_sent(a);
	record_send(&events, &r->h);
}

static __always_inline void note_owner(void *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 key = (__u64)sk;
	__u32 pid;

	if (!task->bpf_storage || !thread_get(task))
		return;
	pid = task->tgid;
	bpf_map_update_elem(&socket_owners, &key, &pid, BPF_ANY);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(socket_send, struct sock *sk, int ret)
{
	__u16 family = sk->__sk_common.skc_family;

	if (family != AF_INET && family != AF_INET6)
		return 0;
	note_owner(sk);
	transfer_end(NET_SEND, ret, sk);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(socket_recv, struct sock *sk, int ret)
{
	__u16 family = sk->__sk_common.skc_family;

	if (family != AF_INET && family != AF_INET6)
		return 0;
	note_owner(sk);
	transfer_end(NET_RECV, ret, sk);
	return 0;
}

/* Kernels before 6.3: the four calls that are for sockets alone, by their exit. */
SEC("raw_tp/sys_exit")
int syscall_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *ts;

	if (!task->bpf_storage || !recording)
		return 0;
	ts = thread_get(task);
	if (!ts || !ts->syscall_ns)
		return 0;
	switch (ts->syscall) {
	case CALL_SENDTO:
	case CALL_SENDMSG: transfer_end(NET_SEND, (__s64)ctx->args[1], NULL); break;
	case CALL_RECVFROM:
	case CALL_RECVMSG: transfer_end(NET_RECV, (__s64)ctx->args[1], NULL); break;
	}
	ts->syscall_ns = 0;
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(tcp_retransmit, const struct sock *sk)
{
	__u64 key = (__u64)sk;
	__u32 *owner = bpf_map_lookup_elem(&socket_owners, &key);
	struct wire_agg_key agg = {.source = SOURCE_TCP, .op = TCP_RETRANSMIT};
	struct wire_tcp *r;
	struct wire_agg *a;

	if (!owner || !recording)
		return 0;
	agg.pid = *owner;
	hit_count(SOURCE_TCP);
	aggregate_add(&agg, 0, 0, &a);
	r = record_begin(&events, sizeof(*r), SOURCE_TCP);
	if (!r)
		return 0;
	r->h.op = TCP_RETRANSMIT;
	r->h.flags = WIRE_TARGET | (a ? 0 : WIRE_UNCOUNTED);
	r->h.start_ns = bpf_ktime_get_ns();
	r->h.dur_ns = 0;
	r->h.pid = *owner;
	r->h.tid = *owner;
	r->h.cgroup_id = 0;
	__builtin_memset(r->h.comm, 0, sizeof(r->h.comm)); /* the running task is a bystander */
	__builtin_memset(r->saddr, 0, 32);
	r->family = sk->__sk_common.skc_family;
	if (r->family == AF_INET6) {
		bpf_probe_read_kernel(r->saddr, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(r->daddr, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		bpf_probe_read_kernel(r->saddr, 4, &sk->__sk_common.skc_rcv_saddr);
		bpf_probe_read_kernel(r->daddr, 4, &sk->__sk_common.skc_daddr);
	}
	r->sport = sk->__sk_common.skc_num;
	r->dport = __builtin_bswap16(sk->__sk_common.skc_dport);
	r->state = sk->__sk_common.skc_state;
	aggregate_sent(a);
	record_send(&events, &r->h);
	return 0;
}
