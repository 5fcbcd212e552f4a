/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* record.h - what the BPF programs send to the agent, and the counters both share.
 *
 * Freestanding; both halves compile this one file and the sizes are asserted, so they cannot
 * disagree. A change of layout raises WIRE_VERSION. All times are CLOCK_MONOTONIC nanoseconds and
 * a record's start_ns is the start of what it describes, for every source. */
#pragma once

#include <linux/types.h>

#include "wire/bucket.h"
#include "wire/ids.h"

#define WIRE_VERSION  4
#define WIRE_COMM_LEN 16

/* Flags of a record; stored in events.flags. */
#define WIRE_NESTED          (1 << 0) /* a driver call made inside a runtime call */
#define WIRE_PREEMPTED       (1 << 1) /* sched: the thread could have gone on running */
#define WIRE_UNINTERRUPTIBLE (1 << 2) /* sched: blocked in D state, mostly I/O */
#define WIRE_IN_CALL         (1 << 3) /* sched: the thread was inside a CUDA call */
#define WIRE_SLOW            (1 << 4) /* over the op's limit at the time */
#define WIRE_SAMPLE          (1 << 5) /* an ordinary call kept as an example */
#define WIRE_THREAD          (1 << 6) /* process events: a thread, not a process */
#define WIRE_TARGET          (1 << 7) /* the process is traced (block requests of others are not) */
#define WIRE_UNCOUNTED       (1 << 8) /* not in the kernel's aggregates: the agent counts it */
#define WIRE_BYTES           (1 << 9) /* arg0 is a number of bytes (or sectors) that is summed */
#define WIRE_AFTER_GAP       (1 << 10) /* call of a thread after a long pause of the GPU */

struct wire_header {
	__u16 size; /* of the whole record */
	__u8 version;
	__u8 source;
	__u16 op;
	__u16 flags;
	__u64 start_ns;
	__u64 dur_ns;
	__u32 pid; /* process */
	__u32 tid; /* thread */
	__u64 cgroup_id;
	__u32 cpu;
	__u32 weight; /* how many calls this record stands for */
	char comm[WIRE_COMM_LEN];
};

struct wire_call { /* CUDA, DRIVER, GRAPH */
	struct wire_header h;
	__u64 arg0;
	__u64 arg1;
	__u64 stream;
	__u64 stack; /* hash of its stack (wire/stack.h); 0: none */
	__s32 ret;
	__s32 device;
};

struct wire_sched { /* HOST: one stay off the CPU */
	struct wire_header h;
	__u64 wait_ns; /* part of dur_ns spent runnable, waiting for a CPU */
	__u32 by_pid;  /* process that had the CPU instead */
	__u32 by_tid;
	__u32 waker_pid; /* process whose wake-up ended the sleep, 0 if preempted */
	__u32 pad;
	char by_comm[WIRE_COMM_LEN];
};

struct wire_block { /* IO: one request from submission to completion */
	struct wire_header h;
	__u64 sector;
	__u32 bytes;
	__u32 dev; /* kernel encoding: major << 20 | minor */
	__s32 error;
	__u32 pad;
};

/* NCCL. A value that a call does not have is -1; rank, root and peer 0 are values. */
struct wire_nccl {
	struct wire_header h;
	__u64 comm;      /* the communicator's address in its process */
	__u64 comm_hash; /* the same on all its ranks; 0: not known */
	__s64 seq; /* collectives of the communicator, from 1; the same on all its ranks. Negative: counted by
			  * ourselves, -1, -2, …, of a communicator whose earlier ones were not seen: each rank has
			  * its own numbers; without a hash the bits from WIRE_NCCL_TAG on tell the process's
			  * communicators apart. Of a Send or Recv 0, or -1 likewise */
	__u64 stream;
	__u64 stack;
	__u64 bytes; /* count x size of the type */
	__u64 count;
	__s32 rank, nranks;
	__s32 datatype, reduce_op;
	__s32 root, peer;
	__s32 ret;
	__s32 device;
};

struct wire_net { /* NET: one send or receive on a socket */
	struct wire_header h;
	__u64 wait_ns; /* part of dur_ns spent blocked: waiting, not transferring */
	__s64 bytes;   /* negative: -errno */
	__u32 fd;      /* as the system call named it; ~0: unknown (io_uring) */
	__u16 family;  /* of addr; 0: not known */
	__u16 port;    /* of the other end; 0: it has none, or not known */
	__u8 addr[16]; /* likewise; IPv4: the first four bytes */
};

struct wire_tcp { /* TCP: one segment sent again; the process owns the socket */
	struct wire_header h;
	__u8 saddr[16], daddr[16]; /* IPv4: the first four bytes */
	__u16 sport, dport;
	__u16 family;
	__u16 state;
};

struct wire_process { /* HOST: exec, exit, fork */
	struct wire_header h;
	__u32 peer_pid; /* fork: the child; else the parent */
	__u32 peer_tid;
	__s32 exit_code;
	__u32 uid;
	__u64 born_ns; /* when the process began, since boot */
};

/* Aggregates: one per process, source, op and flags; per CPU; only ever growing while it exists. */
struct wire_agg_key {
	__u32 pid;
	__u8 source;
	__u8 flags; /* WIRE_NESTED or 0; from bit WIRE_AGG_KIND on the kind, 0: none */
	__u16 op;
};

/* Copies whose direction is an argument have an aggregate for each kind: 1 + cudaMemcpyKind, or
 * WIRE_KIND_OTHER for a value that is none. */
#define WIRE_AGG_KIND   4
#define WIRE_KIND_OTHER 6
#define WIRE_KINDS      (WIRE_KIND_OTHER + 1)

struct wire_agg {
	__u64 count;
	__u64 sent; /* of these, sent as records of their own */
	__u64 sum_ns;
	__u64 min_ns;   /* 0 while count is 0 */
	__u64 max_ns;   /* times are of the calls in hist: all, but for nested launches */
	__u64 sum_arg0; /* bytes, for ops whose arg0 is a byte count */
	__u32 hist[BUCKET_COUNT];
	char comm[WIRE_COMM_LEN];
};

/* The books, per source and CPU. Once nothing is under way:
 *   hits = sent + aggregated + sum(lost)
 * Each term is counted where it happens, so the sum is a check and not a definition. */
struct wire_tally {
	__u64 hits;
	__u64 sent;
	__u64 aggregated;
	__u64 lost[LOSS_COUNT];
};

/* What a process does, to tell how many launches there were while they were not probed. Found by the low bits of the
 * process's id; two that share them are counted together. */
#define WIRE_USES 16384
struct wire_use {
	__u64 launches; /* COOKIE_GOVERNED, while they are probed */
	__u64 nested;   /* of these, counted at their entry alone: half a hit */
	__u64 waits;    /* for the GPU, always */
	__u64 at_wait;  /* launches when the last of these began */
	__u64 send_ns;  /* what sending launches as records took, beyond a hit */
};

/* A probed function, packed into the attach cookie so that a probe needs no look-up. Argument
 * positions are counted in machine words from 1 (0: none), which is the same on both supported
 * architectures because every argument read here is passed as integer words. */
#define COOKIE_ALWAYS    (1 << 0) /* send every call as a record (allocation, free, sync) */
#define COOKIE_BYTES     (1 << 1) /* arg0 is a byte count and is summed */
#define COOKIE_ARG1_OUT  (1 << 2) /* arg1 is what the pointer held on success at return */
#define COOKIE_AREA      (1 << 3) /* arg0 is multiplied by the word after it: width x height */
#define COOKIE_KIND      (1 << 4) /* arg1 is a cudaMemcpyKind: an aggregate for each */
#define COOKIE_CONFIG    (1 << 5) /* the stream is in the launch configuration pointed to */
#define COOKIE_CONFIG_AT 32       /* offset of the stream there, in both APIs */
#define COOKIE_GOVERNED  (1 << 6) /* called so often that the governor may take the probe away */
#define COOKIE_DEVICE    (1 << 7) /* arg0 becomes the thread's device; not an event */

enum wire_nccl_kind {
	WIRE_NCCL_NONE,
	WIRE_NCCL_COLLECTIVE,
	WIRE_NCCL_POINT,    /* to or from one peer; signals */
	WIRE_NCCL_GROUP,    /* group start and end */
	WIRE_NCCL_INIT,     /* (comm out, ranks, id by value, rank, …) */
	WIRE_NCCL_INIT_ALL, /* (comms out, devices, device list) */
	WIRE_NCCL_SCALABLE, /* (comm out, ranks, rank, ids, id list, …) */
	WIRE_NCCL_CHILD,    /* split and shrink: (parent, a, b, comm out, …) */
	WIRE_NCCL_END,      /* destroy, abort: (comm) */
	WIRE_NCCL_CONTROL,  /* finalize, revoke, suspend, resume: (comm, …) */
	WIRE_NCCL_GROW,     /* (parent or none, ranks, id or none, rank or -1, comm out, …) */
};

union wire_cookie {
	__u64 word;
	struct {
		__u8 source;
		__u8 op;
		union {
			struct { /* CUDA, DRIVER, GRAPH */
				__u8 arg0 : 4, arg1 : 4;
				__u8 stream : 4, shift : 4; /* arg0 is in units of 1 << shift */
				__u16 flags;
			};
			struct { /* NCCL: the flags' place is taken by positions */
				__u8 count : 4, datatype : 4;
				__u8 nccl_stream : 4, kind : 4;
				__u8 reduce_op : 4, root : 4; /* root, or the peer */
				__u8 comm : 4, nccl_spare : 4;
			};
		};
		__u8 function; /* row in the agent's function table */
		__u8 library;  /* which probed file it is in */
	};
};

/* Where a communicator holds its rank and size, its own name, which is the same on all ranks, and how many collectives
 * it has launched (record/attach/nccl_layout.h). device_at, hash_at, count_at 0: not known. */
struct wire_nccl_layout {
	__u32 valid;
	__u32 rank_at, size_at, device_at, hash_at, count_at;
	__u32 has_magic; /* the first word is WIRE_NCCL_MAGIC */
};
#define WIRE_NCCL_MAGIC  0x0280028002800280ULL
#define WIRE_NCCL_TAG    40
#define WIRE_LIBRARY_MAX 256

_Static_assert(sizeof(struct wire_header) == 64, "wire_header");
_Static_assert(sizeof(struct wire_call) == 104, "wire_call");
_Static_assert(sizeof(struct wire_sched) == 104, "wire_sched");
_Static_assert(sizeof(struct wire_block) == 88, "wire_block");
_Static_assert(sizeof(struct wire_process) == 88, "wire_process");
_Static_assert(sizeof(struct wire_nccl) == 152, "wire_nccl");
_Static_assert(sizeof(struct wire_net) == 104, "wire_net");
_Static_assert(sizeof(struct wire_tcp) == 104, "wire_tcp");
_Static_assert(sizeof(struct wire_agg_key) == 8, "wire_agg_key");
_Static_assert(sizeof(struct wire_agg) == 48 + 4 * BUCKET_COUNT + 16, "wire_agg");
_Static_assert(sizeof(union wire_cookie) == 8, "wire_cookie");
