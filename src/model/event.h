/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - one observed thing, as every stage after capture knows it.
 *
 * Capture makes it from a wire record, the store writes and reads it, diagnose reasons about it.
 * A plain value: copied, never owned. Times are wall clock; start is the start for every source. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
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
