// SPDX-License-Identifier: Apache-2.0
/* train_ops.c - one call of every function that the stand-in's runtime has, and of those that only
 * its driver has, with sizes that tell them apart. */
#include "train.h"

#define OPS_BYTES    4096
#define MAPPED_BYTES (2u << 20)

#define TRY(call)                                                                                  \
	do {                                                                                       \
		int try_r_ = (call);                                                               \
		if (try_r_ != 0)                                                                   \
			return try_r_;                                                             \
	} while (0)

static const dim3 one = {1, 1, 1};

static int memory_ops(cudaStream_t stream)
{
	cudaMemPool_t pool;
	size_t pitch;
	void *p;

	TRY(cudaMallocManaged(&p, OPS_BYTES, 1));
	TRY(cudaFree(p));
	TRY(cudaMallocAsync(&p, OPS_BYTES, stream));
	TRY(cudaFreeAsync(p, stream));
	TRY(cudaHostAlloc(&p, OPS_BYTES, 0));
	TRY(cudaFreeHost(p));
	TRY(cudaMallocHost(&p, OPS_BYTES));
	TRY(cudaFreeHost(p));
	TRY(cudaMallocPitch(&p, &pitch, OPS_BYTES / 4, 4));
	TRY(cudaFree(p));
	TRY(cudaDeviceGetDefaultMemPool(&pool, 0));
	TRY(cudaMallocFromPoolAsync(&p, OPS_BYTES, pool, stream));
	return cudaFreeAsync(p, stream);
}

/* The driver alone has these. */
static int mapping_ops(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	TRY(cuMemCreate(&handle, MAPPED_BYTES, &prop, 0));
	TRY(cuMemAddressReserve(&at, MAPPED_BYTES, 0, 0, 0));
	TRY(cuMemMap(at, MAPPED_BYTES, 0, handle, 0));
	TRY(cuMemUnmap(at, MAPPED_BYTES));
	TRY(cuMemAddressFree(at, MAPPED_BYTES));
	return cuMemRelease(handle);
}

/* The kind is an int in a whole word, of which the callee reads the lower half; what is in the upper
 * one is the caller's business on both architectures. Compilers mostly leave zeroes there, so these
 * calls are made as if it were a whole word. */
#define UNCLEAN(kind) (0xeeeeeeee00000000ULL | (kind))
typedef cudaError_t (*copy_2d)(void *, size_t, const void *, size_t, size_t, size_t, uint64_t);
typedef cudaError_t (*copy_2d_async)(
	void *, size_t, const void *, size_t, size_t, size_t, uint64_t, cudaStream_t);

static int rectangle_ops(void *a, void *b, char *host, cudaStream_t stream)
{
	copy_2d copy = (copy_2d)(void *)cudaMemcpy2D;
	copy_2d_async copy_async = (copy_2d_async)(void *)cudaMemcpy2DAsync;
	size_t half = OPS_BYTES / 2;

	TRY(copy(a, half, host, half, half / 2, 2, UNCLEAN(cudaMemcpyHostToDevice)));
	return copy_async(a, half, b, half, half / 2, 2, UNCLEAN(cudaMemcpyDeviceToDevice), stream);
}

static int copy_ops(void *a, void *b, char *host, cudaStream_t stream)
{

	for (int kind = cudaMemcpyHostToDevice; kind <= cudaMemcpyDefault; kind++) {
		void *dst = kind == cudaMemcpyDeviceToHost ? (void *)host : a;
		void *src = kind == cudaMemcpyHostToDevice ? (void *)host : b;

		TRY(cudaMemcpy(dst, src, OPS_BYTES, (enum cudaMemcpyKind)kind));
		TRY(cudaMemcpyAsync(dst, src, OPS_BYTES, (enum cudaMemcpyKind)kind, stream));
	}
	TRY(rectangle_ops(a, b, host, stream));
	TRY(cudaMemcpyPeer(a, 0, b, 0, OPS_BYTES));
	TRY(cudaMemcpyPeerAsync(a, 0, b, 0, OPS_BYTES, stream));
	TRY(cudaMemset(a, 1, OPS_BYTES));
	return cudaMemsetAsync(b, 2, OPS_BYTES, stream);
}

/* What few programs call, and what came with later versions. */
static int later_ops(struct train_worker *w, void *a, void *b, char *host, cudaStream_t stream)
{
	struct cudaMemcpyAttributes attributes = {.srcAccessOrder = 1};
	struct cudaMemLocation here = {1, 0};
	struct cudaPitchedPtr box;

	TRY(cudaHostRegister(host, OPS_BYTES, 0));
	TRY(cudaHostUnregister(host));
	TRY(cudaMalloc3D(&box, (struct cudaExtent){64, 4, 4}));
	TRY(cudaFree(box.ptr));
	TRY(cudaMemcpyToSymbol(a, host, 1009, 16, cudaMemcpyHostToDevice));
	TRY(cudaMemcpyToSymbolAsync(a, b, 503, 16, cudaMemcpyDeviceToDevice, stream));
	TRY(cudaMemcpyWithAttributesAsync(a, b, 211, &attributes, stream));
	TRY(cudaMemcpy3DBatchAsync(5, w, NULL, 0, stream));
	TRY(cudaMemPrefetchAsync(a, 1021, 0, stream));
	TRY(cudaMemPrefetchAsync_v2(a, 1031, here, 0, stream));
	TRY(cudaLaunchCooperativeKernelMultiDevice(w, 1, 0));
	return cudaThreadSynchronize();
}

static int array_ops(void *a, char *host, cudaStream_t stream)
{
	enum { W = 64, H = 8 };
	struct cudaExtent extent = {W / 2, 2, 2};
	struct cudaMemcpy3DPeerParms box = {
		.srcPtr = {a, W, W, 4}, .dstPtr = {(char *)a + W * H, W, W, 4}, .extent = extent};
	cudaArray_t one_array, other;

	TRY(cudaMallocArray(&one_array, NULL, W, H, 0));
	TRY(cudaMallocArray(&other, NULL, W, H, 0));
	TRY(cudaMemcpy2DToArray(one_array, 1, 1, host, W, 23, 5, cudaMemcpyHostToDevice));
	TRY(cudaMemcpy2DToArrayAsync(
		one_array, 2, 1, a, W, 29, 3, cudaMemcpyDeviceToDevice, stream));
	TRY(cudaMemcpy2DArrayToArray(
		other, 3, 1, one_array, 1, 2, 31, 2, cudaMemcpyDeviceToDevice));
	TRY(cudaMemcpyToArray(other, 5, 1, host, 37, cudaMemcpyHostToDevice));
	TRY(cudaMemcpyToArrayAsync(other, 7, 1, a, 41, cudaMemcpyDeviceToDevice, stream));
	TRY(cudaMemcpyArrayToArray(other, 0, 2, one_array, 1, 1, 43, cudaMemcpyDeviceToDevice));
	TRY(cudaMemset3D(box.srcPtr, 5, extent));
	TRY(cudaMemset3DAsync(box.srcPtr, 6, extent, stream));
	TRY(cudaMemcpy3DPeer(&box));
	TRY(cudaMemcpy3DPeerAsync(&box, stream));
	TRY(cudaStreamSynchronize(stream));
	TRY(cudaFreeArray(other));
	return cudaFreeArray(one_array);
}

/* The driver alone: fills by more than bytes, values in memory, and a graph. */
static int driver_ops(struct train_worker *w, void *a, cudaStream_t stream)
{
	CUdeviceptr at = (CUdeviceptr)a;
	CUgraphExec exec;
	CUgraph graph;

	TRY(cuMemsetD16_v2(at, 1, 101));
	TRY(cuMemsetD16Async(at, 1, 103, stream));
	TRY(cuMemsetD32_v2(at, 1, 107));
	TRY(cuMemsetD32Async(at, 1, 109, stream));
	TRY(cuMemsetD2D32Async(at, 256, 1, 13, 7, stream));
	TRY(cuStreamWaitValue32_v2(stream, at, 17, 0));
	TRY(cuStreamBatchMemOp_v2(stream, 3, w, 0));
	TRY(cuStreamBeginCapture_v2(stream, 1));
	TRY(cuLaunchKernel(
		(CUfunction)(void *)&w->kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	TRY(cuStreamEndCapture(stream, &graph));
	TRY(cuGraphInstantiateWithFlags(&exec, graph, 0));
	TRY(cuGraphUpload(exec, stream));
	TRY(cuGraphExecKernelNodeSetParams_v2(exec, NULL, NULL));
	TRY(cuGraphLaunch(exec, stream));
	TRY(cuGraphExecDestroy(exec));
	return cuGraphDestroy(graph);
}

static int box_ops(void *a, void *b, char *host, cudaStream_t stream)
{
	size_t sizes[3] = {1009, 503, 211}, failed, row = OPS_BYTES / 16;
	struct cudaMemcpy3DParms box = {
		.srcPtr = {host, row, row, 4},
		.dstPtr = {a, row, row, 4},
		.extent = {row / 2, 3, 4},
		.kind = cudaMemcpyHostToDevice,
	};
	void *dsts[3] = {a, (char *)a + 1009, (char *)a + 1512};
	void *srcs[3] = {b, (char *)b + 1009, (char *)b + 1512};

	TRY(cudaMemcpy3D(&box));
	box.srcPtr.ptr = b;
	box.kind = cudaMemcpyDeviceToDevice;
	TRY(cudaMemcpy3DAsync(&box, stream));
	TRY(cudaMemcpyBatchAsync(dsts, srcs, sizes, 3, NULL, NULL, 0, &failed, stream));
	TRY(cudaMemset2D(a, row, 3, row / 2, 4));
	return cudaMemset2DAsync(b, row, 4, row / 2, 4, stream);
}

static int thread_ops(struct train_worker *w, void *a, char *host, cudaStream_t stream)
{
	TRY(cudaLaunchKernel_ptsz(&w->kernel, one, one, NULL, 0, stream));
	TRY(cudaMemcpy_ptds(a, host, OPS_BYTES, cudaMemcpyHostToDevice));
	TRY(cudaMemcpy_ptds(host, a, OPS_BYTES, cudaMemcpyDeviceToHost));
	TRY(cudaMemcpyAsync_ptsz(a, host, OPS_BYTES, cudaMemcpyHostToDevice, stream));
	TRY(cudaMemcpyAsync_ptsz(host, a, OPS_BYTES, cudaMemcpyDeviceToHost, stream));
	return cudaStreamSynchronize_ptsz(stream);
}

static int graph_ops(struct train_worker *w, cudaStream_t stream)
{
	cudaGraphInstantiateParams params = {0};
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t a, b, c;
	cudaGraph_t graph, other;

	TRY(cudaStreamBeginCapture(stream, 0));
	TRY(cudaLaunchKernel(&w->kernel, one, one, NULL, 0, stream));
	TRY(cudaStreamEndCapture(stream, &graph));
	TRY(cudaGraphInstantiate(&a, graph, 0));
	TRY(cudaGraphInstantiateWithFlags(&b, graph, 0));
	TRY(cudaGraphInstantiateWithParams(&c, graph, &params));
	TRY(cudaGraphExecUpdate(c, graph, &info));
	TRY(cudaGraphUpload(a, stream));
	TRY(cudaGraphExecKernelNodeSetParams(a, NULL, NULL));
	TRY(cudaGraphLaunch(a, stream));
	TRY(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, 2));
	TRY(cudaLaunchKernel(&w->kernel, one, one, NULL, 0, stream));
	TRY(cudaStreamEndCapture(stream, &other));
	TRY(cudaGraphDestroy(other));
	TRY(cudaGraphDestroy(graph));
	TRY(cudaGraphExecDestroy(a));
	TRY(cudaGraphExecDestroy(b));
	return cudaGraphExecDestroy(c);
}

static void host_work(void *worker)
{
	(void)worker;
}

static int sync_ops(struct train_worker *w, cudaStream_t stream)
{
	cudaEvent_t event;

	TRY(cudaEventCreate(&event));
	TRY(cudaEventRecord(event, stream));
	TRY(cudaStreamWaitEvent(w->streams[0], event, 0));
	TRY(cudaEventSynchronize(event));
	TRY(cudaLaunchHostFunc(stream, host_work, w));
	TRY(cudaLaunchHostFunc_v2(stream, host_work, w, 0));
	TRY(cudaDeviceSynchronize());
	TRY(cudaEventQuery(event));
	TRY(cudaStreamQuery(stream));
	return cudaEventDestroy(event);
}

/* cudaGetLastError() may well tell of an error: --error-every makes some. The name of a device is
 * asked of the driver, because no function of the runtime here does. */
static int device_ops(void)
{
	char name[64];
	int n;

	TRY(cudaGetDeviceCount(&n));
	TRY(cudaSetDevice(0));
	TRY(cudaGetDevice(&n));
	TRY(cuDeviceGetName(name, sizeof(name), 0));
	cudaGetErrorString(cudaGetLastError());
	return 0;
}

int train_all_ops(struct train_worker *w)
{
	cudaLaunchConfig_t config = {.gridDim = one, .blockDim = one};
	char host[OPS_BYTES] = {0};
	cudaStream_t stream;
	void *a, *b;

	TRY(device_ops());
	TRY(cudaStreamCreate(&stream));
	TRY(cudaMalloc(&a, OPS_BYTES));
	TRY(cudaMalloc(&b, OPS_BYTES));
	config.stream = stream;
	TRY(cudaLaunchKernel(&w->kernel, one, one, NULL, 0, stream));
	TRY(cudaLaunchKernelExC(&config, &w->kernel, NULL));
	TRY(cudaLaunchCooperativeKernel(&w->kernel, one, one, NULL, 0, stream));
	TRY(memory_ops(stream));
	TRY(mapping_ops());
	TRY(copy_ops(a, b, host, stream));
	TRY(box_ops(a, b, host, stream));
	TRY(later_ops(w, a, b, host, stream));
	TRY(array_ops(a, host, stream));
	TRY(driver_ops(w, a, stream));
	TRY(thread_ops(w, a, host, stream));
	TRY(graph_ops(w, stream));
	TRY(sync_ops(w, stream));
	TRY(cudaFree(b));
	TRY(cudaFree(a));
	return cudaStreamDestroy(stream);
}
