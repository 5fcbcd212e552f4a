/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - functions of libnccl. Positions are from nccl.h; what a call means is in nccl.bpf.h.
 * Applications call the nccl names; the pnccl ones are the same code. A collective's Config variant (2.31) has one
 * argument more, at the end, is the same operation, and does not go through the plain one. */
#include "record/probe/function.h"

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
	{{"ncclCommGrow"}, NCCL(COMM_GROW, GROW, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommDestroy"}, NCCL(COMM_DESTROY, END, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommAbort"}, NCCL(COMM_ABORT, END, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommFinalize"}, NCCL(COMM_FINALIZE, CONTROL, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommRevoke"}, NCCL(COMM_REVOKE, CONTROL, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommSuspend"}, NCCL(COMM_SUSPEND, CONTROL, 0, 0, 0, 0, 1, 0)},
	{{"ncclCommResume"}, NCCL(COMM_RESUME, CONTROL, 0, 0, 0, 0, 1, 0)},
	{{"ncclAllReduce", "ncclAllReduceConfig"}, NCCL(ALL_REDUCE, COLLECTIVE, 3, 4, 5, 0, 6, 7)},
	{{"ncclReduceScatter", "ncclReduceScatterConfig"},
		NCCL(REDUCE_SCATTER, COLLECTIVE, 3, 4, 5, 0, 6, 7)},
	{{"ncclReduce", "ncclReduceConfig"}, NCCL(REDUCE, COLLECTIVE, 3, 4, 5, 6, 7, 8)},
	{{"ncclBroadcast", "ncclBroadcastConfig"}, NCCL(BROADCAST, COLLECTIVE, 3, 4, 0, 5, 6, 7)},
	{{"ncclBcast"}, NCCL(BCAST, COLLECTIVE, 2, 3, 0, 4, 5, 6)},
	{{"ncclAllGather", "ncclAllGatherConfig"}, NCCL(ALL_GATHER, COLLECTIVE, 3, 4, 0, 0, 5, 6)},
	{{"ncclAlltoAll", "ncclAlltoAllConfig"}, NCCL(ALL_TO_ALL, COLLECTIVE, 3, 4, 0, 0, 5, 6)},
	{{"ncclGather", "ncclGatherConfig"}, NCCL(GATHER, COLLECTIVE, 3, 4, 0, 5, 6, 7)},
	{{"ncclScatter", "ncclScatterConfig"}, NCCL(SCATTER, COLLECTIVE, 3, 4, 0, 5, 6, 7)},
	{{"ncclSend"}, NCCL(SEND, POINT, 2, 3, 0, 4, 5, 6)},
	{{"ncclRecv"}, NCCL(RECV, POINT, 2, 3, 0, 4, 5, 6)},
	{{"ncclPutSignal"}, NCCL(PUT_SIGNAL, POINT, 2, 3, 0, 4, 10, 11)},
	{{"ncclSignal"}, NCCL(SIGNAL, POINT, 0, 0, 0, 1, 5, 6)},
	{{"ncclWaitSignal"}, NCCL(WAIT_SIGNAL, POINT, 0, 0, 0, 0, 3, 4)},
	{{"ncclGroupStart"}, NCCL(GROUP_START, GROUP, 0, 0, 0, 0, 0, 0)},
	{{"ncclGroupEnd"}, NCCL(GROUP_END, GROUP, 0, 0, 0, 0, 0, 0)},
	{{NULL}, {.word = 0}},
};

const struct probe_library probe_nccl = {"libnccl", functions};
