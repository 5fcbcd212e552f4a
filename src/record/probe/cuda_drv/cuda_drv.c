/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_drv.c - functions of libcuda, with the symbol variants drivers export. Positions are from
 * cuda.h. A driver call inside a runtime call is marked nested by the kernel half. */
#include "record/probe/function.h"

#define ALWAYS COOKIE_ALWAYS
#define ALLOC  (COOKIE_ALWAYS | COOKIE_BYTES | COOKIE_ARG1_OUT)
#define COPY   COOKIE_BYTES
#define LAUNCH COOKIE_GOVERNED
#define FILL   (COOKIE_GOVERNED | COOKIE_BYTES)

#define DRV(op, arg0, arg1, stream, flags)                                                         \
	CALL(SOURCE_DRIVER, DRIVER_##op, arg0, arg1, stream, flags)

#define GRAPH(op, arg0, arg1, stream, flags)                                                       \
	CALL(SOURCE_GRAPH, GRAPH_##op, arg0, arg1, stream, flags)

/* Of fills by more than 8 bits: arg0 elements of 1 << shift bytes, the pointer first. */
#define WIDE(op_, arg0_, stream_, flags_, shift_)                                                  \
	{                                                                                          \
		.source = SOURCE_DRIVER, .op = DRIVER_##op_, .arg0 = (arg0_), .arg1 = 1,           \
		.stream = (stream_), .shift = (shift_), .flags = (flags_)                          \
	}

static const struct probe_function functions[] = {
	/* op, arg0, arg1, stream, flags */
	{{"cuLaunchKernel", "cuLaunchKernel_ptsz"}, DRV(LAUNCH, 1, 9, 9, LAUNCH)},
	{{"cuLaunchKernelEx", "cuLaunchKernelEx_ptsz"},
		DRV(LAUNCH_EX, 2, 0, 1, LAUNCH | COOKIE_CONFIG)},
	{{"cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz"},
		DRV(LAUNCH_COOP, 1, 9, 9, LAUNCH)},
	{{"cuLaunchHostFunc", "cuLaunchHostFunc_ptsz", "cuLaunchHostFunc_v2",
		 "cuLaunchHostFunc_v2_ptsz"},
		DRV(LAUNCH_HOST, 2, 0, 1, 0)},
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
	{{"cuMemsetD16_v2", "cuMemsetD16_v2_ptds", "cuMemsetD16"}, WIDE(MEMSET, 3, 0, COPY, 1)},
	{{"cuMemsetD16Async", "cuMemsetD16Async_ptsz"}, WIDE(MEMSET_ASYNC, 3, 4, FILL, 1)},
	{{"cuMemsetD32_v2", "cuMemsetD32_v2_ptds", "cuMemsetD32"}, WIDE(MEMSET, 3, 0, COPY, 2)},
	{{"cuMemsetD32Async", "cuMemsetD32Async_ptsz"}, WIDE(MEMSET_ASYNC, 3, 4, FILL, 2)},
	{{"cuMemsetD2D8_v2", "cuMemsetD2D8_v2_ptds"}, DRV(MEMSET, 4, 1, 0, COPY | COOKIE_AREA)},
	{{"cuMemsetD2D8Async", "cuMemsetD2D8Async_ptsz"},
		DRV(MEMSET_ASYNC, 4, 1, 6, FILL | COOKIE_AREA)},
	{{"cuMemsetD2D16_v2", "cuMemsetD2D16_v2_ptds"}, WIDE(MEMSET, 4, 0, COPY | COOKIE_AREA, 1)},
	{{"cuMemsetD2D16Async", "cuMemsetD2D16Async_ptsz"},
		WIDE(MEMSET_ASYNC, 4, 6, FILL | COOKIE_AREA, 1)},
	{{"cuMemsetD2D32_v2", "cuMemsetD2D32_v2_ptds"}, WIDE(MEMSET, 4, 0, COPY | COOKIE_AREA, 2)},
	{{"cuMemsetD2D32Async", "cuMemsetD2D32Async_ptsz"},
		WIDE(MEMSET_ASYNC, 4, 6, FILL | COOKIE_AREA, 2)},
	{{"cuCtxSynchronize", "cuCtxSynchronize_v2"}, DRV(CTX_SYNC, 0, 0, 0, ALWAYS)},
	{{"cuStreamSynchronize", "cuStreamSynchronize_ptsz"}, DRV(STREAM_SYNC, 1, 0, 1, ALWAYS)},
	{{"cuEventSynchronize"}, DRV(EVENT_SYNC, 1, 0, 0, ALWAYS)},
	{{"cuStreamWaitEvent", "cuStreamWaitEvent_ptsz"}, DRV(STREAM_WAIT_EVENT, 2, 0, 1, 0)},
	{{"cuStreamWaitValue32", "cuStreamWaitValue32_ptsz", "cuStreamWaitValue32_v2",
		 "cuStreamWaitValue32_v2_ptsz", "cuStreamWaitValue64", "cuStreamWaitValue64_ptsz",
		 "cuStreamWaitValue64_v2", "cuStreamWaitValue64_v2_ptsz"},
		DRV(STREAM_WAIT_VALUE, 3, 2, 1, 0)},
	{{"cuStreamBatchMemOp", "cuStreamBatchMemOp_ptsz", "cuStreamBatchMemOp_v2",
		 "cuStreamBatchMemOp_v2_ptsz"},
		DRV(STREAM_BATCH, 2, 0, 1, 0)},
	{{"cuMemAlloc_v2", "cuMemAlloc"}, DRV(MALLOC, 2, 1, 0, ALLOC)},
	{{"cuMemAllocManaged"}, DRV(MALLOC_MANAGED, 2, 1, 0, ALLOC)},
	{{"cuMemFree_v2", "cuMemFree"}, DRV(FREE, 1, 0, 0, ALWAYS)},
	{{"cuMemAllocAsync", "cuMemAllocAsync_ptsz"}, DRV(MALLOC_ASYNC, 2, 1, 3, ALLOC)},
	{{"cuMemFreeAsync", "cuMemFreeAsync_ptsz"}, DRV(FREE_ASYNC, 1, 0, 2, ALWAYS)},
	{{"cuMemHostAlloc", "cuMemAllocHost_v2"}, DRV(HOST_ALLOC, 2, 1, 0, ALLOC)},
	{{"cuMemFreeHost"}, DRV(HOST_FREE, 1, 0, 0, ALWAYS)},
	{{"cuMemHostRegister_v2", "cuMemHostRegister"}, DRV(HOST_REGISTER, 2, 1, 0, ALWAYS | COPY)},
	{{"cuMemHostUnregister"}, DRV(HOST_UNREGISTER, 1, 0, 0, ALWAYS)},
	{{"cuMemPrefetchAsync", "cuMemPrefetchAsync_ptsz"}, DRV(PREFETCH, 2, 1, 4, COPY)},
	{{"cuMemPrefetchAsync_v2", "cuMemPrefetchAsync_v2_ptsz"}, DRV(PREFETCH, 2, 1, 5, COPY)},
	{{"cuMemPrefetchBatchAsync", "cuMemPrefetchBatchAsync_ptsz",
		 "cuMemDiscardAndPrefetchBatchAsync", "cuMemDiscardAndPrefetchBatchAsync_ptsz"},
		DRV(PREFETCH_BATCH, 3, 0, 8, 0)},
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
	{{"cuMemcpyBatchAsync", "cuMemcpyBatchAsync_ptsz"}, DRV(MEMCPY_BATCH, 4, 0, 9, 0)},
	{{"cuMemcpyBatchAsync_v2", "cuMemcpyBatchAsync_v2_ptsz"}, DRV(MEMCPY_BATCH, 4, 0, 8, 0)},
	{{"cuMemcpy3DBatchAsync", "cuMemcpy3DBatchAsync_ptsz"}, DRV(MEMCPY_BATCH, 1, 0, 5, 0)},
	{{"cuMemcpy3DBatchAsync_v2", "cuMemcpy3DBatchAsync_v2_ptsz"},
		DRV(MEMCPY_BATCH, 1, 0, 4, 0)},
	{{"cuMemcpyWithAttributesAsync", "cuMemcpyWithAttributesAsync_ptsz"},
		DRV(MEMCPY_ASYNC, 3, 0, 5, COPY)},
	{{"cuMemcpy3DWithAttributesAsync", "cuMemcpy3DWithAttributesAsync_ptsz"},
		DRV(MEMCPY_3D_ASYNC, 0, 0, 3, 0)},
	{{"cuStreamBeginCapture_v2", "cuStreamBeginCapture_v2_ptsz",
		 "cuStreamBeginRecaptureToGraph", "cuStreamBeginRecaptureToGraph_ptsz"},
		GRAPH(BEGIN_CAPTURE, 1, 2, 1, ALWAYS)},
	{{"cuStreamBeginCapture", "cuStreamBeginCapture_ptsz"},
		GRAPH(BEGIN_CAPTURE, 1, 0, 1, ALWAYS)},
	{{"cuStreamBeginCaptureToGraph", "cuStreamBeginCaptureToGraph_ptsz"},
		GRAPH(BEGIN_CAPTURE, 1, 6, 1, ALWAYS)},
	{{"cuStreamEndCapture", "cuStreamEndCapture_ptsz"},
		GRAPH(END_CAPTURE, 1, 2, 1, ALWAYS | COOKIE_ARG1_OUT)},
	{{"cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags",
		 "cuGraphInstantiateWithParams", "cuGraphInstantiateWithParams_ptsz"},
		GRAPH(INSTANTIATE, 2, 1, 0, ALWAYS | COOKIE_ARG1_OUT)},
	{{"cuGraphLaunch", "cuGraphLaunch_ptsz"}, GRAPH(LAUNCH, 1, 0, 2, 0)},
	{{"cuGraphDestroy"}, GRAPH(DESTROY, 1, 0, 0, ALWAYS)},
	{{"cuGraphExecUpdate", "cuGraphExecUpdate_v2"}, GRAPH(EXEC_UPDATE, 2, 1, 0, ALWAYS)},
	{{"cuGraphExecDestroy"}, GRAPH(EXEC_DESTROY, 1, 0, 0, ALWAYS)},
	{{"cuGraphUpload", "cuGraphUpload_ptsz"}, GRAPH(UPLOAD, 1, 0, 2, 0)},
	{{"cuGraphExecNodeSetParams", "cuGraphExecKernelNodeSetParams",
		 "cuGraphExecKernelNodeSetParams_v2", "cuGraphExecMemcpyNodeSetParams",
		 "cuGraphExecMemsetNodeSetParams", "cuGraphExecHostNodeSetParams",
		 "cuGraphExecChildGraphNodeSetParams", "cuGraphExecBatchMemOpNodeSetParams"},
		GRAPH(NODE_SET_PARAMS, 2, 1, 0, 0)},
	{{NULL}, {.word = 0}},
};

const struct probe_library probe_cuda_drv = {"libcuda", functions};
