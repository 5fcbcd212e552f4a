/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_rt.c - functions of libcudart. Positions are from cuda_runtime_api.h.
 * Allocations, frees, waits and the life of graphs are always recorded one by one; launches and
 * copies by exception. */
#include "record/probe/function.h"

#define ALWAYS COOKIE_ALWAYS
#define ALLOC  (COOKIE_ALWAYS | COOKIE_BYTES | COOKIE_ARG1_OUT)
#define COPY   (COOKIE_BYTES | COOKIE_KIND)
#define BYTES  COOKIE_BYTES
#define LAUNCH COOKIE_GOVERNED
#define FILL   (COOKIE_GOVERNED | COOKIE_BYTES)

/* Came with 13.0, as did other arguments of some functions. */
#define SINCE_13 "+cudaMemPrefetchBatchAsync"

/* A box by value and its extent are on the stack on x86-64, and two words, of addresses, on arm64. */
#ifdef __aarch64__
#define AFTER_BOX 4
#else
#define AFTER_BOX 2
#endif

#define RT(op, arg0, arg1, stream, flags) CALL(SOURCE_CUDA, CUDA_##op, arg0, arg1, stream, flags)
#define GRAPH(op, arg0, arg1, stream, flags)                                                       \
	CALL(SOURCE_GRAPH, GRAPH_##op, arg0, arg1, stream, flags)

static const struct probe_function functions[] = {
	/* op, arg0, arg1, stream, flags */
	{{"cudaSetDevice"}, RT(MALLOC, 1, 0, 0, COOKIE_DEVICE)},
	{{"cudaMalloc"}, RT(MALLOC, 2, 1, 0, ALLOC)},
	{{"cudaFree", "cudaFreeArray", "cudaFreeMipmappedArray"}, RT(FREE, 1, 0, 0, ALWAYS)},
	{{"cudaMallocManaged"}, RT(MALLOC_MANAGED, 2, 1, 0, ALLOC)},
	{{"cudaMallocPitch"}, RT(MALLOC_PITCH, 3, 1, 0, ALLOC | COOKIE_AREA)},
	{{"cudaMallocAsync", "cudaMallocAsync_ptsz"}, RT(MALLOC_ASYNC, 2, 1, 3, ALLOC)},
	{{"cudaMallocFromPoolAsync", "cudaMallocFromPoolAsync_ptsz"},
		RT(MALLOC_FROM_POOL, 2, 1, 4, ALLOC)},
	{{"cudaFreeAsync", "cudaFreeAsync_ptsz"}, RT(FREE_ASYNC, 1, 0, 2, ALWAYS)},
	{{"cudaHostAlloc", "cudaMallocHost"}, RT(HOST_ALLOC, 2, 1, 0, ALLOC)},
	{{"cudaFreeHost"}, RT(HOST_FREE, 1, 0, 0, ALWAYS)},
	{{"cudaHostRegister"}, RT(HOST_REGISTER, 2, 1, 0, ALWAYS | BYTES)},
	{{"cudaHostUnregister"}, RT(HOST_UNREGISTER, 1, 0, 0, ALWAYS)},
	{{"cudaMalloc3D", "cudaMallocArray", "cudaMalloc3DArray", "cudaMallocMipmappedArray"},
		RT(MALLOC_ARRAY, 0, 1, 0, ALWAYS | COOKIE_ARG1_OUT)},
	{{"cudaLaunchKernel", "cudaLaunchKernel_ptsz"}, RT(LAUNCH, 1, 8, 8, LAUNCH)},
	{{"cudaLaunchKernelExC", "cudaLaunchKernelExC_ptsz"},
		RT(LAUNCH_EXC, 2, 0, 1, LAUNCH | COOKIE_CONFIG)},
	{{"cudaLaunchCooperativeKernel", "cudaLaunchCooperativeKernel_ptsz"},
		RT(LAUNCH_COOP, 1, 8, 8, LAUNCH)},
	{{"cudaLaunchCooperativeKernelMultiDevice"}, RT(LAUNCH_MULTI, 2, 0, 0, 0)},
	{{"cudaLaunchHostFunc", "cudaLaunchHostFunc_ptsz", "cudaLaunchHostFunc_v2",
		 "cudaLaunchHostFunc_v2_ptsz"},
		RT(LAUNCH_HOST, 2, 0, 1, 0)},
	{{"cudaMemcpy", "cudaMemcpy_ptds"}, RT(MEMCPY, 3, 4, 0, COPY)},
	{{"cudaMemcpyAsync", "cudaMemcpyAsync_ptsz"}, RT(MEMCPY_ASYNC, 3, 4, 5, COPY)},
	{{"cudaMemcpyToSymbol", "cudaMemcpyToSymbol_ptds", "cudaMemcpyFromSymbol",
		 "cudaMemcpyFromSymbol_ptds"},
		RT(MEMCPY, 3, 5, 0, COPY)},
	{{"cudaMemcpyToSymbolAsync", "cudaMemcpyToSymbolAsync_ptsz", "cudaMemcpyFromSymbolAsync",
		 "cudaMemcpyFromSymbolAsync_ptsz"},
		RT(MEMCPY_ASYNC, 3, 5, 6, COPY)},
	{{"cudaMemcpyWithAttributesAsync", "cudaMemcpyWithAttributesAsync_ptsz"},
		RT(MEMCPY_ATTRIBUTES, 3, 0, 5, BYTES)},
	{{"cudaMemcpy2D", "cudaMemcpy2D_ptds"}, RT(MEMCPY_2D, 5, 7, 0, COPY | COOKIE_AREA)},
	{{"cudaMemcpy2DAsync", "cudaMemcpy2DAsync_ptsz"},
		RT(MEMCPY_2D_ASYNC, 5, 7, 8, COPY | COOKIE_AREA)},
	{{"cudaMemcpy2DToArray", "cudaMemcpy2DToArray_ptds", "cudaMemcpy2DFromArray",
		 "cudaMemcpy2DFromArray_ptds"},
		RT(MEMCPY_2D, 6, 8, 0, COPY | COOKIE_AREA)},
	{{"cudaMemcpy2DToArrayAsync", "cudaMemcpy2DToArrayAsync_ptsz", "cudaMemcpy2DFromArrayAsync",
		 "cudaMemcpy2DFromArrayAsync_ptsz"},
		RT(MEMCPY_2D_ASYNC, 6, 8, 9, COPY | COOKIE_AREA)},
	{{"cudaMemcpy2DArrayToArray", "cudaMemcpy2DArrayToArray_ptds"},
		RT(MEMCPY_2D, 7, 9, 0, COPY | COOKIE_AREA)},
	{{"cudaMemcpyToArray", "cudaMemcpyToArray_ptds", "cudaMemcpyFromArray",
		 "cudaMemcpyFromArray_ptds"},
		RT(MEMCPY, 5, 6, 0, COPY)},
	{{"cudaMemcpyToArrayAsync", "cudaMemcpyToArrayAsync_ptsz", "cudaMemcpyFromArrayAsync",
		 "cudaMemcpyFromArrayAsync_ptsz"},
		RT(MEMCPY_ASYNC, 5, 6, 7, COPY)},
	{{"cudaMemcpyArrayToArray", "cudaMemcpyArrayToArray_ptds"}, RT(MEMCPY, 7, 8, 0, COPY)},
	{{"cudaMemcpy3D", "cudaMemcpy3D_ptds"}, RT(MEMCPY_3D, 0, 0, 0, 0)},
	{{"cudaMemcpy3DAsync", "cudaMemcpy3DAsync_ptsz"}, RT(MEMCPY_3D_ASYNC, 0, 0, 2, 0)},
	{{"cudaMemcpy3DWithAttributesAsync", "cudaMemcpy3DWithAttributesAsync_ptsz"},
		RT(MEMCPY_3D_ASYNC, 0, 0, 3, 0)},
	{{"cudaMemcpyBatchAsync", "cudaMemcpyBatchAsync_ptsz", SINCE_13},
		RT(MEMCPY_BATCH, 4, 0, 8, 0)},
	{{"cudaMemcpyBatchAsync", "cudaMemcpyBatchAsync_ptsz"}, RT(MEMCPY_BATCH, 4, 0, 9, 0)},
	{{"cudaMemcpy3DBatchAsync", "cudaMemcpy3DBatchAsync_ptsz", SINCE_13},
		RT(MEMCPY_BATCH, 1, 0, 4, 0)},
	{{"cudaMemcpy3DBatchAsync", "cudaMemcpy3DBatchAsync_ptsz"}, RT(MEMCPY_BATCH, 1, 0, 5, 0)},
	{{"cudaMemcpyPeer"}, RT(MEMCPY_PEER, 5, 0, 0, BYTES)},
	{{"cudaMemcpyPeerAsync"}, RT(MEMCPY_PEER_ASYNC, 5, 0, 6, BYTES)},
	{{"cudaMemcpy3DPeer", "cudaMemcpy3DPeer_ptds"}, RT(MEMCPY_PEER, 0, 0, 0, 0)},
	{{"cudaMemcpy3DPeerAsync", "cudaMemcpy3DPeerAsync_ptsz"},
		RT(MEMCPY_PEER_ASYNC, 0, 0, 2, 0)},
	{{"cudaMemPrefetchAsync", "cudaMemPrefetchAsync_ptsz", SINCE_13},
		RT(PREFETCH, 2, 1, 5, BYTES)},
	{{"cudaMemPrefetchAsync", "cudaMemPrefetchAsync_ptsz"}, RT(PREFETCH, 2, 1, 4, BYTES)},
	{{"cudaMemPrefetchAsync_v2", "cudaMemPrefetchAsync_v2_ptsz"}, RT(PREFETCH, 2, 1, 5, BYTES)},
	{{"cudaMemPrefetchBatchAsync", "cudaMemPrefetchBatchAsync_ptsz",
		 "cudaMemDiscardAndPrefetchBatchAsync", "cudaMemDiscardAndPrefetchBatchAsync_ptsz"},
		RT(PREFETCH_BATCH, 3, 0, 8, 0)},
	{{"cudaMemset", "cudaMemset_ptds"}, RT(MEMSET, 3, 1, 0, BYTES)},
	{{"cudaMemsetAsync", "cudaMemsetAsync_ptsz"}, RT(MEMSET_ASYNC, 3, 1, 4, FILL)},
	{{"cudaMemset2D", "cudaMemset2D_ptds"}, RT(MEMSET, 4, 1, 0, BYTES | COOKIE_AREA)},
	{{"cudaMemset2DAsync", "cudaMemset2DAsync_ptsz"},
		RT(MEMSET_ASYNC, 4, 1, 6, FILL | COOKIE_AREA)},
	{{"cudaMemset3D", "cudaMemset3D_ptds"}, RT(MEMSET, 0, 0, 0, 0)},
	{{"cudaMemset3DAsync", "cudaMemset3DAsync_ptsz"},
		RT(MEMSET_ASYNC, 0, 0, AFTER_BOX, COOKIE_GOVERNED)},
	{{"cudaStreamSynchronize", "cudaStreamSynchronize_ptsz"}, RT(STREAM_SYNC, 1, 0, 1, ALWAYS)},
	{{"cudaDeviceSynchronize", "cudaThreadSynchronize", "cudaExecutionCtxSynchronize"},
		RT(DEVICE_SYNC, 0, 0, 0, ALWAYS)},
	{{"cudaEventSynchronize"}, RT(EVENT_SYNC, 1, 0, 0, ALWAYS)},
	{{"cudaStreamWaitEvent", "cudaStreamWaitEvent_ptsz"}, RT(STREAM_WAIT_EVENT, 2, 0, 1, 0)},
	{{"cudaStreamBeginCapture", "cudaStreamBeginCapture_ptsz",
		 "cudaStreamBeginRecaptureToGraph", "cudaStreamBeginRecaptureToGraph_ptsz"},
		GRAPH(BEGIN_CAPTURE, 1, 2, 1, ALWAYS)},
	{{"cudaStreamBeginCaptureToGraph", "cudaStreamBeginCaptureToGraph_ptsz"},
		GRAPH(BEGIN_CAPTURE, 1, 6, 1, ALWAYS)},
	{{"cudaStreamEndCapture", "cudaStreamEndCapture_ptsz"},
		GRAPH(END_CAPTURE, 1, 2, 1, ALWAYS | COOKIE_ARG1_OUT)},
	{{"cudaGraphInstantiate", "cudaGraphInstantiateWithFlags", "cudaGraphInstantiateWithParams",
		 "cudaGraphInstantiateWithParams_ptsz"},
		GRAPH(INSTANTIATE, 2, 1, 0, ALWAYS | COOKIE_ARG1_OUT)},
	{{"cudaGraphLaunch", "cudaGraphLaunch_ptsz"}, GRAPH(LAUNCH, 1, 0, 2, 0)},
	{{"cudaGraphDestroy"}, GRAPH(DESTROY, 1, 0, 0, ALWAYS)},
	{{"cudaGraphExecUpdate"}, GRAPH(EXEC_UPDATE, 2, 1, 0, ALWAYS)},
	{{"cudaGraphExecDestroy"}, GRAPH(EXEC_DESTROY, 1, 0, 0, ALWAYS)},
	{{"cudaGraphUpload", "cudaGraphUpload_ptsz"}, GRAPH(UPLOAD, 1, 0, 2, 0)},
	{{"cudaGraphExecNodeSetParams", "cudaGraphExecKernelNodeSetParams",
		 "cudaGraphExecMemcpyNodeSetParams", "cudaGraphExecMemcpyNodeSetParams1D",
		 "cudaGraphExecMemsetNodeSetParams", "cudaGraphExecHostNodeSetParams",
		 "cudaGraphExecChildGraphNodeSetParams"},
		GRAPH(NODE_SET_PARAMS, 2, 1, 0, 0)},
	{{NULL}, {.word = 0}},
};

const struct probe_library probe_cuda_rt = {"libcudart", functions};
