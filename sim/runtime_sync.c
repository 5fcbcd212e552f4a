// SPDX-License-Identifier: Apache-2.0
/* runtime_sync.c - the stand-in libcudart: streams, events and waiting. */
#include "runtime.h"

SIM_EXPORT cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
	RUNTIME_BEGIN(cudaStreamCreate, 0);
	RUNTIME_END(DRIVER(cuStreamCreate(pStream, 0)), 0);
}

SIM_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaStreamDestroy, 0);
	RUNTIME_END(DRIVER(cuStreamDestroy_v2(stream)), 0);
}

SIM_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaStreamSynchronize, 0);
	RUNTIME_END(DRIVER(cuStreamSynchronize(stream)), 0);
}

SIM_EXPORT cudaError_t cudaDeviceSynchronize(void)
{
	RUNTIME_BEGIN(cudaDeviceSynchronize, 0);
	RUNTIME_END(DRIVER(cuCtxSynchronize()), 0);
}

SIM_EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	RUNTIME_BEGIN(cudaEventCreate, 0);
	RUNTIME_END(DRIVER(cuEventCreate(event, 0)), 0);
}

SIM_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaEventRecord, 0);
	RUNTIME_END(DRIVER(cuEventRecord(event, stream)), 0);
}

SIM_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	RUNTIME_BEGIN(cudaEventSynchronize, 0);
	RUNTIME_END(DRIVER(cuEventSynchronize(event)), 0);
}

SIM_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	RUNTIME_BEGIN(cudaEventDestroy, 0);
	RUNTIME_END(DRIVER(cuEventDestroy_v2(event)), 0);
}

SIM_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaStreamQuery, 0);
	RUNTIME_END(DRIVER(cuStreamQuery(stream)), 0);
}

SIM_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
	RUNTIME_BEGIN(cudaEventQuery, 0);
	RUNTIME_END(DRIVER(cuEventQuery(event)), 0);
}

SIM_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
	RUNTIME_BEGIN(cudaLaunchHostFunc, 0);
	RUNTIME_END(DRIVER(cuLaunchHostFunc(stream, fn, userData)), 0);
}

SIM_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	RUNTIME_BEGIN(cudaStreamWaitEvent, 0);
	RUNTIME_END(DRIVER(cuStreamWaitEvent(stream, event, flags)), 0);
}

SIM_EXPORT cudaError_t cudaThreadSynchronize(void)
{
	RUNTIME_BEGIN(cudaThreadSynchronize, 0);
	RUNTIME_END(DRIVER(cuCtxSynchronize()), 0);
}

SIM_EXPORT cudaError_t cudaLaunchHostFunc_v2(
	cudaStream_t stream, cudaHostFn_t fn, void *userData, unsigned syncMode)
{
	RUNTIME_BEGIN(cudaLaunchHostFunc_v2, 0);
	RUNTIME_END(DRIVER(cuLaunchHostFunc_v2(stream, fn, userData, syncMode)), 0);
}
