// SPDX-License-Identifier: Apache-2.0
/* nccl_config.c - the stand-in libnccl: what came after 2.28. A collective with a configuration is the same one: it
 * meets those that were called without. Signals are checked, and neither sent nor waited for. */
#include "nccl.h"

static ncclResult_t submit(struct comm_call call, const ncclCollConfig_t *config)
{
	return config && config->magic != NCCL_CONFIG_MAGIC ? ncclInvalidArgument
							    : nccl_submit(call);
}

SIM_EXPORT ncclResult_t ncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	struct comm_call call = {COMM_ALL_REDUCE, comm, stream, count, 0, datatype, op, -1, -1, 0};
	NCCL_BEGIN(ncclAllReduceConfig);

	NCCL_END(op < 0 ? ncclInvalidArgument : submit(call, config), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	struct comm_call call = {COMM_BROADCAST, comm, stream, count, 0, datatype, -1, root, -1, 0};
	NCCL_BEGIN(ncclBroadcastConfig);

	NCCL_END(
		root < 0 ? ncclInvalidArgument : submit(call, config), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	struct comm_call call = {COMM_REDUCE, comm, stream, count, 0, datatype, op, root, -1, 0};
	NCCL_BEGIN(ncclReduceConfig);

	NCCL_END(op < 0 || root < 0 ? ncclInvalidArgument : submit(call, config),
		nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	struct comm_call call = {
		COMM_ALL_GATHER, comm, stream, sendcount, 0, datatype, -1, -1, -1, 0};
	NCCL_BEGIN(ncclAllGatherConfig);

	NCCL_END(submit(call, config), nccl_bytes(sendcount, datatype));
}

SIM_EXPORT ncclResult_t ncclReduceScatterConfig(const void *sendbuff, void *recvbuff,
	size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
	cudaStream_t stream, const ncclCollConfig_t *config)
{
	struct comm_call call = {
		COMM_REDUCE_SCATTER, comm, stream, recvcount, 0, datatype, op, -1, -1, 0};
	NCCL_BEGIN(ncclReduceScatterConfig);

	NCCL_END(op < 0 ? ncclInvalidArgument : submit(call, config),
		nccl_bytes(recvcount, datatype));
}

SIM_EXPORT ncclResult_t ncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	struct comm_call call = {COMM_ALL_TO_ALL, comm, stream, count, 0, datatype, -1, -1, -1, 0};
	NCCL_BEGIN(ncclAlltoAllConfig);

	NCCL_END(submit(call, config), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	struct comm_call call = {COMM_GATHER, comm, stream, count, 0, datatype, -1, root, -1, 0};
	NCCL_BEGIN(ncclGatherConfig);

	NCCL_END(
		root < 0 ? ncclInvalidArgument : submit(call, config), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	struct comm_call call = {COMM_SCATTER, comm, stream, count, 0, datatype, -1, root, -1, 0};
	NCCL_BEGIN(ncclScatterConfig);

	NCCL_END(
		root < 0 ? ncclInvalidArgument : submit(call, config), nccl_bytes(count, datatype));
}

static ncclResult_t check(ncclComm_t c, int peer)
{
	return comm_is_valid(c) && peer >= 0 && peer < c->nranks ? ncclSuccess
								 : ncclInvalidArgument;
}

SIM_EXPORT ncclResult_t ncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned flags,
	ncclComm_t comm, cudaStream_t stream)
{
	NCCL_BEGIN(ncclPutSignal);
	NCCL_END(check(comm, peer), nccl_bytes(count, datatype));
}

SIM_EXPORT ncclResult_t ncclSignal(
	int peer, int sigIdx, int ctx, unsigned flags, ncclComm_t comm, cudaStream_t stream)
{
	NCCL_BEGIN(ncclSignal);
	NCCL_END(check(comm, peer), 0);
}

SIM_EXPORT ncclResult_t ncclWaitSignal(
	int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream)
{
	NCCL_BEGIN(ncclWaitSignal);
	NCCL_END(nDesc > 0 && signalDescs ? check(comm, signalDescs[0].peer) : ncclInvalidArgument,
		0);
}
