/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_drv.c - functions of libcuda, with the symbol variants drivers export. Positions are from
 * cuda.h. A driver call inside a runtime call is marked nested by the kernel half. */
#include "agent/probe/function.h"

#define ALWAYS COOKIE_ALWAYS
#define ALLOC  (COOKIE_ALWAYS | COOKIE_BYTES | COOKIE_ARG1_OUT)
#define COPY   COOKIE_BYTES

static const struct probe_function functions[] = {
	/* symbols, op, arg0, arg1, stream, flags */
	{{"cuLaunchKernel", "cuLaunchKernel_ptsz"}, DRIVER_LAUNCH, 1, 9, 9, 0},
	{{"cuLaunchKernelEx", "cuLaunchKernelEx_ptsz"}, DRIVER_LAUNCH_EX, 2, 0, 1, COOKIE_CONFIG},
	{{"cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz"}, DRIVER_LAUNCH_COOP, 1, 9,
		9, 0},
	{{"cuMemcpy", "cuMemcpy_ptds"}, DRIVER_MEMCPY, 3, 0, 0, COPY},
	{{"cuMemcpyAsync", "cuMemcpyAsync_ptsz"}, DRIVER_MEMCPY_ASYNC, 3, 0, 4, COPY},
	{{"cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"}, DRIVER_MEMCPY_HTOD, 3, 0, 0,
		COPY},
	{{"cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds", "cuMemcpyDtoH"}, DRIVER_MEMCPY_DTOH, 3, 0, 0,
		COPY},
	{{"cuMemcpyDtoD_v2", "cuMemcpyDtoD_v2_ptds", "cuMemcpyDtoD"}, DRIVER_MEMCPY_DTOD, 3, 0, 0,
		COPY},
	{{"cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"},
		DRIVER_MEMCPY_HTOD_ASYNC, 3, 0, 4, COPY},
	{{"cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2_ptsz", "cuMemcpyDtoHAsync"},
		DRIVER_MEMCPY_DTOH_ASYNC, 3, 0, 4, COPY},
	{{"cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync_v2_ptsz", "cuMemcpyDtoDAsync"},
		DRIVER_MEMCPY_DTOD_ASYNC, 3, 0, 4, COPY},
	{{"cuMemsetD8_v2", "cuMemsetD8_v2_ptds", "cuMemsetD8"}, DRIVER_MEMSET, 3, 1, 0, COPY},
	{{"cuMemsetD8Async", "cuMemsetD8Async_ptsz"}, DRIVER_MEMSET_ASYNC, 3, 1, 4, COPY},
	{{"cuCtxSynchronize", "cuCtxSynchronize_v2"}, DRIVER_CTX_SYNC, 0, 0, 0, ALWAYS},
	{{"cuStreamSynchronize", "cuStreamSynchronize_ptsz"}, DRIVER_STREAM_SYNC, 1, 0, 1, ALWAYS},
	{{"cuEventSynchronize"}, DRIVER_EVENT_SYNC, 1, 0, 0, ALWAYS},
	{{"cuStreamWaitEvent", "cuStreamWaitEvent_ptsz"}, DRIVER_STREAM_WAIT_EVENT, 2, 0, 1, 0},
	{{"cuMemAlloc_v2", "cuMemAlloc"}, DRIVER_MALLOC, 2, 1, 0, ALLOC},
	{{"cuMemAllocManaged"}, DRIVER_MALLOC_MANAGED, 2, 1, 0, ALLOC},
	{{"cuMemFree_v2", "cuMemFree"}, DRIVER_FREE, 1, 0, 0, ALWAYS},
	{{"cuMemAllocAsync", "cuMemAllocAsync_ptsz"}, DRIVER_MALLOC_ASYNC, 2, 1, 3, ALLOC},
	{{"cuMemFreeAsync", "cuMemFreeAsync_ptsz"}, DRIVER_FREE_ASYNC, 1, 0, 2, ALWAYS},
	{{"cuMemHostAlloc", "cuMemAllocHost_v2"}, DRIVER_HOST_ALLOC, 2, 1, 0, ALLOC},
	{{"cuMemFreeHost"}, DRIVER_HOST_FREE, 1, 0, 0, ALWAYS},
	{{NULL}, 0, 0, 0, 0, 0},
};

const struct probe_library probe_cuda_drv = {"libcuda", SOURCE_DRIVER, functions};
