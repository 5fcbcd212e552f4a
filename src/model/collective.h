/* SPDX-License-Identifier: Apache-2.0 */
/* collective.h - what an NCCL call has beyond an event. A value it does not have is -1. */
#pragma once

#include "model/event.h"

#define COLLECTIVE_TAG WIRE_NCCL_TAG

struct collective {
	uint64_t comm;      /* address of the communicator in its process */
	uint64_t comm_hash; /* names it on all ranks; 0: not known */
	uint64_t
		seq; /* (comm_hash, seq) names one collective on all ranks, if collective_is_numbered(). Else,
			     * as a signed number, -1, -2, …: the calls of this rank that were seen (of Send and Recv
			     * -1 only), and without a comm_hash from bit COLLECTIVE_TAG on which communicator of its
			     * process it is. 0: it has none */
	uint64_t bytes, count;
	int32_t rank, nranks;
	int32_t datatype, reduce_op, root, peer;
	int64_t wait_ns; /* in the synchronisation that followed on its stream; a host-side bound */
	int64_t span_ns; /* from the call to the end of a synchronisation that waited for it alone:
			  * more than it took; 0: not known */
};

/* collective_is_numbered - do all ranks know the collective by this communicator and number? */
static inline bool collective_is_numbered(uint64_t comm_hash, uint64_t seq)
{
	return comm_hash && seq && seq <= INT64_MAX;
}

/* collective_is_one - a collective or point-to-point call, as opposed to the life of communicators.
 */
struct collective_row { /* a row of `collectives` */
	wall_time start;
	char node[64];
	uint64_t dur_ns;
	uint32_t pid, tid;
	uint16_t op; /* enum of SOURCE_NCCL */
	int32_t device, ret;
	uint64_t stream;
	struct collective c; /* wait_ns -1: not known */
};

/* collective_left_ns - when its process got past it: the end of the synchronisation that waited for it, as far as is
 * known. */
static inline int64_t collective_left_ns(const struct collective_row *r)
{
	int64_t left = r->start.ns + (int64_t)r->dur_ns + (r->c.wait_ns > 0 ? r->c.wait_ns : 0);
	int64_t alone = r->c.span_ns > 0 ? r->start.ns + r->c.span_ns : left;

	return left > alone ? left : alone;
}

static inline int collective_is_one(const struct event *e)
{
	return (e->op >= NCCL_ALL_REDUCE && e->op <= NCCL_RECV) ||
	       (e->op >= NCCL_REDUCE && e->op <= NCCL_SCATTER);
}

/* How fast a collective moved its data, as nccl-tests reckons it.
 *
 * Algorithm bandwidth is the size of the operation by its time. Bus bandwidth is that times a factor
 * of the operation and the number of ranks, so that it can be set against what links can do, whatever
 * the number of ranks. The size is what nccl-tests calls so: NCCL counts what one rank gives of an
 * all-gather, and what one rank gets of a reduce-scatter; the operation is of all ranks' parts. */

#define BANDWIDTH_CLASSES 5

/* bandwidth_size - bytes of the operation @op (of NCCL) of which one call names @bytes. */
double bandwidth_size(unsigned op, uint64_t bytes, int32_t nranks);

/* bandwidth_factor - what makes bus bandwidth of algorithm bandwidth; 0: not known. */
double bandwidth_factor(unsigned op, int32_t nranks);

/* bandwidth_class - which class of sizes @size is of, from 0; bandwidth_class_name - "1-16 MiB". */
unsigned bandwidth_class(double size);
const char *bandwidth_class_name(unsigned c);
