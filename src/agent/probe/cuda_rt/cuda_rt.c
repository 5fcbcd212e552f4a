/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_rt.c - functions of libcudart. Positions are from cuda_runtime_api.h.
 * Allocations, frees and waits are always recorded one by one; launches and copies by exception. */
#include "agent/probe/function.h"

#define RT     COOKIE_RUNTIME
#define ALWAYS (COOKIE_RUNTIME | COOKIE_ALWAYS)
#define ALLOC  (COOKIE_RUNTIME | COOKIE_ALWAYS | COOKIE_BYTES | COOKIE_ARG1_OUT)
#define COPY   (COOKIE_RUNTIME | COOKIE_BYTES)

static const struct probe_function functions[] = {
	/* symbols, op, arg0, arg1, stream, flags */
	{{"cudaMalloc"}, CUDA_MALLOC, 2, 1, 0, ALLOC},
	{{"cudaFree"}, CUDA_FREE, 1, 0, 0, ALWAYS},
	{{"cudaMallocManaged"}, CUDA_MALLOC_MANAGED, 2, 1, 0, ALLOC},
	{{"cudaMallocAsync", "cudaMallocAsync_ptsz"}, CUDA_MALLOC_ASYNC, 2, 1, 3, ALLOC},
	{{"cudaFreeAsync", "cudaFreeAsync_ptsz"}, CUDA_FREE_ASYNC, 1, 0, 2, ALWAYS},
	{{"cudaHostAlloc", "cudaMallocHost"}, CUDA_HOST_ALLOC, 2, 1, 0, ALLOC},
	{{"cudaFreeHost"}, CUDA_HOST_FREE, 1, 0, 0, ALWAYS},
	{{"cudaLaunchKernel", "cudaLaunchKernel_ptsz"}, CUDA_LAUNCH, 1, 8, 8, RT},
	{{"cudaLaunchKernelExC", "cudaLaunchKernelExC_ptsz"}, CUDA_LAUNCH_EXC, 2, 0, 1,
		RT | COOKIE_CONFIG},
	{{"cudaLaunchCooperativeKernel", "cudaLaunchCooperativeKernel_ptsz"}, CUDA_LAUNCH_COOP, 1,
		8, 8, RT},
	{{"cudaMemcpy", "cudaMemcpy_ptds"}, CUDA_MEMCPY, 3, 4, 0, COPY},
	{{"cudaMemcpyAsync", "cudaMemcpyAsync_ptsz"}, CUDA_MEMCPY_ASYNC, 3, 4, 5, COPY},
	{{"cudaMemcpy2D", "cudaMemcpy2D_ptds"}, CUDA_MEMCPY_2D, 5, 7, 0, COPY | COOKIE_AREA},
	{{"cudaMemcpy2DAsync", "cudaMemcpy2DAsync_ptsz"}, CUDA_MEMCPY_2D_ASYNC, 5, 7, 8,
		COPY | COOKIE_AREA},
	{{"cudaMemcpyPeer", "cudaMemcpyPeer_ptds"}, CUDA_MEMCPY_PEER, 5, 0, 0, COPY},
	{{"cudaMemcpyPeerAsync", "cudaMemcpyPeerAsync_ptsz"}, CUDA_MEMCPY_PEER_ASYNC, 5, 0, 6,
		COPY},
	{{"cudaMemset", "cudaMemset_ptds"}, CUDA_MEMSET, 3, 1, 0, COPY},
	{{"cudaMemsetAsync", "cudaMemsetAsync_ptsz"}, CUDA_MEMSET_ASYNC, 3, 1, 4, COPY},
	{{"cudaStreamSynchronize", "cudaStreamSynchronize_ptsz"}, CUDA_STREAM_SYNC, 1, 0, 1,
		ALWAYS},
	{{"cudaDeviceSynchronize"}, CUDA_DEVICE_SYNC, 0, 0, 0, ALWAYS},
	{{"cudaEventSynchronize"}, CUDA_EVENT_SYNC, 1, 0, 0, ALWAYS},
	{{"cudaStreamWaitEvent", "cudaStreamWaitEvent_ptsz"}, CUDA_STREAM_WAIT_EVENT, 2, 0, 1, RT},
	{{NULL}, 0, 0, 0, 0, 0},
};

const struct probe_library probe_cuda_rt = {"libcudart", SOURCE_CUDA, functions};
