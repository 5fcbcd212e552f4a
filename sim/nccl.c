// SPDX-License-Identifier: Apache-2.0
/* nccl.c - the stand-in libnccl: collectives, sends, receives and groups. A call checks what it got
 * and hands it on; it returns as soon as the work is on the stream. */
#include <stdio.h>

#include "nccl.h"

static const char *const symbols[] = {
#define X(name) #name,
	NCCL_SYMBOLS(X)
#undef X
};

const struct tally_library tally_library = {
	.suffix = ".libnccl",
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
};

__attribute__((constructor)) static void nccl_load(void)
{
	tally_start();
}

SIM_EXPORT int sim_nccl_tally_write(void)
{
	return tally_write();
}

static const unsigned char type_bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

uint64_t nccl_bytes(uint64_t count, int datatype)
{
	return datatype >= 0 && (size_t)datatype < sizeof(type_bytes) ? count * type_bytes[datatype]
								      : 0;
}

ncclResult_t nccl_submit(struct comm_call call)
{
	if (!comm_is_valid(call.comm) || call.datatype < 0 ||
		(size_t)call.datatype >= sizeof(type_bytes) || call.redop < -1 || call.root < -1 ||
		call.root >= call.comm->nranks || call.peer < -1 || call.peer >= call.comm->nranks)
		return ncclInvalidArgument;
	call.bytes = nccl_bytes(call.count, call.datatype);
	return group_call(&call);
}

SIM_EXPORT ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {COMM_ALL_REDUCE, comm, stream, count, 0, datatype, op, -1, -1, 0};
	NCCL_BEGIN(ncclAllReduce);

	NCCL_END(op < 0 ? ncclInvalidArgument : nccl_submit(call), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {COMM_REDUCE, comm, stream, count, 0, datatype, op, root, -1, 0};
	NCCL_BEGIN(ncclReduce);

	NCCL_END(op < 0 || root < 0 ? ncclInvalidArgument : nccl_submit(call),
		nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {COMM_BROADCAST, comm, stream, count, 0, datatype, -1, root, -1, 0};
	NCCL_BEGIN(ncclBroadcast);

	NCCL_END(root < 0 ? ncclInvalidArgument : nccl_submit(call), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
	ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {COMM_BROADCAST, comm, stream, count, 0, datatype, -1, root, -1, 0};
	NCCL_BEGIN(ncclBcast);

	NCCL_END(root < 0 ? ncclInvalidArgument : nccl_submit(call), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {
		COMM_ALL_GATHER, comm, stream, sendcount, 0, datatype, -1, -1, -1, 0};
	NCCL_BEGIN(ncclAllGather);

	NCCL_END(nccl_submit(call), nccl_bytes(sendcount, datatype));
}

SIM_EXPORT ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {
		COMM_REDUCE_SCATTER, comm, stream, recvcount, 0, datatype, op, -1, -1, 0};
	NCCL_BEGIN(ncclReduceScatter);

	NCCL_END(op < 0 ? ncclInvalidArgument : nccl_submit(call), nccl_bytes(recvcount, datatype));
}

SIM_EXPORT ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {COMM_ALL_TO_ALL, comm, stream, count, 0, datatype, -1, -1, -1, 0};
	NCCL_BEGIN(ncclAlltoAll);

	NCCL_END(nccl_submit(call), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {COMM_GATHER, comm, stream, count, 0, datatype, -1, root, -1, 0};
	NCCL_BEGIN(ncclGather);

	NCCL_END(root < 0 ? ncclInvalidArgument : nccl_submit(call), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {COMM_SCATTER, comm, stream, count, 0, datatype, -1, root, -1, 0};
	NCCL_BEGIN(ncclScatter);

	NCCL_END(root < 0 ? ncclInvalidArgument : nccl_submit(call), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {COMM_SEND, comm, stream, count, 0, datatype, -1, -1, peer, 0};
	NCCL_BEGIN(ncclSend);

	NCCL_END(peer < 0 ? ncclInvalidArgument : nccl_submit(call), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {COMM_RECV, comm, stream, count, 0, datatype, -1, -1, peer, 0};
	NCCL_BEGIN(ncclRecv);

	NCCL_END(peer < 0 ? ncclInvalidArgument : nccl_submit(call), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclGroupStart(void)
{
	NCCL_BEGIN(ncclGroupStart);
	group_start();
	NCCL_END(group_is_open() ? ncclSuccess : ncclSystemError, 0);
}

SIM_EXPORT ncclResult_t ncclGroupEnd(void)
{
	NCCL_BEGIN(ncclGroupEnd);
	NCCL_END(group_end(), 0);
}
