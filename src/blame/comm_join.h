/* SPDX-License-Identifier: Apache-2.0 */
/* comm_join.h - calls that a tracer met late, given the communicator and the numbers that all ranks share.
 *
 * A rank whose communicator was in use before its tracer came counts the calls from then on by itself, -1, -2, …
 * (model/collective.h), and before NCCL 2.18 cannot even name the communicator (comm 0; then the bits from COMM_JOIN_TAG on
 * of the number say which of the process's it is). Which call of one rank is which of another's is told by what they do:
 * the operation, the bytes, the order, and the ends: all ranks leave a collective at nearly one moment, and any other shift
 * of the numbers leaves the ends a call or a step apart. A Send and its Recv likewise.
 *
 * How it is called: with the calls of all ranks that may belong together, numbered ones among them (they are what others
 * are joined to, and stay as they are), and the workers with their clocks as far as these are known: up to error_ns apart
 * the ends may be, if they are that for all calls; UINT64_MAX is a clock that has nothing to do with the others, so that
 * only the pattern of the ends counts. explain calls it once with
 * a whole recording. The cluster calls it with the calls of its window while there are unjoined streams, keeps what
 * comm_join_run() lists as joined, and gives later calls of such a stream their names by comm_join_name().
 *
 * What is not clear is not joined: at least COMM_JOIN_PAIRS calls that both have; nearly all of them alike; the ends not
 * a third as close by any other shift, nor half as close with any other communicator. Pure. */
#pragma once

#include "blame/blame.h"
#include "wire/record.h"

#define COMM_JOIN_PAIRS 8 /* calls that two ranks must have in common */
#define COMM_JOIN_TAG                                                                              \
	WIRE_NCCL_TAG /* first bit of which communicator of its process, in a number of one without a name */

/* Where nobody knows the true numbers those of a stream that others are joined to begin at a multiple of this, so that
 * those joined to another one are not taken for the same. */
#define COMM_JOIN_MADE_UP (INT64_C(1) << 32)

/* The calls of one process on one communicator, or to or from one peer on it. */
struct comm_join_stream {
	uint32_t worker;
	uint64_t comm, tag; /* as its calls have them */
	int32_t rank, nranks;
	int32_t peer; /* of Sends and Recvs; -1: collectives */
	bool is_send;
	/* what was found: */
	bool is_joined;
	uint64_t id;   /* the communicator of all its ranks */
	int64_t shift; /* the call that the rank counts as its n-th is number n + shift */
};

struct comm_join {
	struct comm_join_stream *streams; /* those that were not numbered */
	size_t count;
	uint64_t joined, unknown; /* calls of these */
};

/* comm_join_run - 0 and *ret (released with comm_join_done()) or -ENOMEM. @calls may be in any order. A Send or Recv that
 * is not numbered has the number that it is to its peer, negative as a collective's. What is not joined after
 * @work_max comparisons of calls, some 10 ns each, stays so: streams that somebody makes up keep nobody waiting. */
int comm_join_run(const struct blame_worker *workers, const struct blame_call *calls, size_t count,
	uint64_t work_max, struct comm_join *ret);
void comm_join_done(struct comm_join *j);

/* comm_join_is_of - is it a call of that stream? comm_join_name - then gives it the communicator and number of all ranks. */
bool comm_join_is_of(const struct comm_join_stream *s, uint32_t worker, const struct push_call *c);
void comm_join_name(const struct comm_join_stream *s, struct push_call *c);
/* comm_join_number - what its rank counts it as, from 1. */
int64_t comm_join_number(const struct push_call *c);

/* comm_join_apply - names all calls of joined streams; how many. The others stay. */
size_t comm_join_apply(const struct comm_join *j, struct blame_call *calls, size_t count);
