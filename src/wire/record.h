/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* record.h - what the BPF programs send to the agent, and the counters both share.
 *
 * Freestanding; both halves compile this one file and the sizes are asserted, so they cannot
 * disagree. A change of layout raises WIRE_VERSION. All times are CLOCK_MONOTONIC nanoseconds and
 * a record's start_ns is the start of what it describes, for every source. */
#pragma once

#include <linux/types.h>

#include "wire/ids.h"

/* The log-linear histogram that the kernel fills and the agent merges.
 *
 * Values 0..15 have a bucket each; above, every power of two is cut into 16 equal parts, up to
 * 2^40 ns (18 minutes); larger values share the last bucket. A bucket's middle is therefore
 * within 1/32 = 3.1 % of every value in it. Two histograms merge by adding counts.
 *
 *   bucket = 16 * (top - 4) + 16 + ((value >> (top - 4)) & 15),   top = index of the highest bit. */

#define BUCKET_SUB_BITS 4
#define BUCKET_SUB      (1 << BUCKET_SUB_BITS)
#define BUCKET_TOP_BITS 40
#define BUCKET_COUNT    (BUCKET_SUB + (BUCKET_TOP_BITS - BUCKET_SUB_BITS) * BUCKET_SUB) /* 592 */

/* Index of the highest set bit by halving: BPF has no count-leading-zeros instruction. */
static inline __attribute__((always_inline)) __u32 bucket_top_bit(__u64 v)
{
	__u32 top = 0, shift;

	shift = (v > 0xffffffffULL) << 5;
	v >>= shift;
	top |= shift;
	shift = (v > 0xffff) << 4;
	v >>= shift;
	top |= shift;
	shift = (v > 0xff) << 3;
	v >>= shift;
	top |= shift;
	shift = (v > 0xf) << 2;
	v >>= shift;
	top |= shift;
	shift = (v > 0x3) << 1;
	v >>= shift;
	top |= shift;
	return top | (__u32)(v >> 1);
}

static inline __attribute__((always_inline)) __u32 bucket_of(__u64 v)
{
	__u32 top;

	if (v < BUCKET_SUB)
		return (__u32)v;
	if (v >> BUCKET_TOP_BITS)
		return BUCKET_COUNT - 1;
	top = bucket_top_bit(v);
	return (top - BUCKET_SUB_BITS) * BUCKET_SUB + BUCKET_SUB +
	       ((__u32)(v >> (top - BUCKET_SUB_BITS)) & (BUCKET_SUB - 1));
}

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
	__u64 wait_ns; /* blocked: part of dur_ns, and the stay in poll() before a receive */
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
 * it has launched (record/attach/accessor.h). device_at, hash_at, count_at 0: not known. */
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

/* Texts that the kernel half reads in a process and sends once: names of kernels and of NVTX
 * ranges. Freestanding, like record.h.
 *
 * They have a ring of their own and are not in the books: a name is no event. One that is lost is
 * counted by itself, and what it belongs to is then shown without it. */

#define NAME_SHORT 192  /* bytes of the usual record's text */
#define NAME_LONG  2048 /* of the one for names that do not fit; longer ones are cut */
#define NAME_RANGE 128  /* of a range's name, its end included */

/* Launches whose function is counted: one in NAME_SAMPLED on average. The gap to the next is drawn
 * evenly from 1 to NAME_GAP, so that no rhythm of the program can hide a kernel; its mean is
 * NAME_SAMPLED_X2 / 2. */
#define NAME_GAP        32
#define NAME_SAMPLED_X2 (NAME_GAP + 1)

enum wire_name_kind {
	NAME_OF_FUNCTION = 1, /* key: the function that launches name; the text is its name */
	NAME_ALIAS,           /* key: another handle of the function @other */
	NAME_TEXT,            /* key: the hash by which events refer to the text */
};

struct wire_name {
	struct wire_header h; /* of pid, tid, start_ns and the source */
	__u64 key;
	__u64 other;
	__u32 kind; /* enum wire_name_kind */
	__u32 is_cut;
	char text[]; /* NAME_SHORT or NAME_LONG bytes, ended by a NUL; NAME_ALIAS: none */
};

/* A launched function of a process: the key of the kernel half's counts. */
struct wire_function {
	__u64 function;
	__u32 pid;
	__u32 pad;
};

_Static_assert(sizeof(struct wire_name) == 88, "wire_name");
_Static_assert(sizeof(struct wire_function) == 16, "wire_function");
