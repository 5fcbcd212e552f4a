/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_drv.c - functions of libcuda, with the symbol variants drivers export. Positions are from
 * cuda.h. A driver call inside a runtime call is marked nested by the kernel half. */
#include "agent/probe/function.h"

#define ALWAYS COOKIE_ALWAYS
#define ALLOC  (COOKIE_ALWAYS | COOKIE_BYTES | COOKIE_ARG1_OUT)
#define COPY   COOKIE_BYTES
#define LAUNCH COOKIE_GOVERNED
#define FILL   (COOKIE_GOVERNED | COOKIE_BYTES)

#define DRV(op, arg0, arg1, stream, flags)                                                         \
	CALL(SOURCE_DRIVER, DRIVER_##op, arg0, arg1, stream, flags)

static const struct probe_function functions[] = {
	/* op, arg0, arg1, stream, flags */
	{{"cuLaunchKernel", "cuLaunchKernel_ptsz"}, DRV(LAUNCH, 1, 9, 9, LAUNCH)},
	{{"cuLaunchKernelEx", "cuLaunchKernelEx_ptsz"},
		DRV(LAUNCH_EX, 2, 0, 1, LAUNCH | COOKIE_CONFIG)},
	{{"cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz"},
		DRV(LAUNCH_COOP, 1, 9, 9, LAUNCH)},
	{{"cuMemcpy", "cuMemcpy_ptds"}, DRV(MEMCPY, 3, 0, 0, COPY)},
	{{"cuMemcpyAsync", "cuMemcpyAsync_ptsz"}, DRV(MEMCPY_ASYNC, 3, 0, 4, COPY)},
	{{"cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"},
		DRV(MEMCPY_HTOD, 3, 0, 0, COPY)},
	{{"cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds", "cuMemcpyDtoH"},
		DRV(MEMCPY_DTOH, 3, 0, 0, COPY)},
	{{"cuMemcpyDtoD_v2", "cuMemcpyDtoD_v2_ptds", "cuMemcpyDtoD"},
		DRV(MEMCPY_DTOD, 3, 0, 0, COPY)},
	{{"cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"},
		DRV(MEMCPY_HTOD_ASYNC, 3, 0, 4, COPY)},
	{{"cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2_ptsz", "cuMemcpyDtoHAsync"},
		DRV(MEMCPY_DTOH_ASYNC, 3, 0, 4, COPY)},
	{{"cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync_v2_ptsz", "cuMemcpyDtoDAsync"},
		DRV(MEMCPY_DTOD_ASYNC, 3, 0, 4, COPY)},
	{{"cuMemsetD8_v2", "cuMemsetD8_v2_ptds", "cuMemsetD8"}, DRV(MEMSET, 3, 1, 0, COPY)},
	{{"cuMemsetD8Async", "cuMemsetD8Async_ptsz"}, DRV(MEMSET_ASYNC, 3, 1, 4, FILL)},
	{{"cuMemsetD2D8_v2", "cuMemsetD2D8_v2_ptds"}, DRV(MEMSET, 4, 1, 0, COPY | COOKIE_AREA)},
	{{"cuMemsetD2D8Async", "cuMemsetD2D8Async_ptsz"},
		DRV(MEMSET_ASYNC, 4, 1, 6, FILL | COOKIE_AREA)},
	{{"cuCtxSynchronize", "cuCtxSynchronize_v2"}, DRV(CTX_SYNC, 0, 0, 0, ALWAYS)},
	{{"cuStreamSynchronize", "cuStreamSynchronize_ptsz"}, DRV(STREAM_SYNC, 1, 0, 1, ALWAYS)},
	{{"cuEventSynchronize"}, DRV(EVENT_SYNC, 1, 0, 0, ALWAYS)},
	{{"cuStreamWaitEvent", "cuStreamWaitEvent_ptsz"}, DRV(STREAM_WAIT_EVENT, 2, 0, 1, 0)},
	{{"cuMemAlloc_v2", "cuMemAlloc"}, DRV(MALLOC, 2, 1, 0, ALLOC)},
	{{"cuMemAllocManaged"}, DRV(MALLOC_MANAGED, 2, 1, 0, ALLOC)},
	{{"cuMemFree_v2", "cuMemFree"}, DRV(FREE, 1, 0, 0, ALWAYS)},
	{{"cuMemAllocAsync", "cuMemAllocAsync_ptsz"}, DRV(MALLOC_ASYNC, 2, 1, 3, ALLOC)},
	{{"cuMemFreeAsync", "cuMemFreeAsync_ptsz"}, DRV(FREE_ASYNC, 1, 0, 2, ALWAYS)},
	{{"cuMemHostAlloc", "cuMemAllocHost_v2"}, DRV(HOST_ALLOC, 2, 1, 0, ALLOC)},
	{{"cuMemFreeHost"}, DRV(HOST_FREE, 1, 0, 0, ALWAYS)},
	{{"cuMemAllocPitch_v2", "cuMemAllocPitch"},
		DRV(MALLOC_PITCH, 3, 1, 0, ALLOC | COOKIE_AREA)},
	{{"cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz"},
		DRV(MALLOC_FROM_POOL, 2, 1, 4, ALLOC)},
	{{"cuMemCreate"}, DRV(MEM_CREATE, 2, 1, 0, ALLOC)},
	{{"cuMemMap"}, DRV(MEM_MAP, 2, 1, 0, ALWAYS | COOKIE_BYTES)},
	{{"cuMemUnmap"}, DRV(MEM_UNMAP, 2, 1, 0, ALWAYS | COOKIE_BYTES)},
	{{"cuMemRelease"}, DRV(MEM_RELEASE, 1, 0, 0, ALWAYS)},
	{{"cuMemcpy2D_v2", "cuMemcpy2D_v2_ptds", "cuMemcpy2DUnaligned_v2",
		 "cuMemcpy2DUnaligned_v2_ptds"},
		DRV(MEMCPY_2D, 0, 0, 0, 0)},
	{{"cuMemcpy2DAsync_v2", "cuMemcpy2DAsync_v2_ptsz"}, DRV(MEMCPY_2D_ASYNC, 0, 0, 2, 0)},
	{{"cuMemcpy3D_v2", "cuMemcpy3D_v2_ptds"}, DRV(MEMCPY_3D, 0, 0, 0, 0)},
	{{"cuMemcpy3DAsync_v2", "cuMemcpy3DAsync_v2_ptsz"}, DRV(MEMCPY_3D_ASYNC, 0, 0, 2, 0)},
	{{"cuMemcpyPeer", "cuMemcpyPeer_ptds"}, DRV(MEMCPY_PEER, 5, 0, 0, COPY)},
	{{"cuMemcpyPeerAsync", "cuMemcpyPeerAsync_ptsz"}, DRV(MEMCPY_PEER_ASYNC, 5, 0, 6, COPY)},
	{{"cuMemcpyBatchAsync", "cuMemcpyBatchAsync_ptsz", "cuMemcpyBatchAsync_v2"},
		DRV(MEMCPY_BATCH, 4, 0, 0, 0)},
	{{"cuGraphLaunch", "cuGraphLaunch_ptsz"}, DRV(GRAPH_LAUNCH, 1, 0, 2, 0)},
	{{NULL}, {.word = 0}},
};

const struct probe_library probe_cuda_drv = {"libcuda", functions};
