/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - one observed thing, as every stage after capture knows it.
 *
 * Capture makes it from a wire record, the store writes and reads it, diagnose reasons about it.
 * A plain value: copied, never owned. Times are wall clock; start is the start for every source. */
#pragma once

#include "base/clock.h"
#include "base/macros.h"
#include "stat/sketch.h"
#include "wire/record.h"

#define COMM_LEN WIRE_COMM_LEN

#define PLACEMENT_RANK       (1 << 0)
#define PLACEMENT_LOCAL_RANK (1 << 1)
#define PLACEMENT_WORLD_SIZE (1 << 2)

/* Where a process stands in a distributed job. Rank 0 is a value: what is not in `known` is not
 * known, so that a zeroed struct claims nothing. 0 <= rank < world_size where both are known. */
struct placement {
	int32_t rank, local_rank, world_size;
	uint32_t known; /* PLACEMENT_* */
};

struct event {
	wall_time start;
	uint64_t dur_ns;
	uint64_t seq; /* per node, from 1; 0: not stored yet */
	uint32_t pid, tid;
	uint8_t source; /* enum wire_source */
	uint16_t op;
	uint16_t flags;  /* WIRE_* */
	uint16_t family; /* TCP, NET: of peer_addr, AF_INET or another; else 0 */
	uint32_t cpu;
	uint32_t weight;
	int32_t ret;
	int32_t device;
	uint64_t arg0, arg1;
	uint64_t stream; /* sched_switch: the process that woke the thread */
	uint64_t cgroup_id;
	uint64_t stack_hash;
	uint64_t wait_ns;    /* sched_switch: the part spent runnable without a CPU */
	uint32_t peer_pid;   /* sched_switch: who ran instead; fork: the child */
	uint32_t dev;        /* block requests: device; NET: port of the other end */
	char comm[COMM_LEN]; /* always NUL-terminated here, unlike on the wire */
	union {
		char peer_comm[COMM_LEN];    /* block requests: what the device is called */
		uint8_t peer_addr[COMM_LEN]; /* where there is a family */
	};
	struct placement place; /* of the process, when this happened */
};

/* event_peer - the other end of a connection, as text; "" if there is none. */
#define EVENT_PEER_MAX 56
const char *event_peer(const struct event *e, char out[EVENT_PEER_MAX]);

/* event_peer_set - the address of such a text becomes @e's; a text that is none leaves @e alone. */
void event_peer_set(struct event *e, const char *text);

/* event_peer_is_here - whether it is this machine's loopback. */
bool event_peer_is_here(const struct event *e);

/* event_peer_comm - peer_comm, which of a row with an address is "". */
static inline const char *event_peer_comm(const struct event *e)
{
	return e->family ? "" : e->peer_comm;
}

static inline int64_t event_end_ns(const struct event *e)
{
	return e->start.ns + (int64_t)e->dur_ns;
}

/* Which way a copy goes. */

/* X(NAME, name). The first five are cudaMemcpyKind, so that a direction is a kind of wire/record.h
 * less one. */
#define COPY_DIRECTIONS(X)                                                                         \
	X(H2H, "h2h")                                                                              \
	X(H2D, "h2d")                                                                              \
	X(D2H, "d2h")                                                                              \
	X(D2D, "d2d")                                                                              \
	X(DEFAULT, "default")                                                                      \
	X(UNKNOWN, "unknown")

enum copy_direction {
#define X(NAME, name) COPY_##NAME,
	COPY_DIRECTIONS(X)
#undef X
		COPY_DIRECTION_COUNT
};
STATIC_ASSERT(COPY_DIRECTION_COUNT == WIRE_KIND_OTHER);

extern const char *const copy_direction_names[COPY_DIRECTION_COUNT];

/* copy_direction - of (@source, @op); -1 if it is no copy, COPY_UNKNOWN where the op does not tell
 * (then the kind of its aggregate may). */
int copy_direction(unsigned source, unsigned op);

/* copy_has_kind - whether the direction is an argument of the call: its aggregates have a kind. */
bool copy_has_kind(unsigned source, unsigned op);

/* event_copy_direction - of the copy that @e is, by its op or its argument; COPY_UNKNOWN where neither tells, -1: it is none. */
int event_copy_direction(const struct event *e);

/* All calls of one process and op in one time bucket, stored or not. */

struct aggregate {
	wall_time bucket; /* start of the bucket */
	uint32_t pid;
	uint8_t source;
	uint8_t flags; /* WIRE_NESTED or 0 */
	uint16_t op;
	uint64_t stored; /* of sketch.count, kept as rows of their own */
	uint64_t
		estimated; /* likewise, made while no probe watched: no hits (model/accounting.h) */
	uint64_t sum_arg0; /* bytes, where arg0 is a byte count */
	struct sketch sketch; /* count, sum, min, max and the distribution of durations */
};

/* What a workload says about itself: labels at a moment or over a span.
 *
 * Comes in by the annotation socket, is stored in `annotations`, and is laid beside incidents. */

#define ANNOTATION_LINE_MAX   (16 << 10) /* bytes of one line on the socket, newline included */
#define ANNOTATION_LABELS_MAX 32
#define ANNOTATION_KEY_MAX    64  /* bytes of [A-Za-z0-9_.-] */
#define ANNOTATION_VALUE_MAX  256 /* bytes of UTF-8 without control characters */

struct annotation {
	wall_time time;
	uint32_t pid;                       /* 0: about the whole trace */
	uint64_t start_time;                /* of pid, clock ticks since boot; 0: not said */
	int64_t span_start_ns, span_end_ns; /* 0, 0: a moment */
	uint32_t peer_uid, peer_gid, peer_pid;
	char labels[ANNOTATION_LINE_MAX]; /* a JSON object of strings */
};

struct annotation_label { /* one label of a stored annotation */
	int64_t time_ns;
	int64_t span_start_ns, span_end_ns;
	uint64_t start_time;
	uint32_t pid;
	char key[ANNOTATION_KEY_MAX + 1];
	char value[ANNOTATION_VALUE_MAX + 1];
};
