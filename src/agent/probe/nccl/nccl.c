/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - functions of libnccl. Positions are from nccl.h; what a call means is in nccl.bpf.h.
 * Applications call the nccl names; the pnccl ones are the same code. */
#include "agent/probe/function.h"

#define NCCL(op_, kind_, count_, datatype_, reduce_op_, root_, comm_, stream_)                     \
	{                                                                                          \
		.source = SOURCE_NCCL, .op = NCCL_##op_, .kind = WIRE_NCCL_##kind_,                \
		.count = (count_), .datatype = (datatype_), .reduce_op = (reduce_op_),             \
		.root = (root_), .comm = (comm_), .nccl_stream = (stream_)                         \
	}

static const struct probe_function functions[] = {
	/* op, kind, count, datatype, reduce op, root or peer, communicator, stream */
	{{"ncclCommInitRank"}, NCCL(COMM_INIT_RANK, INIT, 0, 0, 0, 0, 0, 0)},
	{{"ncclCommInitRankConfig"}, NCCL(COMM_INIT_CONFIG, INIT, 0, 0, 0, 0, 0, 0)},
	{{"ncclCommInitRankScalable"}, NCCL(COMM_INIT_SCALABLE, SCALABLE, 0, 0, 0, 0, 0, 0)},
	{{"ncclCommInitAll"}, NCCL(COMM_INIT_ALL, INIT_ALL, 0, 0, 0, 0, 0, 0)},
	{{"ncclCommSplit"}, NCCL(COMM_SPLIT, CHILD, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommShrink"}, NCCL(COMM_SHRINK, CHILD, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommDestroy"}, NCCL(COMM_DESTROY, END, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommAbort"}, NCCL(COMM_ABORT, END, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommFinalize"}, NCCL(COMM_FINALIZE, FINALIZE, 0, 0, 0, 0, 1, 0)},
	{{"ncclAllReduce"}, NCCL(ALL_REDUCE, COLLECTIVE, 3, 4, 5, 0, 6, 7)},
	{{"ncclReduceScatter"}, NCCL(REDUCE_SCATTER, COLLECTIVE, 3, 4, 5, 0, 6, 7)},
	{{"ncclReduce"}, NCCL(REDUCE, COLLECTIVE, 3, 4, 5, 6, 7, 8)},
	{{"ncclBroadcast"}, NCCL(BROADCAST, COLLECTIVE, 3, 4, 0, 5, 6, 7)},
	{{"ncclBcast"}, NCCL(BCAST, COLLECTIVE, 2, 3, 0, 4, 5, 6)},
	{{"ncclAllGather"}, NCCL(ALL_GATHER, COLLECTIVE, 3, 4, 0, 0, 5, 6)},
	{{"ncclAlltoAll"}, NCCL(ALL_TO_ALL, COLLECTIVE, 3, 4, 0, 0, 5, 6)},
	{{"ncclGather"}, NCCL(GATHER, COLLECTIVE, 3, 4, 0, 5, 6, 7)},
	{{"ncclScatter"}, NCCL(SCATTER, COLLECTIVE, 3, 4, 0, 5, 6, 7)},
	{{"ncclSend"}, NCCL(SEND, POINT, 2, 3, 0, 4, 5, 6)},
	{{"ncclRecv"}, NCCL(RECV, POINT, 2, 3, 0, 4, 5, 6)},
	{{"ncclGroupStart"}, NCCL(GROUP_START, GROUP, 0, 0, 0, 0, 0, 0)},
	{{"ncclGroupEnd"}, NCCL(GROUP_END, GROUP, 0, 0, 0, 0, 0, 0)},
	{{NULL}, {.word = 0}},
};

const struct probe_library probe_nccl = {"libnccl", functions};
